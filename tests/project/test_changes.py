"""Which lines a branch has changed, as git has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import Git

from torchport.project.changes import changed_lines
from torchport.project.git import GitError

TEXT = "".join(f"line {number}\n" for number in range(1, 11))
NAMES = ["a.py", "with blank.py", 'quote".py', "tab\there.py", "\u00fc\u6771.py", "b/+++ b/c.py", "-x.py"]


def commit(git: Git, message: str = "c") -> None:
    git("add", "-A")
    git("commit", "-q", "-m", message)


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_git_quotes(tmp_path: Path, git: Git, name: str) -> None:
    write(tmp_path, name, TEXT)
    commit(git)
    write(tmp_path, name, TEXT.replace("line 5\n", "line five\nnew\n"))
    lines = changed_lines([str(tmp_path)], "HEAD")
    path = str(tmp_path / name)
    assert lines.has(path)
    assert [n for n in range(1, 13) if lines.meets(path, n, n)] == [5, 6]


def test_lines_that_look_like_a_header(tmp_path: Path, git: Git) -> None:
    write(tmp_path, "a.py", TEXT)
    write(tmp_path, "z.py", TEXT)
    commit(git)
    write(tmp_path, "a.py", TEXT.replace("line 3\n", "++ b/z.py\n@@ -1 +1,9 @@\n-- a/z.py\n"))
    lines = changed_lines([str(tmp_path)], "HEAD")
    assert list(lines.files) == [str(tmp_path / "a.py")]
    assert [n for n in range(1, 13) if lines.meets(str(tmp_path / "a.py"), n, n)] == [3, 4, 5]


def test_what_is_only_deleted_or_moved_has_no_lines(tmp_path: Path, git: Git) -> None:
    for name in ("a.py", "gone.py", "old.py"):
        write(tmp_path, name, TEXT + name)
    commit(git)
    write(tmp_path, "a.py", TEXT.replace("line 2\n", "") + "a.py")
    (tmp_path / "gone.py").unlink()
    git("mv", "old.py", "new.py")
    assert changed_lines([str(tmp_path)], "HEAD").files == {}


def test_staged_and_new_files_count(tmp_path: Path, git: Git) -> None:
    write(tmp_path, "a.py", TEXT)
    commit(git)
    write(tmp_path, "a.py", "staged\n" + TEXT)
    git("add", "a.py")
    write(tmp_path, "sub/new.py", "x\n")
    lines = changed_lines([str(tmp_path / "a.py")], "HEAD")
    assert lines.meets(str(tmp_path / "a.py"), 1, 1)
    assert not lines.meets(str(tmp_path / "a.py"), 2, 9)
    assert lines.meets(str(tmp_path / "sub/new.py"), 7, 7)


@pytest.mark.parametrize("revision", ["nope", "--output=x", "HEAD:a.py"])
def test_what_is_no_commit(tmp_path: Path, git: Git, revision: str) -> None:
    write(tmp_path, "a.py", TEXT)
    commit(git)
    with pytest.raises(GitError, match="is no revision"):
        changed_lines([str(tmp_path)], revision)


def test_no_common_commit(tmp_path: Path, git: Git) -> None:
    write(tmp_path, "a.py", TEXT)
    commit(git)
    first = git("rev-parse", "HEAD").strip()
    git("checkout", "-q", "--orphan", "other")
    commit(git, "other")
    with pytest.raises(GitError, match="fetch-depth: 0"):
        changed_lines([str(tmp_path)], first)


def test_outside_of_a_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is in no git repository"):
        changed_lines([str(tmp_path)], "HEAD")
