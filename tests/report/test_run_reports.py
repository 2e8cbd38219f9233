"""What the text and the JSON of a run say, and its exit status."""

from __future__ import annotations

import json
import os

import pytest

from torchport.model import FileResult, Finding, Problem
from torchport.report import as_json, text
from torchport.report.run import Run
from torchport.report.text import Style, printable

EDIT = Finding(
    code="TP101",
    name="cuda-device-string",
    line=3,
    column=10,
    end_line=3,
    end_column=16,
    message="a device string",
    effect="error",
    support="same",
    safety="safe",
    review="merge",
    old='"cuda"',
    new="shim.device()",
)
LEFT = EDIT._replace(code="TP901", name="triton", line=9, message="a Triton kernel", reason="no one\ncan", new="")
NOTE = LEFT._replace(code="TP502", effect="none", line=11, message="a flag of cuDNN", reason="does nothing here")
READ = EDIT._replace(code="TP201", name="autocast", line=7, review="read", old="a\n  b", new="c")
GLANCE = EDIT._replace(line=5, review="glance", new="")


def example(mode: str = "write") -> Run:
    changed = FileResult(
        "pkg/a.py", applied=[EDIT, GLANCE, READ], left=[LEFT, NOTE], before=b"x\n" * 12, after=b"x\n" * 11 + b"y\n"
    )
    bad = FileResult("bad.py", problems=[Problem("is not valid UTF-8", line=2)])
    return Run(mode, "portable", examined=1234, files=[bad, changed], notes=["a note"])  # type: ignore[arg-type]


def test_the_text_of_a_run() -> None:
    assert list(text.render(example())) == [
        "rewrote pkg/a.py: 3 edits",
        "",
        "Read closely:",
        "pkg/a.py: line 7",
        "",
        "Left for a person:",
        "pkg/a.py:9:10 TP901 a Triton kernel: no one can",
        "",
        "Not done:",
        "bad.py:2: is not valid UTF-8",
        "",
        "Rewrote 1 of 1,234 files: 3 edits",
        "  2  TP101 cuda-device-string",
        "  1  TP201 autocast",
        "To review: 1 to merge as they are, 1 for a glance, 1 to read closely",
        "Left for a person: 1 in 1 file",
        "Not done: 1 file",
        "Notes: 1 (shown with --verbose)",
    ]


def test_the_verbose_text_has_every_edit_and_note() -> None:
    lines = list(text.render(example("check"), verbose=True))
    assert lines[:4] == [
        'pkg/a.py:3:10 TP101 "cuda" -> shim.device()',
        'pkg/a.py:5:10 TP101 "cuda" -> (removed)',
        "pkg/a.py:7:10 TP201 a b -> c",
        "",
    ]
    assert "pkg/a.py:11:10 TP502 a flag of cuDNN: does nothing here" in lines
    assert "Would rewrite 1 of 1,234 files: 3 edits" in lines
    assert lines[-1] == "Notes: 1"


def test_places_are_those_of_the_file_as_it_is_now() -> None:
    left = LEFT._replace(now=(10, 14), reason="see line 9", reason_now="see line 10")
    file = FileResult("a.py", applied=[READ._replace(now=(9, 10))], left=[left], before=b"x\n" * 12, after=b"y\n" * 13)
    written = list(text.render(Run("write", "portable", examined=1, files=[file])))
    assert "a.py:10:14 TP901 a Triton kernel: see line 10" in written
    assert "a.py: line 9" in written
    told = list(text.render(Run("check", "portable", examined=1, files=[file])))
    assert "a.py:9:10 TP901 a Triton kernel: see line 9" in told
    assert "a.py: line 7" in told


