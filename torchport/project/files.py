"""Which files there are under the paths that the user gave."""

from __future__ import annotations

import os
import pathlib
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from torchport.lazy import NamedTuple
from torchport.model import FileResult, Problem
from torchport.project.paths import shown, suffix_of, top_of
from torchport.project.patterns import clean, matches

if TYPE_CHECKING:
    from torchport.project.git import Listing

Kind = Literal["source", "stub", "notebook", "settings", "launcher"]
KINDS: dict[str, Kind] = {".py": "source", ".pyi": "stub", ".ipynb": "notebook"}
KINDS |= dict.fromkeys((".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"), "settings")
KINDS |= dict.fromkeys((".sh", ".bash", ".slurm", ".sbatch"), "launcher")
PLAIN = ("settings", "launcher")
"""What a program is started with: reported, never rewritten."""
LARGEST = 256_000
"""Bytes; a file of settings or a launcher that is larger is data, whatever its name ends in."""
LAUNCHERS = ("Dockerfile", "Makefile")
"""Names, and beginnings of names, of launchers that have no suffix of their own."""
NOT_SETTINGS = frozenset(
    {"package.json", "package-lock.json", "composer.json", "tsconfig.json", "conda-lock.yml", "pnpm-lock.yaml"}
    | {"torchport-baseline.json"}
)
"""What tools write for themselves: left out where the user does not name it."""

SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".nox", ".tox", "node_modules", "__pycache__", "site-packages"}
    | {".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".torchport_cache"}
    | {".eggs", "build", "dist"}
)
"""Never entered, unless git tracks what is in them or the user names them."""


class FoundFile(NamedTuple):
    """A file to examine. ``explicit``: the user named this very file."""

    path: str
    kind: Kind
    explicit: bool = False


class Selection:
    """The files in a fixed order, the paths that cannot be taken, and what the user should know."""

    def __init__(self) -> None:
        self.files: list[FoundFile] = []
        self.refused: list[FileResult] = []
        self.notes: list[str] = []

    def refuse(self, path: str, message: str, *, fatal: bool = False) -> None:
        """Note down a path that is not examined, with the reason."""
        self.refused.append(FileResult(path, problems=[Problem(message, fatal=fatal)]))


class _Link(NamedTuple):
    """A link to a file, and the real folder that it may not lead out of."""

    path: pathlib.Path
    root: pathlib.Path
    explicit: bool = False


class _Finder:
    """``seen``: real paths of the files taken, and which files these are, so that no file is done twice."""

    def __init__(self, exclude: tuple[str, ...]) -> None:
        self.exclude = exclude
        self.selection = Selection()
        self.seen: dict[str, int] = {}
        self.links: list[_Link] = []

    def take(self, name: str, real: str, *, explicit: bool = False) -> None:
        """``name`` is the path as shown, ``real`` the path with no link in it."""
        if real in self.seen:
            if explicit:  # also where it was found in a folder before
                at = self.seen[real]
                self.selection.files[at] = self.selection.files[at]._replace(explicit=True)
        else:
            self.seen[real] = len(self.selection.files)
            self.selection.files.append(FoundFile(name, kind_of(name) or "source", explicit))


def find_files(
    paths: Sequence[str], exclude: Sequence[str] = (), wanted: Callable[[FoundFile], bool] | None = None
) -> Selection:
    """Python files, notebooks, files of settings and launchers under ``paths``; one that is named is always taken.

    ``exclude`` holds glob patterns for paths below a given folder; ``wanted`` has the last word on each file. A link is
    never followed out of the folder given.
    """
    finder = _Finder(clean(exclude))
    for path in paths:
        if not path:
            finder.selection.refuse("''", "is no path: expected a file or a folder; is a variable unset?", fatal=True)
        elif os.path.isdir(path):
            _take_folder(finder, pathlib.Path(path))
        else:
            _take_named(finder, path)
    for link in finder.links:
        _settle_link(finder, link)
    if wanted is not None:
        finder.selection.files = [file for file in finder.selection.files if wanted(file)]
    finder.selection.files.sort(key=lambda found: found.path.split("/"))
    finder.selection.refused.sort(key=lambda result: result.path.split("/"))
    return finder.selection


def _take_named(finder: _Finder, path: str) -> None:
    is_link = os.path.islink(path)
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        what = "is a link to a file that does not exist" if is_link else "does not exist: expected a file or a folder"
        finder.selection.refuse(shown(path), what, fatal=True)
        return
    except OSError as error:
        finder.selection.refuse(shown(path), f"cannot be looked at ({error.strerror or error})", fatal=True)
        return
    if is_link:
        finder.links.append(_Link(pathlib.Path(path), pathlib.Path(path).parent.resolve(), explicit=True))
    else:
        finder.take(shown(path), os.path.realpath(path), explicit=True)
    if size > LARGEST and is_plain(shown(path)):
        finder.selection.notes.append(f"{shown(path)}: is larger than {LARGEST // 1000} kB: taken for data, not read")


def _take_folder(finder: _Finder, root: pathlib.Path) -> None:
    real_root = root.resolve()
    prefix = "" if shown(root) == "." else shown(root).rstrip("/") + "/"
    before = len(finder.selection.files), len(finder.links)
    python = False
    for relative in _names_under(finder, root, real_root):
        kind = kind_of(relative)
        if kind is None or relative.rpartition("/")[2] in NOT_SETTINGS or matches(relative, finder.exclude):
            continue
        python = python or kind not in PLAIN
        try:
            mode = _mode(f"{root}{os.sep}{relative}")
        except OSError as error:
            finder.selection.refuse(prefix + relative, f"cannot be looked at ({error.strerror or error})")
            continue
        if stat.S_ISLNK(mode):
            finder.links.append(_Link(root / relative, real_root))
        elif stat.S_ISREG(mode):
            finder.take(prefix + relative, f"{real_root}{os.sep}{relative}")
    if before == (len(finder.selection.files), len(finder.links)) and not finder.selection.refused:
        finder.selection.notes.append(f"{shown(root)}: no Python file here")
    elif not python:
        finder.selection.notes.append(f"{shown(root)}: no Python file here, only settings and launchers")


