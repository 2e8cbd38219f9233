"""What git knows: which files a folder holds, and which of them it could not give back."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from torchport.lazy import NamedTuple
from torchport.model import UserError
from torchport.project.paths import shown, top_of

_REPOSITORY_VARIABLES = frozenset(
    f"GIT_{name}" for name in ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "COMMON_DIR", "PREFIX")
)
"""Set inside git hooks; they would override the folder that is asked about."""
_BATCH = 500
"""Paths for one git command: the length of a command line is limited."""


class Listing(NamedTuple):
    """Paths relative to the folder asked about. A path that ends in ``/`` is a repository of its own."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]
    unreadable: tuple[str, ...]
    has_submodules: bool


class Dirty(NamedTuple):
    """What stands in the way of a rewrite, and what git does not look after at all."""

    paths: tuple[str, ...]
    """Changed or untracked files, as shown to the user."""
    unversioned: tuple[str, ...]
    """Files that are in no repository, or ignored in theirs."""


class GitError(UserError):
    """git is missing, or refused; the text is the first line of what it said."""


def run_git(folder: pathlib.Path, *arguments: str) -> tuple[bytes, bytes]:
    """Output and error output of one git command in ``folder``. Raises GitError where it fails."""
    import subprocess

    environment = {key: value for key, value in os.environ.items() if key not in _REPOSITORY_VARIABLES}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    literal = ("--literal-pathspecs",) if "--" in arguments else ()
    command = ("git", *literal, "-c", "core.fsmonitor=false", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, env=environment, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise GitError(f"git cannot be run ({error.strerror or error})") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(said[0] if said else f"git ended with status {done.returncode}")
    return done.stdout, done.stderr


def find_repository(folder: pathlib.Path) -> pathlib.Path | None:
    """The top of the work tree that holds ``folder`` (an absolute path), or None."""
    top = top_of(str(folder))
    return None if top is None else pathlib.Path(top)


def list_files(folder: pathlib.Path) -> Listing:
    """The files of ``folder`` that git tracks, and those that it neither tracks nor ignores. Raises GitError."""
    tracked, _ = run_git(folder, "ls-files", "-z", "--cached")
    untracked, said = run_git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    top = find_repository(folder.resolve())
    has_submodules = top is not None and os.path.exists(top / ".gitmodules")
    return Listing(_names(tracked), _names(untracked), tuple(_unreadable(said)), has_submodules)


def is_ignored(folder: pathlib.Path) -> bool:
    """Whether git was told to leave this very folder alone."""
    try:
        run_git(folder, "check-ignore", "-q", ".")
    except GitError:
        return False
    return True


def _names(output: bytes) -> tuple[str, ...]:
    return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)


def _unreadable(said: bytes) -> Iterator[str]:
    start = "warning: could not open directory '"
    for line in os.fsdecode(said).splitlines():
        if line.startswith(start):
            yield line[len(start) :].partition("'")[0]


def find_dirty(given: Sequence[str], rewritten: Sequence[str]) -> Dirty:
    """What git could not give back after a rewrite of the files ``rewritten`` under the paths ``given``.

    Tracked files with changes count wherever they are under a given path, untracked files only where they would be
    rewritten. Raises GitError.
    """
    dirty: dict[str, None] = {}
    unversioned: list[str] = []
    for top, paths in _by_repository(given).items():
        if top is not None:
            dirty |= dict.fromkeys(_changed(top, paths))
    for top, paths in _by_repository(rewritten).items():
        if top is None:
            unversioned += paths
            continue
        dirty |= dict.fromkeys(_changed(top, paths))
        new, ignored = _untracked(top, paths)
        dirty |= dict.fromkeys(new)
        unversioned += ignored
    return Dirty(tuple(sorted(dirty)), tuple(unversioned))


def _by_repository(paths: Iterable[str]) -> dict[pathlib.Path | None, list[str]]:
    tops: dict[pathlib.Path, pathlib.Path | None] = {}
    groups: dict[pathlib.Path | None, list[str]] = {}
    for path in paths:
        real = pathlib.Path(path).resolve()
        folder = real if real.is_dir() else real.parent
        if folder not in tops:
            tops[folder] = find_repository(folder)
        groups.setdefault(tops[folder], []).append(path)
    return groups


def _changed(top: pathlib.Path, paths: Sequence[str]) -> Iterator[str]:
    """Tracked files with changes, staged or not, among ``paths`` or under them."""
    for batch in _batches(top, paths):
        output, _ = run_git(top, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--", *batch)
        entries = iter(_names(output))
        for entry in entries:
            if "R" in entry[:2] or "C" in entry[:2]:
                next(entries, None)
            yield shown(top / entry[3:])


def _untracked(top: pathlib.Path, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Among these files, the new ones and the ignored ones."""
    tracked: set[str] = set()
    new: set[str] = set()
    for batch in _batches(top, paths):
        tracked.update(_names(run_git(top, "ls-files", "-z", "--cached", "--", *batch)[0]))
        new.update(_names(run_git(top, "ls-files", "-z", "--others", "--exclude-standard", "--", *batch)[0]))
    inside = {path: _inside(top, path) for path in paths}
    fresh = [path for path in paths if inside[path] in new]
    ignored = [path for path in paths if inside[path] not in tracked and inside[path] not in new]
    return fresh, ignored


def _batches(top: pathlib.Path, paths: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _BATCH):
        yield [_inside(top, path) for path in paths[start : start + _BATCH]]


def _inside(top: pathlib.Path, path: str) -> str:
    return pathlib.Path(path).resolve().relative_to(top).as_posix()