def test_the_same_words_about_one_file_are_said_once() -> None:
    left = [LEFT, LEFT._replace(line=15), LEFT._replace(line=12), LEFT._replace(line=12, column=40)]
    other = LEFT._replace(line=13, reason="something else")
    run = Run("write", "portable", files=[FileResult("a.py", left=[*left, other]), FileResult("b.py", left=[LEFT])])
    assert list(text.render(run))[1:4] == [
        "a.py:9:10 TP901 a Triton kernel: no one can (also lines 12, 15)",
        "a.py:13:10 TP901 a Triton kernel: something else",
        "b.py:9:10 TP901 a Triton kernel: no one can",
    ]
    assert "Left for a person: 6 in 2 files" in list(text.render(run))
    assert len(list(text.render(run, verbose=True))) == 10


def test_a_run_without_findings() -> None:
    assert list(text.render(Run("write", "portable", examined=1))) == ["Nothing to rewrite in 1 file"]


def test_colour_only_where_asked_for() -> None:
    painted = "\n".join(text.render(example(), verbose=True, style=Style(True)))
    assert "\033[36mTP101\033[0m" in painted
    assert "\033" not in "\n".join(text.render(example(), verbose=True))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a b.py", "a b.py"),
        ("ünï.py", "ünï.py"),
        ("new\nline.py", "new\\nline.py"),
        (os.fsdecode(b"\xe9.py"), "\\xe9.py"),
    ],
)
def test_a_path_stays_on_one_line(path: str, shown: str) -> None:
    assert printable(path) == shown


def test_fatal_problems_are_errors_not_results() -> None:
    run = Run("write", "portable", files=[FileResult("nope.py", problems=[Problem("does not exist", fatal=True)])])
    assert list(text.errors(run)) == ["nope.py: does not exist"]
    assert "nope.py" not in "\n".join(text.render(run))


def status(mode: str = "write", refusal: str = "", **file: object) -> int:
    result = FileResult("a.py", **file)  # type: ignore[arg-type]
    return Run(mode, "portable", files=[result], refusal=refusal).exit_status  # type: ignore[arg-type]


def test_exit_status() -> None:
    assert Run("write", "portable").exit_status == 0
    assert status(left=[NOTE]) == 0
    assert status(left=[LEFT]) == 1
    assert status(problems=[Problem("cannot be read")]) == 1
    assert status(problems=[Problem("cannot be written", fatal=True)], left=[LEFT]) == 2
    assert status(applied=[EDIT], after=b"") == 0
    assert status("check", applied=[EDIT], after=b"") == 1
    assert status("diff", applied=[EDIT], after=b"") == 1
    assert status(refusal="dirty", applied=[EDIT], after=b"") == 2


def test_the_json_of_a_run() -> None:
    data = json.loads(as_json.render(example("diff")))
    assert {key: data[key] for key in ("version", "target", "mode", "exit_status", "refused", "notes")} == {
        "version": 1,
        "target": "portable",
        "mode": "diff",
        "exit_status": 1,
        "refused": None,
        "notes": ["a note"],
    }
    assert data["summary"] == {
        "examined": 1234,
        "changed": 1,
        "edits": 3,
        "left": 1,
        "notes": 1,
        "problems": 1,
        "silenced": 0,
        "rules": {"TP101": 2, "TP201": 1},
        "review": {"merge": 1, "glance": 1, "read": 1},
    }
    bad, changed = data["files"]
    assert bad["problems"] == [{"message": "is not valid UTF-8", "line": 2, "fatal": False}]
    assert (bad["status"], changed["status"]) == ("unchanged", "would be rewritten")
    first = changed["edits"][0]
    assert [first[key] for key in ("code", "line", "old", "new")] == ["TP101", 3, '"cuda"', "shim.device()"]
    assert [left["reason"] for left in changed["left"]] == ["no one\ncan"]
    assert [note["code"] for note in changed["notes"]] == ["TP502"]
    assert changed["diff"].endswith("@@ -9,4 +9,4 @@\n x\n x\n x\n-x\n+y\n")


def test_json_says_what_was_written() -> None:
    run = example()
    assert json.loads(as_json.render(run))["files"][1]["status"] == "rewritten"
    run.refusal = "dirty"
    assert json.loads(as_json.render(run))["files"][1]["status"] == "would be rewritten"