def kind_of(name: str) -> Kind | None:
    """What a file of this name is, or None for one that nobody asks for."""
    kind = KINDS.get(suffix_of(name))
    if kind is None and name.endswith(".txt") and "requirements" in name.rpartition("/")[2]:
        return "settings"
    if kind is None and name.rpartition("/")[2].startswith(LAUNCHERS) and not name.endswith((".md", ".txt", ".rst")):
        return "launcher"
    return kind


def is_plain(name: str) -> bool:
    """Whether a file of this name is one of settings, or a launcher."""
    return kind_of(name) in PLAIN


def _mode(path: str) -> int:
    """Type and mode bits of a file or a link, 0 where there is none."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _names_under(finder: _Finder, root: pathlib.Path, real_root: pathlib.Path) -> Iterator[str]:
    """Paths below ``root``, relative to it, with forward slashes."""
    if top_of(str(real_root)) is not None:
        from torchport.project import git  # not for a file that is named

        try:
            listing = git.list_files(root)
        except git.GitError as error:
            finder.selection.notes.append(f"{shown(root)}: .gitignore is not honoured: {error}")
        else:
            if listing.tracked or listing.untracked or not git.is_ignored(root):
                yield from _names_of(finder, root, listing)
                return
    yield from _walk(finder, root, real_root)


def _names_of(finder: _Finder, root: pathlib.Path, listing: Listing) -> Iterator[str]:
    for folder in listing.unreadable:
        finder.selection.refuse(shown(root / folder), "cannot be listed: expected a readable folder")
    new = (name for name in listing.untracked if not _in_skipped(root, name))
    for name in dict.fromkeys((*listing.tracked, *new)):
        if listing.has_submodules or name.endswith("/"):
            nested = root / name
            if not nested.is_symlink() and nested.is_dir():
                yield from (f"{name.rstrip('/')}/{rest}" for rest in _names_in_nested(finder, nested))
                continue
        yield name


def _in_skipped(root: pathlib.Path, name: str) -> bool:
    """Whether a file stands in a folder that is not entered, below ``root``."""
    parts = name.split("/")
    if SKIPPED_FOLDERS.isdisjoint(parts):
        return False
    folders = (root.joinpath(*parts[: i + 1]) for i, part in enumerate(parts[:-1]) if part in SKIPPED_FOLDERS)
    return parts[-1] in SKIPPED_FOLDERS or not all(map(_is_package, folders))


def _names_in_nested(finder: _Finder, nested: pathlib.Path) -> Iterator[str]:
    """A submodule or a repository inside the repository: git lists it by its own name only."""
    real = nested.resolve()
    return _names_under(finder, nested, real) if os.path.exists(nested / ".git") else _walk(finder, nested, real)


def _walk(finder: _Finder, root: pathlib.Path, real_root: pathlib.Path) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        folder = shown(pathlib.Path(error.filename)) if error.filename else shown(root)
        finder.selection.refuse(folder, f"cannot be listed ({error.strerror}): expected a readable folder")

    for folder, inner, names in os.walk(root, onerror=refuse):
        here = pathlib.Path(folder)
        inner[:] = sorted(name for name in inner if _is_entered(finder, here / name, real_root))
        relative = "" if here == root else here.relative_to(root).as_posix() + "/"
        yield from (relative + name for name in sorted(names))


def _is_entered(finder: _Finder, folder: pathlib.Path, real_root: pathlib.Path) -> bool:
    if (folder.name in SKIPPED_FOLDERS and not _is_package(folder)) or folder.name.endswith(".egg-info"):
        return False
    if os.path.exists(folder / "pyvenv.cfg") or os.path.exists(folder / "CACHEDIR.TAG"):
        return False
    if folder.is_symlink():
        if not folder.resolve().is_relative_to(real_root):
            finder.selection.notes.append(f"{shown(folder)}: is a link to a folder elsewhere: not followed")
        return False
    return True


def _is_package(folder: pathlib.Path) -> bool:
    """Whether a ``dist`` or a ``build`` is a package inside another, and nothing that was built."""
    return folder.name in ("build", "dist") and all(
        os.path.exists(place / "__init__.py") for place in (folder, folder.parent)
    )


def _settle_link(finder: _Finder, link: _Link) -> None:
    """A link to a file that is taken anyway needs nothing; any other one is named, never followed out of its folder."""
    name = shown(link.path)
    try:
        real = link.path.resolve(strict=True)
    except (OSError, RuntimeError):
        _refuse_link(finder, link, name, "is a link to a file that does not exist")
        return
    if str(real) in finder.seen:
        return
    if not real.is_relative_to(link.root):
        what = f"is a link out of its folder, to {real}: not followed; give that file itself"
        _refuse_link(finder, link, name, what)
    elif link.explicit:
        finder.take(shown(real), str(real), explicit=True)
    else:
        finder.selection.notes.append(f"{name}: is a link to {shown(real)}, which is left out: not followed")


def _refuse_link(finder: _Finder, link: _Link, name: str, what: str) -> None:
    """Links to data are common among settings: one that leads nowhere is no fault of the project."""
    if is_plain(name) and not link.explicit:
        finder.selection.notes.append(f"{name}: {what}")
    else:
        finder.selection.refuse(name, what)
