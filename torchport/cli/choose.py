"""The rules that a command works with."""

from __future__ import annotations

from collections.abc import Sequence

from torchport.cli.output import RunFailed, WrongUsage
from torchport.model import Rule


def words(values: Sequence[str]) -> tuple[str, ...]:
    """Split values at commas: ``--select TP1,TP2`` and ``--select TP1 --select TP2`` are the same."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def all_rules() -> tuple[Rule, ...]:
    """The whole catalogue. Raises RunFailed for a bad rule file."""
    from torchport.catalog import CatalogError, load_rules

    try:
        return load_rules()
    except CatalogError as error:
        raise RunFailed(str(error)) from None


def chosen_rules(select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[Rule, ...]:
    """The catalogue less what the user does not want. Raises WrongUsage for a word that names no rule."""
    from torchport.catalog import CatalogError, select_rules

    rules = all_rules()
    try:
        return select_rules(rules, select, ignore)
    except CatalogError as error:
        raise WrongUsage(str(error)) from None
