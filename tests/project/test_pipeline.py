"""The walk around the work: what reaches it, what is written, and what becomes of files that go wrong.

The work here replaces ``cuda`` by ``tpu``; a word in a file makes it go wrong.
"""

from __future__ import annotations

import marshal
import os
import re
import time
from pathlib import Path

import pytest
from trees import Git

from torchport import pipeline
from torchport.analysis.project import ProjectFacts
from torchport.lint.work import Found, Linted
from torchport.model import Edit, FileResult, Finding, Problem
from torchport.pipeline import Options, Task
from torchport.report.run import Run

PATTERN = re.compile(b"cuda")


def finding(reason: str = "") -> Finding:
    words = ("TP101", "some-rule", 1, 1, 1, 5, "message", "error", "same", "safe", "merge", "cuda", "tpu", (), reason)
    return Finding(*words)  # type: ignore[arg-type]


def work(task: Task) -> FileResult:
    result = FileResult(task.file.path)
    if b"die" in task.data:
        os.abort()
    if b"raise" in task.data:
        raise LookupError("no such thing")
    if b"hang" in task.data:
        time.sleep(60)
    if b"refuse" in task.data:
        result.problems.append(Problem("left alone: a check failed"))
        result.applied.append(finding())
    elif b"leave" in task.data:
        result.left.append(finding("no one knows"))
    else:
        result.applied.append(finding())
        result.after = task.data.replace(b"cuda", b"tpu")
    return result


def run(*paths: str, **options: object) -> Run:
    chosen = Options(**{"allow_dirty": True} | options)  # type: ignore[arg-type]
    return pipeline.run(paths or ["."], lambda facts: work, PATTERN, chosen, method="fork")


def test_a_result_of_plain_values_is_the_same_result() -> None:
    edits = (Edit(1, 2, "é"), Edit(3, 4, ""))
    first = FileResult("a.py", [finding()._replace(edits=edits)], [finding("no one knows")], [Problem("x", 3, True)])
    first.after, first.silenced = b"y", 2
    values = first.plain()
    assert marshal.loads(marshal.dumps(values)) == values
    second = FileResult.restored(values)
    for name in FileResult.__slots__:
        assert repr(getattr(second, name)) == repr(getattr(first, name)), name
    linted = Linted(Found([["TP101", 1]], [["x", 3]], 4), "digest", (["TP101", 2],), b"x", b"y")
    assert repr(Linted.restored(marshal.loads(marshal.dumps(linted.plain())))) == repr(linted)


def make(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def messages(result: Run) -> list[str]:
    return [f"{path}: {problem.message}" for path, problem in result.problems()]


def test_writes_what_changes_and_reads_on_only_where_a_word_matches(tmp_path: Path) -> None:
    make(tmp_path, a="cuda 1\n", b="nothing\n", c="leave cuda\n")
    result = run()
    assert (tmp_path / "a.py").read_text() == "tpu 1\n"
    assert (tmp_path / "b.py").read_text() == "nothing\n"
    assert result.examined == 3
    assert [file.path for file in result.files] == ["a.py", "c.py"]
    assert [file.path for file in result.changed()] == ["a.py"]
    assert result.exit_status == 1


@pytest.mark.parametrize("mode", ["diff", "check"])
def test_only_tells(tmp_path: Path, mode: str) -> None:
    make(tmp_path, a="cuda\n")
    result = run(mode=mode)
    assert (tmp_path / "a.py").read_text() == "cuda\n"
    assert [(file.before, file.after) for file in result.files] == [(b"cuda\n", b"tpu\n")]
    assert result.exit_status == 1


@pytest.mark.parametrize("mode", ["write", "diff", "check"])
def test_nothing_to_do(tmp_path: Path, mode: str) -> None:
    make(tmp_path, a="x\n")
    result = run(mode=mode)
    assert (result.files, result.exit_status) == ([], 0)


def test_all_done_is_status_0(tmp_path: Path) -> None:
    make(tmp_path, a="cuda\n")
    assert run().exit_status == 0
    assert run().exit_status == 0


def test_a_file_that_kills_its_process_costs_one_line_and_the_rest_is_done(tmp_path: Path) -> None:
    make(tmp_path, **{f"f{n:02}": "cuda\n" for n in range(40)}, dies="die cuda\n", dies_too="die cuda\n")
    result = run(jobs=3)
    assert messages(result) == [
        "dies.py: stopped the process that read it (killed by SIGABRT): left as it was; look at it by hand",
        "dies_too.py: stopped the process that read it (killed by SIGABRT): left as it was; look at it by hand",
    ]
    assert len(result.changed()) == 40
    assert {(tmp_path / f"f{n:02}.py").read_text() for n in range(40)} == {"tpu\n"}
    assert (tmp_path / "dies.py").read_text() == "die cuda\n"
    assert result.exit_status == 1


def test_an_exception_is_an_error_of_this_program(tmp_path: Path) -> None:
    make(tmp_path, a="cuda\n", raises="raise cuda\n")
    result = run()
    (line,) = messages(result)
    assert re.fullmatch(
        r"raises\.py: internal error: LookupError: no such thing \(project/test_pipeline\.py:\d+\): left as it was;"
        r" please report this",
        line,
    )
    assert (tmp_path / "a.py").read_text() == "tpu\n"
    assert result.exit_status == 2


def test_a_file_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "TIME_LIMIT", 0.5)
    make(tmp_path, a="cuda\n", hangs="hang cuda\n")
    result = run()
    assert messages(result) == [
        "hangs.py: takes too long (no result after 0.5 seconds): left as it was; look at it by hand"
    ]
    assert (tmp_path / "a.py").read_text() == "tpu\n"
    assert result.exit_status == 1


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_the_result_does_not_depend_on_the_number_of_processes(tmp_path: Path, jobs: int) -> None:
    make(tmp_path, **{f"f{n:02}": f"{'leave ' * (n % 3)}cuda\n" for n in range(60)})
    result = run(mode="check", jobs=jobs)
    assert [file.path for file in result.files] == [f"f{n:02}.py" for n in range(60)]
    assert [bool(file.after) for file in result.files] == [n % 3 == 0 for n in range(60)]


