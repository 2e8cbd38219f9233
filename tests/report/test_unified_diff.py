"""The diff is what git and patch take: applying it gives the new file, byte for byte."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from torchport.report.diff import unified

LINES = [b"line %d\n" % n for n in range(40)]
OLD = b"".join(LINES)
PAIRS = {
    "one line": (OLD, OLD.replace(b"line 20\n", b"changed\n")),
    "first and last line": (OLD, OLD.replace(b"line 0\n", b"first\n").replace(b"line 39\n", b"last\n")),
    "two hunks": (OLD, OLD.replace(b"line 5\n", b"five\n").replace(b"line 30\n", b"")),
    "inserted at the top": (OLD, b"import x\n" + OLD),
    "appended": (OLD, OLD + b"more\n"),
    "crlf": (OLD.replace(b"\n", b"\r\n"), OLD.replace(b"line 7\n", b"seven\n").replace(b"\n", b"\r\n")),
    "mixed line ends": (b"a\r\nb\nc\r\n", b"a\r\nB\nc\r\n"),
    "no newline at the end of both": (b"a\nb", b"a\nc"),
    "no newline at the end of either": (b"a\nb\nlast", b"A\nb\nlast"),
    "newline at the end added": (b"a\nb", b"a\nb\n"),
    "newline at the end removed": (b"a\nb\n", b"a\nb"),
    "byte-order mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfA\nb\n"),
    "latin-1": (b"# coding: latin-1\nx = '\xe9'\ny = 1\n", b"# coding: latin-1\nx = '\xe9'\ny = 2\n"),
    "form feeds and separators": ("a\n\x0c\nb\u2028c\x85d\x1c\n".encode(), "a\n\x0c\nB\u2028c\x85d\x1c\n".encode()),
    "from empty": (b"", b"x\n"),
    "to empty": (b"x\n", b""),
    "one line to many": (b"x\n", OLD),
}


def apply(tmp_path: Path, name: str, before: bytes, after: bytes, *command: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before)
    diff = unified(name, before, after)
    subprocess.run(command, input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert file.read_bytes() == after


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS.keys())
def test_git_applies_it(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "a.py").write_bytes(before)
    diff = unified("a.py", before, after)
    subprocess.run(["git", "apply", "--check"], input=diff, check=True, capture_output=True)
    apply(tmp_path, "a.py", before, after, "git", "apply")


@pytest.mark.parametrize(
    "name", ["pkg/a.py", "with blank.py", 'quote".py', "back\\slash.py", "tab\t.py", "ünï.py", os.fsdecode(b"\xe9.py")]
)
def test_git_applies_it_whatever_the_name(tmp_path: Path, name: str) -> None:
    apply(tmp_path, name, *PAIRS["two hunks"], "git", "apply")


def test_names_are_those_of_the_repository_wherever_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub/inner").mkdir(parents=True)
    (tmp_path / "sub/inner/a.py").write_bytes(OLD)
    monkeypatch.chdir(tmp_path / "sub")
    before, after = PAIRS["two hunks"]
    for name in ("inner/a.py", str(tmp_path / "sub/inner/a.py"), "../sub/inner/a.py"):
        assert b"+++ b/sub/inner/a.py\n" in unified(name, before, after)
    apply(tmp_path / "sub", "inner/a.py", before, after, "git", "apply")


def test_random_edits_come_out(tmp_path: Path) -> None:
    choose = random.Random(7)
    for _ in range(60):
        new = [line for line in LINES if choose.random() > 0.1]
        for _ in range(choose.randrange(6)):
            new.insert(choose.randrange(len(new) + 1), b"new %d\n" % choose.randrange(5))
        after = b"".join(new)
        if after != OLD:
            apply(tmp_path, "a.py", OLD, after, "git", "apply")


def test_the_text_of_a_hunk() -> None:
    before, after = b"a\nb\nc\nd\ne\nf\ng\nh", b"a\nb\nc\nd\nE\nf\ng\nh"
    assert unified("x/a.py", before, after) == (
        b"diff --git a/x/a.py b/x/a.py\n--- a/x/a.py\n+++ b/x/a.py\n"
        b"@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n\\ No newline at end of file\n"
    )
    assert unified("a.py", before, before) == b""
