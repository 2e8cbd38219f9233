"""What ``torchport lint`` leaves out: lines that no branch changed, and findings that a baseline accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lint_runs import CUDA, DRIVER, Lint, commit, concise, git


class TestBranches:
    @pytest.fixture(autouse=True)
    def _branch(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", "-b", "main")
        (tmp_path / "a.py").write_text(CUDA + "y = x.cuda()\n")
        (tmp_path / "b.py").write_text(CUDA)
        commit(tmp_path)
        git(tmp_path, "checkout", "-q", "-b", "mine")

    def test_only_changed_lines_count(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text("import torch\n# new\n\nx = torch.ones(2).cuda()\ny = x.cuda(0)\n")
        (tmp_path / "new.py").write_text(CUDA)
        commit(tmp_path, "two")
        (tmp_path / "untracked.py").write_text(CUDA)
        result = lint("--diff-base", "main", "--output-format", "concise", ".")
        assert concise(result) == ["a.py:5:5", "new.py:3:5", "untracked.py:3:5"]

    def test_what_main_has_changed_since_does_not_count(self, tmp_path: Path, lint: Lint) -> None:
        git(tmp_path, "checkout", "-q", "main")
        (tmp_path / "b.py").write_text("import torch\n")
        commit(tmp_path, "on main")
        git(tmp_path, "checkout", "-q", "mine")
        result = lint("--diff-base", "main", ".")
        assert (result.exit_code, result.stdout) == (0, "No findings in 2 files\n")

    def test_a_revision_that_is_not_there(self, tmp_path: Path, lint: Lint) -> None:
        result = lint("--diff-base", "origin/main", ".")
        assert result.exit_code == 2
        assert result.stderr == "error: 'origin/main' is no revision of this repository; is it fetched?\n"

    def test_a_finding_of_several_lines_counts_with_any_of_them(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "b.py").write_text("import torch\n\nx = torch.ones(\n    2\n).cuda()\n")
        commit(tmp_path, "two")
        git(tmp_path, "checkout", "-q", "-b", "third")
        (tmp_path / "b.py").write_text("import torch\n\nx = torch.ones(\n    3\n).cuda()\n")
        assert concise(lint("--diff-base", "mine", "--output-format", "concise", ".")) == ["b.py:3:5"]


class TestBaseline:
    def test_is_made_at_first_use_and_lets_only_new_findings_through(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(CUDA)
        first = lint("--baseline", "base.json", ".")
        assert first.exit_code == 0
        assert "base.json: 1 finding accepted" in first.stderr
        (tmp_path / "a.py").write_text("# moved\n" + CUDA + "y = x.cuda()\n")
        second = lint("--baseline", "base.json", "--output-format", "concise", ".")
        assert concise(second) == ["a.py:5:5"]
        assert second.exit_code == 1

    def test_a_second_one_of_the_same_text_is_new(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(CUDA)
        lint("--baseline", "base.json", ".")
        (tmp_path / "a.py").write_text(CUDA + "x = torch.ones(2).cuda()\n")
        assert concise(lint("--baseline", "base.json", "--output-format", "concise", ".")) == ["a.py:4:5"]

    def test_shrinks_by_itself_and_never_grows(self, tmp_path: Path, lint: Lint) -> None:
        for name in ("a.py", "b.py", "c.py"):
            (tmp_path / name).write_text(CUDA + DRIVER)
        lint("--baseline", "base.json", ".")
        (tmp_path / "a.py").write_text(DRIVER)
        (tmp_path / "b.py").unlink()
        (tmp_path / "c.py").write_text("print torch.cuda\n")
        result = lint("--baseline", "base.json", ".")
        assert "base.json: 3 findings gone" in result.stderr
        kept = json.loads((tmp_path / "base.json").read_text())["findings"]
        assert {name: sorted(codes) for name, codes in kept.items()} == {"a.py": ["TP902"], "c.py": ["TP103", "TP902"]}
        (tmp_path / "a.py").write_text(CUDA + DRIVER)
        assert concise(lint("--baseline", "base.json", "--output-format", "concise", "a.py")) == ["a.py:3:5"]

    def test_a_part_of_the_project_or_of_the_rules_loses_nothing(self, tmp_path: Path, lint: Lint) -> None:
        for name in ("a.py", "b.py"):
            (tmp_path / name).write_text(CUDA)
        lint("--baseline", "base.json", ".")
        before = (tmp_path / "base.json").read_text()
        assert lint("--baseline", "base.json", "a.py").exit_code == 0
        assert lint("--baseline", "base.json", "--select", "TP9", ".").exit_code == 0
        assert (tmp_path / "base.json").read_text() == before

    def test_is_renewed_on_demand(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(CUDA)
        lint("--baseline", "base.json", ".")
        (tmp_path / "a.py").write_text(DRIVER)
        assert lint("--baseline", "base.json", "--update-baseline", ".").exit_code == 0
        assert lint("--baseline", "base.json", ".").exit_code == 0
        assert list(json.loads((tmp_path / "base.json").read_text())["findings"]["a.py"]) == ["TP902"]
        assert lint("--update-baseline", ".").exit_code == 2

    @pytest.mark.parametrize(
        "text", ["{", "[]", '{"version": 9, "findings": {}}', '{"version": 1, "findings": {"a.py": 3}}']
    )
    def test_one_that_is_damaged_is_never_replaced(self, tmp_path: Path, lint: Lint, text: str) -> None:
        (tmp_path / "a.py").write_text(CUDA)
        (tmp_path / "base.json").write_text(text)
        result = lint("--baseline", "base.json", ".")
        assert result.exit_code == 2
        assert result.stderr.startswith("error: base.json: ")
        assert (tmp_path / "base.json").read_text() == text
