from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result as ClickResult
from lint_runs import OWN_RULES, Lint, runner
from real_command import Result, Torchport, run_torchport

from torchport.cli.group import group


@pytest.fixture
def command(tmp_path: Path) -> Torchport:
    """Run the real command in ``tmp_path``."""

    def run(*arguments: str, **options: object) -> Result:
        return run_torchport(tmp_path, *arguments, **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lint:
    """The command in ``tmp_path``, without a new interpreter; files are examined in processes all the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHPORT_CACHE_DIR", raising=False)

    def run(*arguments: str, stdin: str | None = None) -> ClickResult:
        return runner().invoke(group, ["lint", *arguments], input=stdin)

    return run


@pytest.fixture
def own_rules(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN_RULES)
    (tmp_path / "pyproject.toml").write_text('[tool.torchport]\nrules = ["own.toml"]\n')
