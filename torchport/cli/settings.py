"""What a command is told twice: by its options, and by ``[tool.torchport]`` in the nearest pyproject.toml."""

from __future__ import annotations

from collections.abc import Sequence

from torchport.cli.output import RunFailed, WrongUsage
from torchport.lazy import NamedTuple
from torchport.model import Rule, Target
from torchport.project.config import Config, ConfigError, FileRules, find_config, read_config
from torchport.project.patterns import clean


class Given(NamedTuple):
    """The options that a configuration also knows, as they were given."""

    config: str | None
    target: Target | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    unsafe: bool


class Settings(NamedTuple):
    """What holds for some of the paths: those with one configuration."""

    paths: tuple[str, ...]
    config: Config
    target: Target
    unsafe: bool
    rules: tuple[Rule, ...]
    """The rules that are chosen."""
    off: FileRules
    every: tuple[Rule, ...]
    """All rules, chosen or not."""


def all_settings(paths: Sequence[str], given: Given) -> list[Settings]:
    """The settings for each configuration that is found above one of ``paths``.

    What an option says goes before what the file says; ``--ignore`` adds to it. Raises RunFailed and WrongUsage.
    """
    groups: dict[str, tuple[Config, list[str]]] = {}
    seen: dict[str, Config] = {}
    try:
        for path in paths:
            config = read_config(given.config) if given.config else find_config(path, seen)
            groups.setdefault(config.path, (config, []))[1].append(path)
    except ConfigError as error:
        raise RunFailed(str(error)) from None
    return [_settings(config, tuple(members), given) for config, members in groups.values()]


def _settings(config: Config, paths: tuple[str, ...], given: Given) -> Settings:
    from torchport.catalog import CatalogError, load_rules

    try:
        every = load_rules(tuple(config.resolve(name) for name in config.rules))
    except CatalogError as error:
        raise RunFailed(str(error)) from None
    wanted = _named(every, given.select) or _named(every, config.select, config) or frozenset(r.code for r in every)
    unwanted = _named(every, given.ignore) | _named(every, config.ignore, config)
    table = tuple(
        (clean((pattern,)), _named(every, codes, config)) for pattern, codes in config.per_file_ignores.items()
    )
    return Settings(
        paths,
        config,
        given.target or config.target,
        given.unsafe or config.unsafe,
        tuple(rule for rule in every if rule.code in wanted - unwanted),
        FileRules(config, table),
        every,
    )


def _named(rules: tuple[Rule, ...], words: Sequence[str], config: Config | None = None) -> frozenset[str]:
    """The codes of the rules that are named by code, beginning of a code, or name. Says where a wrong one stands."""
    from torchport.catalog import CatalogError, select_rules

    if not words:
        return frozenset()
    try:
        return frozenset(rule.code for rule in select_rules(rules, tuple(words), ()))
    except CatalogError as error:
        if config is not None:
            raise RunFailed(f"{config.path}: [tool.torchport]: {error}") from None
        raise WrongUsage(str(error)) from None