def test_nothing_counts_as_applied_in_a_file_that_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, a="refuse cuda\n")
    result = run()
    assert list(result.edits()) == list(result.left()) == []
    assert messages(result) == ["a.py: left alone: a check failed"]


def test_a_file_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    make(tmp_path, a="cuda\n", b="cuda\n", c="cuda\n")
    (tmp_path / "b.py").chmod(0o444)
    result = run()
    assert messages(result) == ["b.py: is read-only: left as it was; make it writable and run again"]
    assert [(tmp_path / name).read_text() for name in ("a.py", "b.py", "c.py")] == ["tpu\n", "cuda\n", "tpu\n"]
    assert [path for path, _ in result.edits()] == ["a.py", "c.py"]
    assert result.exit_status == 2


def test_files_marked_as_generated_are_skipped_unless_named(tmp_path: Path) -> None:
    make(tmp_path, a="# @" + "generated\ncuda\n")
    result = run()
    assert result.notes == ["a.py: is marked as generated: not rewritten; change what generates it"]
    assert result.exit_status == 0
    assert len(run("a.py", mode="check").changed()) == 1


def test_notebooks_are_reported_not_rewritten(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text('{"cells": ["x.cuda()"]}')
    (tmp_path / "b.ipynb").write_text('{"cells": []}')
    result = run()
    (line,) = messages(result)
    assert line.startswith("a.ipynb: is a notebook: notebooks are not rewritten by this version")
    assert result.exit_status == 1


def test_utf_16_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("x.cuda()\n".encode("utf-16"))
    assert len(run(mode="check").files) == 1


def test_every_definition_of_a_cuda_method_is_handed_on(tmp_path: Path) -> None:
    own = "class {}:\n    def cuda(self): ...\n"
    make(tmp_path, a=own.format("B"), b="cuda\n", c=own.format("A"))
    seen: list[ProjectFacts] = []
    pipeline.run(
        ["."],
        lambda facts: seen.append(facts) or work,
        PATTERN,
        Options(mode="check"),
        method="fork",  # type: ignore[func-returns-value]
    )
    assert [[own.name for own in facts.own] for facts in seen] == [["A", "B"]]


def test_uncommitted_changes_stop_a_rewrite(tmp_path: Path, git: Git) -> None:
    make(tmp_path, a="cuda\n", b="x\n")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    make(tmp_path, b="y\n")
    result = run(allow_dirty=False)
    assert result.refusal == (
        "uncommitted changes in b.py: nothing was rewritten;"
        " commit or stash first, look at --diff, or give --allow-dirty"
    )
    assert (tmp_path / "a.py").read_text() == "cuda\n"
    assert result.exit_status == 2
    assert run(allow_dirty=False, mode="check").exit_status == 1
    assert run().exit_status == 0
    assert (tmp_path / "a.py").read_text() == "tpu\n"


def test_a_dirty_tree_with_nothing_to_rewrite_is_fine(tmp_path: Path, git: Git) -> None:
    make(tmp_path, a="x\n")
    assert run(allow_dirty=False).exit_status == 0


def test_many_dirty_files_are_counted(tmp_path: Path, git: Git) -> None:
    make(tmp_path, **{f"f{n}": "cuda\n" for n in range(8)})
    result = run(allow_dirty=False)
    assert "f0.py, f1.py, f2.py, f3.py, f4.py and 3 more" in result.refusal


def test_files_under_no_version_control_are_rewritten_and_said(tmp_path: Path) -> None:
    make(tmp_path, a="cuda\n", b="cuda\n")
    result = run(allow_dirty=False)
    assert result.notes == ["2 rewritten files: not under version control, so git cannot give the old text back"]
    assert result.exit_status == 0


def test_git_that_is_missing_asks_for_allow_dirty(tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, a="cuda\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("a.py", allow_dirty=False)
    assert "git cannot tell whether there are uncommitted changes" in result.refusal
    assert "--allow-dirty" in result.refusal
    assert (tmp_path / "a.py").read_text() == "cuda\n"
