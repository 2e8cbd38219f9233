"""``[tool.torchport]`` in the nearest pyproject.toml: found, read, and refused where a key is not known."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Mapping
from typing import Any

from torchport.lazy import NamedTuple
from torchport.model import TARGETS, Target, UserError
from torchport.project.paths import with_parents
from torchport.project.patterns import clean, matches

FILE = "pyproject.toml"
LISTS = ("select", "ignore", "exclude", "rules")
FLAGS = ("pedantic", "unsafe")
KEYS = (*LISTS, *FLAGS, "target", "baseline", "per-file-ignores")


class ConfigError(UserError, ValueError):
    """A configuration that cannot be used: says file, key and what was expected."""


class Config(NamedTuple):
    """What the file says; empty where there is none. Paths in it are relative to ``root``."""

    path: str = ""
    """The file, as shown to the user."""
    root: str = ""
    """The absolute path of its folder."""
    target: Target = "portable"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Further rule files."""
    pedantic: bool = False
    unsafe: bool = False
    baseline: str = ""
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}

    def relative(self, path: str) -> str:
        """``path`` as patterns see it: relative to the folder of the configuration, or absolute outside of it."""
        folder, name = os.path.split(path)
        absolute = os.path.join(os.path.realpath(folder), name)  # a file that is a link keeps its name
        inside = absolute.startswith(self.root + os.sep)
        return (absolute[len(self.root) + 1 :] if inside else absolute).replace(os.sep, "/")

    def excludes(self, path: str) -> bool:
        """Whether the configuration leaves a file out."""
        return bool(self.exclude) and matches(self.relative(path), self.exclude)

    def resolve(self, name: str) -> str:
        """A path that the file names."""
        return os.path.join(self.root, os.path.expanduser(name))


def find_config(path: str, cache: dict[str, Config] | None = None) -> Config:
    """The configuration for a file or folder: the nearest pyproject.toml above it that speaks of torchport.

    Raises ConfigError.
    """
    start = os.path.realpath(path)
    seen = {} if cache is None else cache
    for folder in with_parents(start if os.path.isdir(start) else os.path.dirname(start)):
        if folder not in seen:
            found = _read_if_ours(os.path.join(folder, FILE))
            if found is None:
                continue
            seen[folder] = found
        return seen[folder]
    return Config()


def read_config(path: str) -> Config:
    """The configuration in a file that the user names: a pyproject.toml, or one with the same keys at its top.

    Raises ConfigError.
    """
    try:
        data = _bytes_of(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    table = _parse(path, data)
    ours = table.get("tool", {}).get("torchport") if os.path.basename(path) == FILE or "tool" in table else table
    return _config(path, ours if ours is not None else {})


def _read_if_ours(file: str) -> Config | None:
    try:
        data = _bytes_of(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from None
    if b"torchport" not in data:
        return None
    tool = _parse(file, data).get("tool", {})
    return _config(file, tool["torchport"]) if isinstance(tool, dict) and "torchport" in tool else None


def _bytes_of(path: str) -> bytes:
    with io.FileIO(path) as file:
        return file.readall()


def _parse(path: str, data: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{_shown(path)}: not valid TOML: {error}") from None


def _shown(path: str) -> str:
    absolute, here = os.path.realpath(path), os.path.join(os.getcwd(), "")
    return absolute.removeprefix(here)


def _config(path: str, table: Any) -> Config:
    where = f"{_shown(path)}: [tool.torchport]"
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    for key in table:
        if key not in KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}{_hint(key, KEYS)}")
    for key in LISTS:
        _require(where, key, table.get(key, []), "a list of texts")
    for key in FLAGS:
        if not isinstance(table.get(key, False), bool):
            raise ConfigError(f"{where}: {key} must be true or false")
    target = table.get("target", "portable")
    if target not in TARGETS:
        raise ConfigError(f"{where}: target = {target!r} is not one of {', '.join(TARGETS)}{_hint(target, TARGETS)}")
    if not isinstance(table.get("baseline", ""), str):
        raise ConfigError(f"{where}: baseline must be the name of a file")
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise ConfigError(f"{where}: per-file-ignores must be a table of patterns and lists of codes")
    for pattern, codes in per_file.items():
        _require(where, f"per-file-ignores.{pattern!r}", codes, "a list of codes")
    return Config(
        path=_shown(path),
        root=os.path.dirname(os.path.realpath(path)),
        target=target,
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        exclude=clean(table.get("exclude", ())),
        rules=tuple(table.get("rules", ())),
        pedantic=table.get("pedantic", False),
        unsafe=table.get("unsafe", False),
        baseline=table.get("baseline", ""),
        per_file_ignores={pattern: tuple(codes) for pattern, codes in per_file.items()},
    )


def _require(where: str, key: str, value: Any, what: str) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(f"{where}: {key} must be {what}")


def _hint(word: object, known: Collection[str]) -> str:
    import difflib

    near = difflib.get_close_matches(str(word).replace("_", "-"), known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known))}"


class FileRules(NamedTuple):
    """The rules that do not concern a path, by ``per-file-ignores``."""

    config: Config = Config()
    table: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = ()
    """Patterns and the codes that they switch off."""

    def __call__(self, path: str) -> frozenset[str]:
        """The codes that are off for ``path``."""
        if not self.table:
            return frozenset()
        relative = self.config.relative(path)
        return frozenset().union(*(codes for patterns, codes in self.table if matches(relative, patterns)))


EVERYWHERE = FileRules()
"""Every rule concerns every path."""
