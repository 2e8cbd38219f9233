"""Shared by the tests of the engine: rules loaded once, and a short way to migrate a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.lint.linter import Linter
from torchport.model import Rule
from torchport.project.source import Source
from torchport.rewrite import Migrator, Outcome


@pytest.fixture(scope="session")
def rules() -> tuple[Rule, ...]:
    return load_rules()


@pytest.fixture
def migrate(rules: tuple[Rule, ...]) -> Callable[..., Outcome]:
    def run(text: str, path: str = "example.py", **options: object) -> Outcome:
        chosen = tuple(rule for rule in rules if not rule.lint_only)
        migrator = Migrator(chosen, "portable", **options)  # type: ignore[arg-type]
        return migrator(Source(path, text, "utf-8", False))

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
