"""The pages of the rules are what the catalogue says. That the examples are true is tested with the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from commands import ROOT


def build(docs: Path, *arguments: str) -> tuple[str, int]:
    """Run ``docs/build.py``; what it prints, and its exit status."""
    command = [sys.executable, docs / "build.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr, run.returncode


def test_pages_are_up_to_date() -> None:
    assert build(ROOT / "docs", "--check") == ("", 0)


def test_check_names_stale_pages_and_build_mends_them(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    assert build(docs) == ("", 0)
    (docs / "rules/TP101.md").write_text("old\n")
    (docs / "rules/TP103.md").unlink()
    (docs / "rules/TP000.md").write_text("a rule that is gone\n")
    said, status = build(docs, "--check")
    assert [line.split()[0] for line in said.splitlines()] == [f"docs/rules/TP{n}.md" for n in ("000", "101", "103")]
    assert status == 1
    assert build(docs) == ("", 0)
    assert build(docs, "--check") == ("", 0)
    assert not (docs / "rules/TP000.md").exists()


def test_a_page_shows_the_diff_and_both_sides_of_it() -> None:
    page = (ROOT / "docs/rules/TP103.md").read_text(encoding="utf-8")
    diff = page.split("```diff\n")[1].split("```")[0]
    assert ".cuda(" in "".join(line for line in diff.splitlines() if line.startswith("- "))
    assert ".to(shim.device()" in "".join(line for line in diff.splitlines() if line.startswith("+ "))
