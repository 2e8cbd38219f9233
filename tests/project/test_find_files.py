"""Which files are taken, in which order, and what is said of the others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from trees import make, paths

from torchport.project.files import Selection, find_files


def said(selection: Selection) -> list[str]:
    return [f"{result.path}: {problem.message}" for result in selection.refused for problem in result.problems]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SKIPPED = (".venv/a.py", "venv/a.py", "node_modules/a.py", "__pycache__/a.py", ".nox/a.py", ".tox/a.py", "build/a.py")
SKIPPED += ("dist/a.py", "x.egg-info/a.py", "lib/site-packages/a.py")


def test_a_folder_gives_its_python_files_in_order(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.py", "a.py", "a/b/c.pyi", "n.ipynb", "readme.md", "script", *SKIPPED)
    selection = find_files(["."])
    assert [(file.path, file.kind) for file in selection.files] == [
        ("a/b/c.pyi", "stub"),
        ("a/z.py", "source"),
        ("a.py", "source"),
        ("b.py", "source"),
        ("n.ipynb", "notebook"),
    ]
    assert said(selection) == selection.notes == []


def test_files_of_settings_and_launchers_are_taken_and_what_tools_write_is_not(tmp_path: Path) -> None:
    settings = ["a.yaml", "b.yml", "dev-requirements.txt", "requirements.txt", "c.json", "d.toml", "e.ini", "f.cfg"]
    launchers = ["Dockerfile", "Dockerfile.gpu", "Makefile", "r.bash", "s.sh", "t.slurm", "u.sbatch"]
    others = [
        "package.json",
        "sub/package-lock.json",
        "poetry.lock",
        "pnpm-lock.yaml",
        "Dockerfile.md",
        "x.yaml.bak",
        "notes.txt",
    ]
    make(tmp_path, "a.py", *settings, *launchers, *others)
    found = {file.path: file.kind for file in find_files(["."]).files}
    assert found == {"a.py": "source"} | dict.fromkeys(settings, "settings") | dict.fromkeys(launchers, "launcher")
    assert [file.kind for file in find_files(["sub/package-lock.json"]).files] == ["settings"]


def test_a_folder_of_settings_alone_is_said(tmp_path: Path) -> None:
    make(tmp_path, "conf/a.yaml")
    selection = find_files(["conf"])
    assert paths(selection) == ["conf/a.yaml"]
    assert selection.notes == ["conf: no Python file here, only settings and launchers"]


def test_a_link_to_settings_elsewhere_is_a_note(tmp_path: Path) -> None:
    make(tmp_path, "tree/a.py", "elsewhere/b.yaml")
    (tmp_path / "tree/b.yaml").symlink_to("../elsewhere/b.yaml")
    (tmp_path / "tree/gone.json").symlink_to("nowhere.json")
    selection = find_files(["tree"])
    assert (paths(selection), said(selection)) == (["tree/a.py"], [])
    assert [note.partition(":")[0] for note in selection.notes] == ["tree/b.yaml", "tree/gone.json"]


def test_an_environment_of_any_name_is_skipped(tmp_path: Path) -> None:
    make(tmp_path, "env39/lib/a.py", "env39/pyvenv.cfg", "a.py", "cache/a.py", "cache/CACHEDIR.TAG")
    assert paths(find_files(["."])) == ["a.py"]


def test_a_file_named_is_always_taken(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py", "script")
    selection = find_files(["build/a.py", "script"], ["*.py", "script"])
    assert paths(selection) == ["build/a.py", "script"]
    assert all(file.explicit for file in selection.files)


def test_a_folder_named_is_always_entered(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py")
    assert paths(find_files(["build/"])) == ["build/a.py"]


def test_a_file_is_taken_once(tmp_path: Path) -> None:
    make(tmp_path, "pkg/a.py")
    assert paths(find_files(["pkg", "./pkg/a.py", str(tmp_path / "pkg"), "pkg/../pkg/a.py"])) == ["pkg/a.py"]


def test_paths_are_shown_relative_to_the_current_folder(tmp_path: Path) -> None:
    make(tmp_path, "pkg/a.py")
    assert paths(find_files([str(tmp_path / "pkg")])) == ["pkg/a.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("tests", ["pkg/a.py", "pkg/gen_pb2.py"]),
        ("tests/", ["pkg/a.py", "pkg/gen_pb2.py"]),
        ("*_pb2.py", ["pkg/a.py", "pkg/tests/b.py"]),
        ("pkg/tests/*", ["pkg/a.py", "pkg/gen_pb2.py"]),
        ("pkg/a.py", ["pkg/gen_pb2.py", "pkg/tests/b.py"]),
        ("pkg", []),
        ("a", ["pkg/a.py", "pkg/gen_pb2.py", "pkg/tests/b.py"]),
    ],
)
def test_exclude(tmp_path: Path, pattern: str, left: list[str]) -> None:
    make(tmp_path, "pkg/a.py", "pkg/tests/b.py", "pkg/gen_pb2.py")
    assert paths(find_files(["."], [pattern])) == left


def test_a_path_that_does_not_exist_is_fatal_and_the_others_are_taken(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    selection = find_files(["nope.py", "a.py", ""])
    assert paths(selection) == ["a.py"]
    assert said(selection) == [
        "'': is no path: expected a file or a folder; is a variable unset?",
        "nope.py: does not exist: expected a file or a folder",
    ]
    assert all(problem.fatal for result in selection.refused for problem in result.problems)


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert find_files(["empty"]).notes == ["empty: no Python file here"]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "tree/a.py", "elsewhere/b.py", "elsewhere/sub/c.py")
    (tmp_path / "tree/link.py").symlink_to("../elsewhere/b.py")
    (tmp_path / "tree/folder").symlink_to("../elsewhere/sub")
    selection = find_files(["tree"])
    assert paths(selection) == ["tree/a.py"]
    real = (tmp_path / "elsewhere/b.py").resolve()
    assert said(selection) == [
        f"tree/link.py: is a link out of its folder, to {real}: not followed; give that file itself"
    ]
    assert selection.notes == ["tree/folder: is a link to a folder elsewhere: not followed"]


def test_a_link_named_by_the_user_is_not_followed_out_of_its_folder(tmp_path: Path) -> None:
    make(tmp_path, "elsewhere/b.py", "tree/real.py")
    (tmp_path / "tree/out.py").symlink_to("../elsewhere/b.py")
    (tmp_path / "tree/in.py").symlink_to("real.py")
    selection = find_files(["tree/out.py", "tree/in.py"])
    assert paths(selection) == ["tree/real.py"]
    assert [line.split(":")[0] for line in said(selection)] == ["tree/out.py"]


def test_a_link_inside_the_folder_is_the_same_file(tmp_path: Path) -> None:
    make(tmp_path, "tree/real.py", "tree/sub/b.py")
    (tmp_path / "tree/a_link.py").symlink_to("real.py")
    (tmp_path / "tree/loop").symlink_to(".")
    selection = find_files(["tree"])
    assert paths(selection) == ["tree/real.py", "tree/sub/b.py"]
    assert said(selection) == selection.notes == []


def test_a_link_to_a_file_that_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "tree/build/gen.py")
    (tmp_path / "tree/gen.py").symlink_to("build/gen.py")
    selection = find_files(["tree"])
    assert paths(selection) == []
    assert selection.notes == ["tree/gen.py: is a link to tree/build/gen.py, which is left out: not followed"]


def test_broken_and_circular_links(tmp_path: Path) -> None:
    (tmp_path / "broken.py").symlink_to("gone.py")
    (tmp_path / "circle.py").symlink_to("circle.py")
    assert said(find_files(["."])) == [
        "broken.py: is a link to a file that does not exist",
        "circle.py: is a link to a file that does not exist",
    ]
    named = find_files(["broken.py", "circle.py"])
    assert all(problem.fatal for result in named.refused for problem in result.problems)
    assert len(named.refused) == 2


def test_names_with_blanks_newlines_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    odd = ["a b.py", "new\nline.py", os.fsdecode(b"latin-\xe9.py"), "ünï.py"]
    make(tmp_path, *odd)
    assert sorted(paths(find_files(["."]))) == sorted(odd)


@pytest.mark.parametrize("tracked", [True, False])
def test_a_package_called_dist_is_entered(tmp_path: Path, tracked: bool) -> None:
    own = ("pkg/__init__.py", "pkg/build/__init__.py", "pkg/dist/__init__.py", "pkg/dist/utils.py")
    make(tmp_path, *own, "pkg/dist/dist/left.py", "build/__init__.py", "pkg/inner/build/__init__.py")
    if tracked:
        subprocess.run(["git", "init", "-q"], check=True)
    assert paths(find_files(["."])) == sorted(own, key=lambda path: path.split("/"))
