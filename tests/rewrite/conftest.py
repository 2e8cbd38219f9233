"""Shared by the tests of the engine: rules loaded once, and a short way to migrate a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.lint.linter import Linter
from torchport.model import TARGETS, Rule, Target
from torchport.project.source import Source
from torchport.rewrite import Migrator, Outcome


@pytest.fixture(scope="session")
def rules() -> tuple[Rule, ...]:
    return load_rules()


@pytest.fixture(scope="session")
def migrators(rules: tuple[Rule, ...]) -> dict[Target, Migrator]:
    chosen = tuple(rule for rule in rules if not rule.lint_only)
    return {target: Migrator(chosen, target) for target in TARGETS}


@pytest.fixture(scope="session")
def outcomes() -> dict[tuple[str, ...], Outcome]:
    """What became of each text: the same for every test that asks, since nothing else decides it."""
    return {}


@pytest.fixture
def migrate(
    rules: tuple[Rule, ...], migrators: dict[Target, Migrator], outcomes: dict[tuple[str, ...], Outcome]
) -> Callable[..., Outcome]:
    def run(text: str, path: str = "example.py", target: Target = "portable", **options: object) -> Outcome:
        if options:
            chosen = tuple(rule for rule in rules if not rule.lint_only)
            return Migrator(chosen, target, **options)(Source(path, text, "utf-8", False))  # type: ignore[arg-type]
        key = (target, path, text)
        if key not in outcomes:
            outcomes[key] = migrators[target](Source(path, text, "utf-8", False))
        return outcomes[key]

    return run


@pytest.fixture
def inspect(rules: tuple[Rule, ...]) -> Callable[..., Outcome]:
    """What ``torchport lint`` finds in a text."""

    def run(text: str, path: str = "example.py", **options: object) -> Outcome:
        return Linter(rules, "portable", **options)(Source(path, text, "utf-8", False))  # type: ignore[arg-type]

    return run


@pytest.fixture
def fix(rules: tuple[Rule, ...]) -> Callable[..., Outcome]:
    """What ``torchport lint --fix`` makes of a text, and what it finds in the result."""

    def run(text: str, path: str = "example.py", **options: object) -> Outcome:
        linter = Linter(rules, "portable", fix=True, **options)  # type: ignore[arg-type]
        return linter(Source(path, text, "utf-8", False))

    return run
