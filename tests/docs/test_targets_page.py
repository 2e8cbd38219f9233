"""What the page of the targets shows is what ``migrate`` makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import ROOT, blocks, torchport

PAGE = "docs/targets.md"


@pytest.mark.parametrize(("number", "target"), [(0, "xla"), (1, "tpu")])
def test_the_diff_is_what_migrate_makes(number: int, target: str, tmp_path: Path) -> None:
    shown = blocks(PAGE, "diff")[number]
    hunk = shown.splitlines(keepends=True)[4:]
    (tmp_path / "train.py").write_text("".join(line[1:] for line in hunk if line[0] in " -"))
    run = torchport("migrate", "--target", target, "--diff", "train.py", folder=tmp_path)
    assert run.stdout == shown
    assert run.returncode == 1


def test_rules_named_on_the_page_exist(tmp_path: Path) -> None:
    codes = set(re.findall(r"TP\d{3}", (ROOT / PAGE).read_text(encoding="utf-8")))
    assert codes
    assert {code for code in codes if torchport("rule", code, folder=tmp_path).returncode} == set()
