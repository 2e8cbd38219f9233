"""Which lines of which files differ from where a branch left another one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchport.lazy import pattern
from torchport.project.git import GitError, find_repository, run_git

HUNK = pattern(rb"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
QUOTED = pattern(rb"\\([0-7]{3}|.)")
ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
ALL = range(1, 1 << 60)


class ChangedLines:
    """By the real path of a file, the ranges of its lines that are new or different."""

    def __init__(self) -> None:
        self.files: dict[str, list[range]] = {}

    def has(self, path: str) -> bool:
        """Whether any line of the file was changed."""
        return os.path.realpath(path) in self.files

    def meets(self, path: str, first: int, last: int) -> bool:
        """Whether one of the lines from ``first`` to ``last`` was changed."""
        return any(r.start <= last and first < r.stop for r in self.files.get(os.path.realpath(path), ()))


def changed_lines(paths: Sequence[str], since: str) -> ChangedLines:
    """The lines that differ between the files on disk and the commit at which this branch left ``since``.

    Files that git does not track yet are new as a whole. Raises GitError.
    """
    found = ChangedLines()
    tops = {find_repository(_folder(path)) for path in paths}
    for top in sorted(top for top in tops if top is not None):
        base = _merge_base(top, since)
        options = ("--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/", "--unified=0", "-M")
        diff, _ = run_git(top, "-c", "core.quotePath=false", "diff", *options, base)
        for name, lines in _parsed(diff):
            found.files.setdefault(str(top / os.fsdecode(name)), []).append(lines)
        new, _ = run_git(top, "ls-files", "-z", "--others", "--exclude-standard")
        for name in new.split(b"\0"):
            if name:
                found.files[str(top / os.fsdecode(name))] = [ALL]
    if None in tops:
        outside = next(path for path in paths if find_repository(_folder(path)) is None)
        raise GitError(f"{outside} is in no git repository, so there is nothing to compare it with")
    return found


def _folder(path: str) -> Path:
    real = Path(os.path.realpath(path))
    return real if real.is_dir() else real.parent


def _merge_base(top: Path, since: str) -> str:
    if since.startswith("-"):
        raise GitError(f"{since!r} is no revision")
    try:
        run_git(top, "rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
    except GitError:
        raise GitError(f"{since!r} is no revision of this repository; is it fetched?") from None
    try:
        return run_git(top, "merge-base", since, "HEAD")[0].decode().strip()
    except GitError:
        hint = "fetch the whole history (in GitHub's checkout action: fetch-depth: 0)"
        raise GitError(f"this branch and {since!r} have no commit in common; {hint}") from None


def _parsed(diff: bytes) -> Iterator[tuple[bytes, range]]:
    """Name and range for each hunk that adds or changes lines."""
    name = b""
    left = 0
    for line in diff.split(b"\n"):
        if left and line[:1] in b"+-":
            left -= 1
        elif line.startswith(b"+++ "):
            name = _name(line[4:])
        elif name and (match := HUNK.match(line)):
            start, count = int(match[1]), int(match[2] or 1)
            left = _lines_of(line)
            if count:
                yield name, range(start, start + count)


def _lines_of(hunk: bytes) -> int:
    """How many lines follow that begin with a plus or a minus: a text may look like a header."""
    sizes = hunk.split(b"@@")[1].split()
    return sum(int(size.partition(b",")[2] or 1) for size in sizes)


def _name(field: bytes) -> bytes:
    """The name in a ``+++`` line, empty for a file that is gone."""
    if field.startswith(b'"'):
        field = QUOTED.sub(_unquoted, field.rstrip(b"\t")[1:-1])
    else:
        field = field.removesuffix(b"\r").removesuffix(b"\t")
    return field[2:] if field.startswith(b"b/") else b""


def _unquoted(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if code.isdigit() else ESCAPES.get(code, code)
