"""Shared by the tests of the engine: rules loaded once, and a short way to migrate a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.model import Rule
from torchport.project.source import Source
from torchport.rewrite import Migrator, Outcome


@pytest.fixture(scope="session")
def rules() -> tuple[Rule, ...]:
    return load_rules()


@pytest.fixture
def migrate(rules: tuple[Rule, ...]) -> Callable[..., Outcome]:
    def run(text: str, path: str = "example.py", **options: object) -> Outcome:
        migrator = Migrator(rules, "portable", **options)  # type: ignore[arg-type]
        return migrator(Source(path, text, "utf-8", False))

    return run
