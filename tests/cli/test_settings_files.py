"""Files of settings and launchers through the commands: reported beside Python files, and never rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from lint_runs import CUDA, Lint, commit, concise, git, runner

from torchport.cli.group import group
from torchport.project.files import LARGEST

YAML = "model: small\ndevice: cuda\n"
SCRIPT = "#!/bin/sh\nCUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py --device cuda\n"
PROGRAM = """import sys
import torch

device = torch.device(sys.argv[1])
x = torch.ones(2).cuda()
"""


def migrate(*arguments: str) -> Result:
    return runner().invoke(group, ["migrate", *arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/train.yaml").write_text(YAML)
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.usefixtures("lint")
class TestMigrate:
    def test_what_they_ask_for_is_left_for_a_person_and_they_stay_as_they_are(self, project: Path) -> None:
        result = migrate(".")
        assert result.exit_code == 1
        assert (
            "conf/train.yaml:2:9 TP118 a file of settings or a command asks for the device of a GPU:" in result.stdout
        )
        assert "run.sh:2:1 TP522 an environment variable of CUDA or NCCL:" in result.stdout
        assert "run.sh:2:63 TP118 " in result.stdout
        assert "Rewrote 1 of 3 files: 1 edit" in result.stdout
        assert "Left for a person: 3 in 2 files" in result.stdout
        assert (project / "conf/train.yaml").read_text() == YAML
        assert (project / "run.sh").read_text() == SCRIPT
        assert "shim" in (project / "train.py").read_text()

    def test_a_second_run_says_the_same_of_them(self, project: Path) -> None:
        migrate(".")
        again = migrate(".")
        assert again.exit_code == 1
        assert "Nothing to rewrite in 3 files\nLeft for a person: 3 in 2 files\n" in again.stdout

    def test_json_has_them_too(self, project: Path) -> None:
        data = json.loads(migrate("--check", "--output-format", "json", ".").stdout)
        (entry,) = [file for file in data["files"] if file["path"] == "conf/train.yaml"]
        assert [(f["code"], f["line"], f["column"], f["old"]) for f in entry["left"]] == [("TP118", 2, 9, "cuda")]
        assert entry["status"] == "unchanged"
        assert data["summary"]["examined"] == 3

    def test_the_target_decides_what_to_write(self, project: Path) -> None:
        assert "write xla" in migrate("--check", "--target", "xla", "conf").stdout
        assert "write tpu" in migrate("--check", "--target", "tpu", "conf/train.yaml").stdout

    def test_no_finding_is_status_0(self, project: Path) -> None:
        (project / "conf/train.yaml").write_text("device: cpu\n# device: cuda\n")
        assert migrate("conf").exit_code == 0

    def test_a_comment_silences(self, project: Path) -> None:
        (project / "conf/train.yaml").write_text("device: cuda  # torchport: ignore[TP118] for GPUs alone\n")
        result = migrate("conf")
        assert result.exit_code == 0
        assert "Silenced by comments and configuration: 1" in result.stdout


class TestLint:
    def test_the_line_is_shown(self, project: Path, lint: Lint) -> None:
        result = lint("conf/train.yaml")
        assert result.exit_code == 1
        assert "conf/train.yaml:2:9: error: TP118 device-in-settings: " in result.stdout
        assert "\n2 | device: cuda\n  |         ^^^^\n" in result.stdout

    def test_all_formats_have_them(self, project: Path, lint: Lint) -> None:
        for name in ("concise", "json", "sarif", "github", "gitlab", "markdown"):
            said = lint("--output-format", name, ".").stdout
            assert "TP118" in said, name
            assert "train.yaml" in said, name
        counted = lint("--statistics", "--output-format", "json", ".").stdout
        assert {"TP118", "TP522", "TP103"} <= {word for word in counted.split('"') if word.startswith("TP")}

    def test_notes_are_counted_and_shown_when_asked_for(self, project: Path, lint: Lint) -> None:
        (project / "conf/train.yaml").write_text("backend: nccl\n")
        quiet = lint("conf")
        assert quiet.exit_code == 0
        assert "Notes: 1 (shown with --verbose)" in quiet.stdout
        assert "TP318" in lint("-v", "conf").stdout

    def test_rules_are_chosen_as_ever(self, project: Path, lint: Lint) -> None:
        assert lint("--ignore", "TP1,TP522", ".").exit_code == 0
        assert concise(lint("--select", "device-in-settings", "--output-format", "concise", ".")) == [
            "conf/train.yaml:2:9",
            "run.sh:2:63",
        ]
        (project / "pyproject.toml").write_text('[tool.torchport.per-file-ignores]\n"conf/*" = ["TP118"]\n')
        assert concise(lint("--select", "TP118", "--output-format", "concise", ".")) == ["run.sh:2:63"]
        (project / "pyproject.toml").write_text('[tool.torchport]\nexclude = ["*.sh"]\n')
        assert concise(lint("--select", "TP118", "--output-format", "concise", ".")) == ["conf/train.yaml:2:9"]

    def test_the_cache_gives_the_same_and_a_change_is_seen(self, project: Path, lint: Lint) -> None:
        first = lint("--output-format", "json", ".").stdout
        assert lint("--output-format", "json", ".").stdout == first
        (project / "conf/train.yaml").write_text("device: cpu\n")
        assert "train.yaml" not in lint("--output-format", "json", ".").stdout

    def test_the_baseline_takes_them_in_and_lets_go_of_what_is_gone(self, project: Path, lint: Lint) -> None:
        assert lint("--baseline", "base.json", ".").exit_code == 0
        (project / "conf/train.yaml").write_text("# moved\n" + YAML)
        assert lint("--baseline", "base.json", ".").exit_code == 0
        (project / "conf/train.yaml").write_text("device: cpu\n")
        assert "1 finding gone" in lint("--baseline", "base.json", ".").stderr

    def test_only_lines_that_the_branch_changed(self, project: Path, lint: Lint) -> None:
        git(project, "init", "-q", "-b", "main")
        commit(project)
        (project / "conf/train.yaml").write_text(YAML + "map_location: cuda:0\n")
        said = lint("--diff-base", "main", "--output-format", "concise", ".")
        assert concise(said) == ["conf/train.yaml:3:15"]

    def test_what_git_ignores_is_left_out(self, project: Path, lint: Lint) -> None:
        git(project, "init", "-q", "-b", "main")
        (project / ".gitignore").write_text("conf/\n")
        assert "train.yaml" not in lint(".").stdout

    def test_standard_input_is_read_by_its_name(self, lint: Lint) -> None:
        result = lint("--stdin-filename", "conf/a.yaml", "--output-format", "concise", "-", stdin=YAML)
        assert concise(result) == ["conf/a.yaml:2:9"]

    def test_fix_leaves_them_alone(self, project: Path, lint: Lint) -> None:
        assert lint("--fix", "--allow-dirty", ".").exit_code == 1
        assert (project / "conf/train.yaml").read_text() == YAML

    def test_what_is_no_file_of_settings_costs_nothing_and_says_nothing(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "data.json").write_text('{"device": "cuda", "x": "' + "a" * LARGEST + '"}')
        (tmp_path / "package.json").write_text('{"device": "cuda"}')
        (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00\n")
        (tmp_path / "a.py").write_text("x = 1\n")
        result = lint(".", "data.json", "--output-format", "json")
        assert result.stderr == "note: data.json: is larger than 256 kB: taken for data, not read\n"
        data = json.loads(result.stdout)
        assert (result.exit_code, data["files"], data["summary"]["examined"]) == (0, [], 3)

    def test_bytes_that_are_no_text_move_no_column(self, tmp_path: Path, lint: Lint) -> None:
        (tmp_path / "a.yaml").write_bytes(b"x: \xe9\xff\r\ny: {\xe9: 1, device: cuda}\r\n")
        assert concise(lint("--output-format", "concise", "a.yaml")) == ["a.yaml:2:19"]
        assert "device: cuda" in lint("a.yaml").stdout

    def test_utf_16_is_read(self, tmp_path: Path, lint: Lint) -> None:
        for name, encoding in (("a.txt", "utf-16-le"), ("b.txt", "utf-16-be")):
            text = "\ufeffnumpy\r\ntorch==2.1.0+cu118\r\n"
            (tmp_path / f"requirements-{name}").write_bytes(text.encode(encoding))
        result = lint(".")
        assert result.stdout.count(":2:1: error: TP904") == 2
        assert result.stdout.count("2 | torch==2.1.0+cu118") == 2
        assert migrate(".").exit_code == 1

    def test_many_files_in_worker_processes(self, tmp_path: Path, lint: Lint) -> None:
        for number in range(30):
            (tmp_path / f"c{number:02}.yaml").write_text(YAML)
            (tmp_path / f"p{number:02}.py").write_text(CUDA)
        result = lint("--no-cache", "-j", "2", "--output-format", "concise", ".")
        assert concise(result) == [f"c{n:02}.yaml:2:9" for n in range(30)] + [f"p{n:02}.py:3:5" for n in range(30)]
