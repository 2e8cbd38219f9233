"""``torchport lint`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from lint_runs import CUDA, DRIVER, OWN, OWN_RULES, Lint, commit, concise, git, runner

from torchport.cli.group import group


def test_findings_of_every_family_are_reported_and_nothing_is_written(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / "b.py").write_text(DRIVER)
    (tmp_path / "c.py").write_text("x = 1\n")
    result = lint(".")
    assert result.exit_code == 1
    assert "3 | x = torch.ones(2).cuda()\n  |     ^^^^^^^^^^^^^^^^^^^^\n" in result.stdout
    assert "Found 2 findings in 2 of 3 files\n  1 can be rewritten with `torchport migrate`\n" in result.stdout
    assert (tmp_path / "a.py").read_text() == CUDA


def test_no_findings_is_status_0(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    result = lint("a.py")
    assert (result.exit_code, result.stdout) == (0, "No findings in 1 file\n")


@pytest.mark.parametrize(
    "arguments", [[], ["nope.py"], ["--select", "TP1O1", "."], ["--statistics", "--output-format", "sarif", "."]]
)
def test_a_run_that_fails_is_status_2(lint: Lint, arguments: list[str]) -> None:
    assert lint(*arguments).exit_code == 2


def test_a_file_that_cannot_be_parsed_is_never_passed_over(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "a.py").write_text("import torch\nprint torch.cuda\n")
    result = lint("--output-format", "concise", ".")
    assert result.exit_code == 1
    assert result.stdout.startswith("a.py:2:1: error: not examined: not readable as Python 3")


def test_order_is_that_of_paths_and_lines_whatever_the_processes(tmp_path: Path, lint: Lint) -> None:
    for number in range(30):
        (tmp_path / f"f{number:02}.py").write_text(CUDA * 2)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/z.py").write_text(CUDA)
    outputs = {lint("--output-format", "concise", "--no-cache", "-j", jobs, ".").stdout for jobs in ("1", "2", "7")}
    assert len(outputs) == 1
    places = outputs.pop().splitlines()
    assert places[0].startswith("a/z.py:3:5")
    assert [line.split(":")[:2] for line in places[1:]] == [
        [f"f{n:02}.py", str(line)] for n in range(30) for line in (3, 6)
    ]


@pytest.mark.usefixtures("own_rules")
class TestFixing:
    def test_fix_applies_lint_rules_alone(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(OWN + CUDA)
        result = lint("--fix", ".")
        assert (tmp_path / "a.py").read_text() == OWN.replace("old", "new") + CUDA
        assert result.exit_code == 1
        assert "Fixed 1 finding in 1 file" in result.stdout
        assert "a.py:6:5: error: TP103" in result.stdout
        assert "git cannot give the old text back" in result.stderr

    def test_all_fixed_is_status_0(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(OWN)
        assert "`torchport lint --fix`" in lint(".").stdout
        assert lint("--fix", ".").exit_code == 0
        assert lint("--fix", ".").stdout == "No findings in 3 files\n"  # with pyproject.toml and own.toml

    def test_diff_writes_nothing(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(OWN)
        result = lint("--diff", ".")
        assert result.exit_code == 1
        assert "-a = own.old(1)\n+a = own.new(1)\n" in result.stdout
        assert "Would fix 1 finding in 1 file" in result.stderr
        assert (tmp_path / "a.py").read_text() == OWN

    def test_uncommitted_changes_are_not_overwritten(self, tmp_path: Path, lint: Lint) -> None:
        git(tmp_path, "init", "-q")
        (tmp_path / "a.py").write_text("x = 1\n")
        commit(tmp_path)
        (tmp_path / "a.py").write_text(OWN)
        result = lint("--fix", ".")
        assert result.exit_code == 2
        assert "uncommitted changes in a.py" in result.stderr
        assert (tmp_path / "a.py").read_text() == OWN
        assert lint("--fix", "--allow-dirty", ".").exit_code == 0
        assert (tmp_path / "a.py").read_text() == OWN.replace("old", "new")

    def test_a_silenced_place_is_not_fixed(self, tmp_path: Path, lint: Lint) -> None:
        text = OWN.rstrip() + "  # torchport: ignore[OWN001] the old one is measured here\n"
        (tmp_path / "a.py").write_text(text)
        assert lint("--fix", ".").exit_code == 0
        assert (tmp_path / "a.py").read_text() == text

    def test_standard_input_is_fixed_to_standard_output(self, tmp_path: Path, lint: Lint) -> None:
        result = lint("--fix", "--stdin-filename", "a.py", "-", stdin=OWN)
        assert (result.exit_code, result.stdout) == (0, OWN.replace("old", "new"))
        assert lint("--fix", "-", stdin="x = 1\n").stdout == "x = 1\n"

    def test_migrate_leaves_lint_rules_alone(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.py").write_text(OWN)
        assert runner().invoke(group, ["migrate", "--check", "."]).exit_code == 0

    def test_an_unknown_transformer_is_one_line(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "own.toml").write_text(OWN_RULES.replace("lint_only", 'transformer = "nope"\nlint_only'))
        (tmp_path / "a.py").write_text(OWN)
        result = lint(".")
        assert result.exit_code == 2
        assert result.stderr == "error: own.toml:2: OWN001: no transformer is called 'nope'\n"


def test_standard_input_has_the_name_that_is_given(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchport.per-file-ignores]\n"tests/*" = ["TP103"]\n')
    result = lint("--output-format", "concise", "--stdin-filename", "pkg/a.py", "-", stdin=CUDA)
    assert concise(result) == ["pkg/a.py:3:5"]
    assert result.exit_code == 1
    assert lint("--stdin-filename", "tests/a.py", stdin=CUDA).exit_code == 0
    assert concise(lint("-", "--output-format", "concise", stdin=CUDA)) == ["stdin.py:3:5"]
    assert lint("-", "a.py", stdin=CUDA).exit_code == 2


class TestNotebooks:
    CELLS = ("# a note", "%time 1\nimport torch", "x = torch.ones(2).cuda()\n!ls")

    def write(self, path: Path, *cells: str) -> None:
        kinds = ["markdown", *["code"] * (len(cells) - 1)]
        made = [
            {"cell_type": kind, "source": cell.splitlines(keepends=True)}
            for kind, cell in zip(kinds, cells, strict=True)
        ]
        path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    def test_findings_say_cell_and_line(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path / "a.ipynb", *self.CELLS)
        before = (tmp_path / "a.ipynb").read_text()
        result = lint("--fix", ".")
        assert result.exit_code == 1
        assert "a.ipynb:cell 3:1:5: error: TP103 cuda-method" in result.stdout
        assert "1 | x = torch.ones(2).cuda()\n  |     ^^^^" in result.stdout
        assert "migrate`" not in result.stdout
        assert (tmp_path / "a.ipynb").read_text() == before
        assert (
            "file=a.ipynb,title=torchport TP103 cuda-method::cell 3, line 1: "
            in lint("--output-format", "github", ".").stdout
        )

    def test_every_format_takes_them_and_so_does_the_cache(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path / "a.ipynb", *self.CELLS)
        for name in ("json", "sarif", "gitlab", "markdown", "concise"):
            first = lint("--output-format", name, ".").stdout
            assert "cell" in first
            assert lint("--output-format", name, ".").stdout == first

    def test_suppressions_and_the_baseline_hold_in_them(self, tmp_path: Path, lint: Lint) -> None:
        silenced = "x = torch.ones(2).cuda()  # torchport: ignore[TP103] for GPUs"
        self.write(tmp_path / "a.ipynb", "", "import torch", silenced)
        assert lint(".").exit_code == 0
        self.write(tmp_path / "a.ipynb", *self.CELLS)
        lint("--baseline", "base.json", ".")
        self.write(tmp_path / "a.ipynb", "", "import torch", "y = 1", self.CELLS[2])
        assert lint("--baseline", "base.json", ".").exit_code == 0

    def test_what_cannot_be_parsed_names_its_cell(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path / "a.ipynb", "", "import torch\ntorch.cuda", "print torch")
        result = lint(".")
        assert result.exit_code == 1
        assert "a.ipynb: cell 3, line 1: not readable as Python 3" in result.stdout


def test_suppressions_in_migrate_too(tmp_path: Path, lint: Lint) -> None:
    text = CUDA.rstrip() + "  # torchport: ignore[TP103] for GPUs alone\n"
    (tmp_path / "a.py").write_text(text)
    result = lint(".")
    assert result.exit_code == 0
    assert result.stdout == "No findings in 1 file\nSilenced by comments and configuration: 1\n"
    migrated = runner().invoke(group, ["migrate", "."])
    assert migrated.exit_code == 0
    assert "Silenced by comments and configuration: 1" in migrated.stdout
    assert (tmp_path / "a.py").read_text() == text


def test_a_file_that_is_skipped_needs_not_even_parse(tmp_path: Path, lint: Lint) -> None:
    text = "# torchport: skip-file Python 2\nprint torch.cuda.is_available()\n"
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text("# torchport: skip-file for GPUs alone\n" + CUDA)
    assert lint(".").exit_code == 0
    assert runner().invoke(group, ["migrate", "."]).exit_code == 0
    assert (tmp_path / "b.py").read_text().endswith(CUDA)


def test_an_unused_suppression_is_found_only_where_its_rule_runs(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "a.py").write_text("x = 1  # torchport: ignore[TP103] nothing is here\n")
    assert "TP001 unused-suppression" in lint(".").stdout
    assert lint("--ignore", "TP103", ".").exit_code == 0
    assert lint("--select", "TP2,TP0", ".").exit_code == 0
    assert lint("--ignore", "unused-suppression", ".").exit_code == 0


def test_ignored_files_are_left_out(tmp_path: Path, lint: Lint) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("gen.py\n")
    for name in ("gen.py", "a.py"):
        (tmp_path / name).write_text(CUDA)
    assert concise(lint("--output-format", "concise", ".")) == ["a.py:3:5"]


def test_the_cache_folder_ignores_itself(tmp_path: Path, lint: Lint) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").write_text(CUDA)
    first = lint("sub", "--output-format", "concise")
    assert (tmp_path / ".torchport_cache").is_dir()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert status.stdout == "?? sub/\n"
    assert lint("sub", "--output-format", "concise").stdout == first.stdout


@pytest.mark.parametrize("arguments", [["--no-cache"], ["--cache-dir", "elsewhere"]])
def test_the_cache_is_elsewhere_or_off(tmp_path: Path, lint: Lint, arguments: list[str]) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    lint(*arguments, ".")
    assert not (tmp_path / ".torchport_cache").exists()
    assert (tmp_path / "elsewhere").exists() is ("elsewhere" in arguments)


class TestConfiguration:
    def write(self, folder: Path, text: str) -> None:
        (folder / "pyproject.toml").write_text(text)
        for name in ("a.py", "tests/b.py", "gen/c.py"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(CUDA + DRIVER)

    def test_select_ignore_exclude_and_single_files(self, tmp_path: Path, lint: Lint) -> None:
        self.write(
            tmp_path,
            '[tool.torchport]\nselect = ["TP1", "TP9"]\nexclude = ["gen"]\n'
            '[tool.torchport.per-file-ignores]\n"tests/**" = ["cuda-method"]\n',
        )
        expected = ["a.py:3:5", "a.py:6:11", "tests/b.py:6:11"]
        assert concise(lint("--output-format", "concise", ".")) == expected
        assert concise(lint("--output-format", "concise", "--ignore", "TP9", ".")) == ["a.py:3:5"]
        assert concise(lint("--output-format", "concise", "--select", "TP9", "a.py")) == ["a.py:6:11"]
        assert concise(lint("--output-format", "concise", "gen/c.py")) == ["gen/c.py:3:5", "gen/c.py:6:11"]
        assert lint("--force-exclude", "gen/c.py").exit_code == 0

    def test_migrate_takes_it_too(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path, '[tool.torchport]\nexclude = ["gen"]\nper-file-ignores = { "tests" = ["TP1"] }\n')
        runner().invoke(group, ["migrate", "."])
        changed = [
            name for name in ("a.py", "tests/b.py", "gen/c.py") if (tmp_path / name).read_text() != CUDA + DRIVER
        ]
        assert changed == ["a.py"]

    def test_the_nearest_one_above_each_path_holds(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path, '[tool.torchport]\nselect = ["TP9"]\n')
        (tmp_path / "tests/pyproject.toml").write_text('[tool.torchport]\nselect = ["TP1"]\n')
        (tmp_path / "gen/pyproject.toml").write_text('[project]\nname = "torchport-user"\n')
        places = concise(lint("--output-format", "concise", "a.py", "tests", "gen"))
        assert places == ["a.py:6:11", "gen/c.py:6:11", "tests/b.py:3:5"]
        (tmp_path / "other.toml").write_text('ignore = ["TP1", "TP9"]\n')
        assert lint("--config", "other.toml", ".").exit_code == 0

    def test_patterns_hold_where_the_project_is_reached_by_a_link(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        self.write(
            tmp_path / "real", '[tool.torchport]\nexclude = ["gen"]\nper-file-ignores = { "tests/*" = ["TP1"] }\n'
        )
        places = concise(lint("--output-format", "concise", "--select", "TP1", "link", str(tmp_path / "real/gen/c.py")))
        assert places == ["link/a.py:3:5", "link/gen/c.py:3:5"]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[tool.torchport]\nslect = []\n", "[tool.torchport]: unknown key 'slect'; did you mean 'select'?"),
            (
                "[tool.torchport]\nper_file_ignores = {}\n",
                "unknown key 'per_file_ignores'; did you mean 'per-file-ignores'?",
            ),
            ('[tool.torchport]\nselect = "TP1"\n', "select must be a list of texts"),
            ('[tool.torchport]\nselect = ["TP1O1"]\n', "no rule is called 'TP1O1'; did you mean TP101?"),
            ('[tool.torchport]\ntarget = "gpu"\n', "target = 'gpu' is not one of portable, xla, tpu"),
            ('[tool.torchport]\nrules = ["nope.toml"]\n', "nope.toml: cannot be read"),
            ("[tool.torchport]\npedantic = 1\n", "pedantic must be true or false"),
            ("[tool.torchport\n", "not valid TOML"),
        ],
    )
    @pytest.mark.parametrize("name", ["lint", "migrate"])
    def test_what_is_wrong_is_one_line(self, tmp_path: Path, lint: Lint, name: str, text: str, said: str) -> None:
        self.write(tmp_path, text)
        result = runner().invoke(group, [name, "."])
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert said in line
        assert (tmp_path / "a.py").read_text() == CUDA + DRIVER

    def test_baseline_and_pedantic(self, tmp_path: Path, lint: Lint) -> None:
        self.write(tmp_path, '[tool.torchport]\nbaseline = "known.json"\npedantic = true\n')
        (tmp_path / "tests").joinpath("x").mkdir()
        os.chdir(tmp_path / "tests")
        assert lint(".").exit_code == 0
        assert list(json.loads((tmp_path / "known.json").read_text())["findings"]) == ["tests/b.py"]
