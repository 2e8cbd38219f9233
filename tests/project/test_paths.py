"""Paths as texts are what pathlib makes of them."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from torchport.project.paths import folder_of, folders_of, shown, stem_of, suffix_of, top_of, with_parents

PATHS = ("a.py", "./a.py", "b//c/./a.tar.gz", "../a", "/a.py", "/x/y/.hidden", "x/a.", "x/.a.py", "é/ü.py")


@pytest.mark.parametrize("path", PATHS)
def test_parts_of_a_path(path: str) -> None:
    theirs = PurePath(path)
    assert (stem_of(path), suffix_of(path)) == (theirs.stem, theirs.suffix)
    assert folders_of(path) == theirs.parent.parts
    assert folder_of(path) == theirs.parent.name


@pytest.mark.parametrize("path", ["/", "/x", "/x/y/z"])
def test_a_folder_and_those_above_it(path: str) -> None:
    assert list(with_parents(path)) == [path, *map(str, PurePath(path).parents)]


def as_pathlib_has_it(path: str | Path) -> str:
    """What stands in messages, by pathlib."""
    made, here = Path(path), Path.cwd()
    return (made.relative_to(here) if made.is_absolute() and made.is_relative_to(here) else made).as_posix()


@pytest.mark.parametrize("folder", [".", "/"])
def test_what_is_shown(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here" / folder)
    here = str(Path.cwd()).rstrip("/")
    inside = [f"{here}{rest}" for rest in ("", "/", "/a.py", "/b//./c", "side/a.py", "/../a.py")]
    for path in (*PATHS, *inside, "", ".", "./", "/", "..", str(tmp_path), tmp_path / "here/a.py"):
        assert shown(path) == as_pathlib_has_it(path), path


def test_the_top_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/.git").write_text("gitdir: elsewhere\n")
    assert top_of(str(tmp_path / "a/b")) == top_of(str(tmp_path / "a")) == str(tmp_path / "a")
    assert top_of(str(tmp_path)) != str(tmp_path / "a")
