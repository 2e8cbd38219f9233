"""``torchport migrate`` as a user runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from real_command import Torchport

from torchport.catalog import load_rules
from torchport.catalog.prefilter import Prefilter
from torchport.model import FileResult
from torchport.pipeline import Migration, Options, run
from torchport.report.run import Run
from torchport.rewrite import Migrator

GOOD = "import torch\n\nx = torch.ones(2).cuda()\n"
DONE = "import torch\nfrom torchport import shim\n\nx = torch.ones(2).to(shim.device())\n"
LEFT = 'import os\n\nos.system("nvidia-smi")\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.py"
    file.write_text(GOOD)
    return file


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_rewrites_and_says_so(good: Path, command: Torchport) -> None:
    result = command("migrate", ".")
    assert result.returncode == 0
    assert good.read_text() == DONE
    assert result.stdout.splitlines()[:4] == [
        "rewrote good.py: 1 edit",
        "",
        "Rewrote 1 of 1 file: 1 edit",
        "  1  TP103 cuda-method",
    ]
    assert result.stderr == "note: good.py: not under version control, so git cannot give the old text back\n"


def test_a_second_run_changes_nothing(good: Path, command: Torchport) -> None:
    command("migrate", ".")
    result = command("migrate", ".")
    assert (result.returncode, good.read_text()) == (0, DONE)
    assert result.stdout.startswith("Nothing to rewrite in 1 file\n")


def test_check_only_tells(good: Path, command: Torchport) -> None:
    result = command("migrate", "--check", "good.py")
    assert (result.returncode, good.read_text()) == (1, GOOD)
    assert "would rewrite good.py: 1 edit" in result.stdout


def test_diff_is_one_that_git_applies(tmp_path: Path, good: Path, command: Torchport) -> None:
    (tmp_path / "crlf.py").write_bytes(GOOD.replace("\n", "\r\n").encode())
    git(tmp_path, "init", "-q")
    result = command("migrate", "--diff", ".")
    assert result.returncode == 1
    assert good.read_text() == GOOD
    assert "Would rewrite 2 of 2 files" in result.stderr
    subprocess.run(["git", "apply", "--check"], cwd=tmp_path, input=result.stdout.encode(), check=True)
    subprocess.run(["git", "apply"], cwd=tmp_path, input=result.stdout.encode(), check=True)
    assert good.read_text() == DONE
    assert (tmp_path / "crlf.py").read_bytes() == DONE.replace("\n", "\r\n").encode()


def test_what_is_left_is_said_and_gives_status_1(tmp_path: Path, command: Torchport) -> None:
    (tmp_path / "left.py").write_text(LEFT)
    result = command("migrate", ".")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "Left for a person:"
    assert lines[1].startswith("left.py:3:11 TP902 ")
    assert lines[-2:] == ["Nothing to rewrite in 1 file", "Left for a person: 1 in 1 file"]


def test_verbose_lists_every_edit(good: Path, command: Torchport) -> None:
    result = command("migrate", "-v", "--check", ".")
    assert result.stdout.splitlines()[0] == "good.py:3:5 TP103 torch.ones(2).cuda() -> torch.ones(2).to(shim.device())"


def test_json(tmp_path: Path, good: Path, command: Torchport) -> None:
    (tmp_path / "left.py").write_text(LEFT)
    result = command("migrate", "--diff", "--output-format", "json", ".", "nope.py")
    data = json.loads(result.stdout)
    assert (result.returncode, data["exit_status"]) == (2, 2)
    assert data["summary"]["rules"] == {"TP103": 1}
    assert [file["path"] for file in data["files"]] == ["good.py", "left.py", "nope.py"]
    assert "+x = torch.ones(2).to(shim.device())" in data["files"][0]["diff"]
    assert data["files"][1]["left"][0]["line"] == 3
    assert data["files"][2]["problems"][0]["fatal"] is True


def test_select_and_ignore(tmp_path: Path, good: Path, command: Torchport) -> None:
    assert command("migrate", "--check", "--select", "TP5,TP201", ".").returncode == 0
    assert command("migrate", "--check", "--ignore", "cuda-method", ".").returncode == 0
    assert command("migrate", "--check", "--select", "TP1", ".").returncode == 1


def test_a_rule_that_does_not_exist(good: Path, command: Torchport) -> None:
    result = command("migrate", "--select", "cuda-metod", ".")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "Error: no rule is called 'cuda-metod'; did you mean cuda-method?"
    assert good.read_text() == GOOD


def test_a_target_that_is_not_there(good: Path, command: Torchport) -> None:
    result = command("migrate", "--target", "gpu", ".")
    assert result.returncode == 2
    assert "--target" in result.stderr.splitlines()[-1]
    assert good.read_text() == GOOD


def test_exclude(tmp_path: Path, good: Path, command: Torchport) -> None:
    assert "Nothing to rewrite" not in command("migrate", "--check", ".").stdout
    assert command("migrate", "--check", "--exclude", "good*", ".").returncode == 0


def test_a_stub_is_never_rewritten(tmp_path: Path, command: Torchport) -> None:
    (tmp_path / "a.pyi").write_text(GOOD)
    result = command("migrate", ".")
    assert (tmp_path / "a.pyi").read_text() == GOOD
    assert result.returncode == 0
    assert "Notes: 1" in result.stdout


def test_a_notebook_is_reported(tmp_path: Path, command: Torchport) -> None:
    (tmp_path / "a.ipynb").write_text('{"cells": [{"source": "x.cuda()"}]}')
    result = command("migrate", ".")
    assert result.returncode == 1
    assert "a.ipynb: is a notebook" in result.stdout


def test_a_dirty_tree_is_refused_with_the_way_round(tmp_path: Path, good: Path, command: Torchport) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    good.write_text(GOOD + "# mine\n")
    result = command("migrate", ".")
    assert (result.returncode, good.read_text()) == (2, GOOD + "# mine\n")
    assert result.stdout == ""
    assert result.stderr == (
        "error: uncommitted changes in good.py: nothing was rewritten;"
        " commit or stash first, look at --diff, or give --allow-dirty\n"
    )
    assert command("migrate", "--check", ".").returncode == 1
    assert command("migrate", "--diff", ".").returncode == 1
    assert command("migrate", "--allow-dirty", ".").returncode == 0
    assert good.read_text() == DONE + "# mine\n"


def test_the_same_output_for_any_number_of_processes(tmp_path: Path, command: Torchport) -> None:
    for number in range(45):
        (tmp_path / f"f{number}.py").write_text((GOOD, LEFT, "x = 1\n")[number % 3])
    one, two, many = (command("migrate", "-v", "--check", "-j", jobs, ".") for jobs in ("1", "2", "8"))
    assert one.stdout == two.stdout == many.stdout
    assert one.stdout.count("TP103") == 16


def fields(run: Run) -> list[object]:
    """All that a run has to say, to be compared."""
    files = [[getattr(file, name) for name in FileResult.__slots__] for file in run.files]
    return [files, *(getattr(run, name) for name in Run.__slots__ if name != "files")]


def test_spawned_processes_do_the_same_as_forked_ones(
    tmp_path: Path, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = tuple(rule for rule in load_rules() if not rule.lint_only)
    work = Migration(Migrator(rules, "portable"))
    spawned, forked = (
        run(["."], lambda facts: work, Prefilter(rules), Options(mode="check"), method=method)
        for method in ("spawn", "fork")
    )
    assert [file.after for file in spawned.files] == [DONE.encode()]
    assert fields(spawned) == fields(forked)


def test_no_colour_and_no_progress_bar_outside_a_terminal(tmp_path: Path, command: Torchport) -> None:
    for number in range(45):
        (tmp_path / f"f{number}.py").write_text(GOOD)
    result = command("migrate", "--check", ".")
    assert "\033" not in result.stdout + result.stderr
    assert "Examining" not in result.stderr


@pytest.mark.parametrize(("no_color", "painted"), [("", True), ("1", False)])
def test_a_terminal_has_colour_and_a_progress_bar(tmp_path: Path, no_color: str, painted: bool) -> None:
    for number in range(45):
        (tmp_path / f"f{number}.py").write_text(GOOD)
    shown = _in_terminal(tmp_path, "migrate", "--check", ".", NO_COLOR=no_color)
    assert "Examining" in shown
    assert ("\033[1mWould rewrite 45 of 45 files" in shown) is painted


def _in_terminal(folder: Path, *arguments: str, **env: str) -> str:
    mine, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm"} | env
    with subprocess.Popen(
        [sys.executable, "-m", "torchport", *arguments], cwd=folder, env=environment, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(mine, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(mine)
    return shown.decode()


def test_a_reader_that_goes_away(tmp_path: Path, command: Torchport) -> None:
    for number in range(20):
        (tmp_path / f"f{number}.py").write_text(GOOD * 100)
    script = '"$@" 2> err | head -1; status=${PIPESTATUS[0]}; cat err >&2; exit $status'
    result = command("migrate", "--diff", ".", before=("bash", "-c", script, "bash"))
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_odd_file_names(tmp_path: Path, command: Torchport) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    (tmp_path / name).write_text(GOOD)
    result = command("migrate", ".")
    assert result.returncode == 0
    assert "rewrote caf\\xe9.py: 1 edit" in result.stdout
    assert (tmp_path / name).read_text() == DONE


def test_results_that_cannot_be_printed(good: Path, command: Torchport) -> None:
    result = command("migrate", ".", before=("sh", "-c", '"$@" > /dev/full', "sh"))
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "error: cannot go on: [Errno 28] No space left on device"
    assert good.read_text() == DONE
