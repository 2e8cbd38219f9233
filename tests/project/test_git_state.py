"""Files that git lists, and what it could not give back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import Git, make, paths

from torchport.project.files import find_files
from torchport.project.git import GitError, find_dirty, find_repository, run_git


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def commit(git: Git, **options: Path) -> None:
    git("add", "-A", "-f", **options)
    git("commit", "-q", "-m", "all", **options)


def test_ignored_files_are_left_out(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py", "secret/b.py", "new.py", "sub/c.py", "sub/d.py", "venv/lib/e.py")
    (tmp_path / ".gitignore").write_text("secret/\n")
    (tmp_path / "sub/.gitignore").write_text("d.py\n")
    git("add", "a.py")
    assert paths(find_files(["."])) == ["a.py", "new.py", "sub/c.py"]
    assert paths(find_files(["sub"])) == ["sub/c.py"]


def test_tracked_files_are_taken_wherever_they_are(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "build/a.py", "dist/b.py")
    git("add", "-f", "build")
    assert paths(find_files(["."])) == ["build/a.py"]


def test_an_ignored_folder_named_by_the_user_is_taken(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "shared/a.py")
    (tmp_path / ".gitignore").write_text("shared/\n")
    assert paths(find_files(["shared"])) == ["shared/a.py"]


def test_a_tracked_file_that_is_deleted_is_no_file(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py", "b.py")
    commit(git)
    (tmp_path / "a.py").unlink()
    assert paths(find_files(["."])) == ["b.py"]


def test_repositories_inside_and_submodules(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py", "inner/b.py", "inner/ignored.py", "module.x/c.py")
    for name in ("inner", "module.x"):
        git("init", "-q", folder=tmp_path / name)
    (tmp_path / "inner/.gitignore").write_text("ignored.py\n")
    commit(git, folder=tmp_path / "module.x")
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./module.x", "module.x")
    assert paths(find_files(["."])) == ["a.py", "inner/b.py", "module.x/c.py"]


def test_a_merge_conflict_lists_a_file_once(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py")
    commit(git)
    git("checkout", "-q", "-b", "other")
    (tmp_path / "a.py").write_text("x = 1\n")
    git("commit", "-q", "-am", "one")
    git("checkout", "-q", "-")
    (tmp_path / "a.py").write_text("x = 2\n")
    git("commit", "-q", "-am", "two")
    with pytest.raises(Exception, match="merge"):
        git("merge", "other")
    assert paths(find_files(["."])) == ["a.py"]
    assert find_dirty(["."], ["a.py"]).paths == ("a.py",)


def test_inside_a_hook_the_folder_asked_about_counts(tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert paths(find_files(["."])) == ["a.py"]


def test_a_clean_tree_is_not_dirty(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py", "b c.py")
    commit(git)
    (tmp_path / "notes.txt").write_text("untracked and not rewritten\n")
    assert find_dirty(["."], ["a.py", "b c.py"]) == ((), ())


def test_changed_staged_and_renamed_files_are_dirty(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "pkg/a.py", "pkg/staged.py", "pkg/data.txt", "outside.py")
    (tmp_path / "pkg/old.py").write_text("x = 1\n" * 20)
    commit(git)
    for name in ("pkg/data.txt", "outside.py", "pkg/staged.py"):
        (tmp_path / name).write_text("changed\n")
    git("add", "pkg/staged.py")
    git("mv", "pkg/old.py", "pkg/new.py")
    assert find_dirty(["pkg"], ["pkg/a.py"]).paths == ("pkg/data.txt", "pkg/new.py", "pkg/staged.py")
    assert find_dirty(["pkg/a.py"], ["pkg/a.py"]).paths == ()


def test_an_untracked_file_is_dirty_where_it_would_be_rewritten(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "a.py", "new.py")
    git("add", "a.py")
    git("commit", "-q", "-m", "one")
    assert find_dirty(["."], ["a.py"]).paths == ()
    assert find_dirty(["."], ["a.py", "new.py"]).paths == ("new.py",)


def test_no_repository_and_ignored_files_are_said(tmp_path: Path, git: Git) -> None:
    make(tmp_path, "inside/a.py")
    (tmp_path / ".gitignore").write_text("inside/\n")
    assert find_dirty(["inside"], ["inside/a.py"]) == ((), ("inside/a.py",))


def test_without_a_repository(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    assert find_repository(tmp_path) is None
    assert find_dirty(["."], ["a.py"]) == ((), ("a.py",))


def test_many_files_need_several_commands(tmp_path: Path, git: Git) -> None:
    names = [f"folder/{'long' * 20}_{number}.py" for number in range(1100)]
    make(tmp_path, *names)
    commit(git)
    (tmp_path / names[1050]).write_text("changed\n")
    assert find_dirty(names, names).paths == (names[1050],)


def test_git_that_is_missing_is_an_error_not_a_crash(tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match=r"git cannot be run \(No such file or directory\)"):
        run_git(tmp_path, "status")
    selection = find_files(["."])
    assert paths(selection) == ["a.py"]
    assert selection.notes == [".: .gitignore is not honoured: git cannot be run (No such file or directory)"]


def test_a_broken_repository_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    selection = find_files(["."])
    assert paths(selection) == ["a.py"]
    assert len(selection.notes) == 1
    assert ".gitignore is not honoured: fatal: not a git repository" in selection.notes[0]


def test_names_that_git_would_quote(tmp_path: Path, git: Git) -> None:
    odd = [os.fsdecode(b"caf\xe9.py"), "tab\t.py", 'quote".py', "*.py", ":(top)x.py"]
    make(tmp_path, *odd)
    assert sorted(paths(find_files(["."]))) == sorted(odd)
    assert sorted(find_dirty(["."], odd).paths) == sorted(odd)
