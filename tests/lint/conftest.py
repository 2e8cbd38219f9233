from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchport.catalog import load_rules
from torchport.linting import LintOptions, lint
from torchport.report.findings import Report

RULES = load_rules()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Report]:
    """Lint ``tmp_path`` with its cache."""
    monkeypatch.chdir(tmp_path)

    def call(*paths: str, **options: object) -> Report:
        rules = options.pop("rules", RULES)
        return lint(paths or ["."], rules, LintOptions(cache=tmp_path / ".cache")._replace(**options))  # type: ignore[arg-type]

    return call
