"""A unified diff of bytes that ``git apply`` and ``patch -p1`` take: CRLF, any encoding, no newline at the end."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from torchport.project.git import find_repository

CONTEXT = 3
_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}

Opcode = tuple[str, int, int, int, int]


def unified(path: str, before: bytes, after: bytes) -> bytes:
    """The diff from ``before`` to ``after``, empty where they are the same."""
    if before == after:
        return b""
    name = os.fsencode(_name(path))
    old, new = _lines(before), _lines(after)
    head = b"diff --git " + _quoted(b"a/" + name) + b" " + _quoted(b"b/" + name) + b"\n"
    head += b"--- " + _file_name(b"a/" + name) + b"+++ " + _file_name(b"b/" + name)
    return head + b"".join(_hunk(group, old, new) for group in _groups(old, new))


def _name(path: str) -> str:
    """Relative to the top of the repository, as git wants it, or as it is, made relative, where there is none."""
    file = Path(path)
    real = file.parent.resolve() / file.name
    top = find_repository(real.parent)
    if top is not None:
        return real.relative_to(top).as_posix()
    return Path(*[part for part in file.parts if part not in ("..", file.anchor)]).as_posix()


def _quoted(name: bytes) -> bytes:
    """Git's own quoting, which leaves plain names and blanks alone."""
    if all(31 < byte < 127 and byte not in b'"\\' for byte in name):
        return name
    return b'"' + b"".join(_ESCAPES.get(byte) or _plain_or_octal(byte) for byte in name) + b'"'


def _plain_or_octal(byte: int) -> bytes:
    return bytes([byte]) if 31 < byte < 127 else b"\\%03o" % byte


def _file_name(name: bytes) -> bytes:
    """A name in a ``---`` or ``+++`` line: one with blanks ends in a tab, or what follows a blank would be a date."""
    quoted = _quoted(name)
    return quoted + (b"\t\n" if b" " in quoted and not quoted.startswith(b'"') else b"\n")


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only a newline ends a line here, as for git."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _groups(old: list[bytes], new: list[bytes]) -> Iterator[list[Opcode]]:
    """Opcodes in groups with their context. What is the same at both ends is not compared line by line."""
    shortest = min(len(old), len(new))
    start = 0
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    start, end = max(start - CONTEXT, 0), max(end - CONTEXT, 0)
    matcher = difflib.SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        yield [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]


def _hunk(group: list[Opcode], old: list[bytes], new: list[bytes]) -> bytes:
    _, first_old, _, first_new, _ = group[0]
    _, _, last_old, _, last_new = group[-1]
    out = [f"@@ -{_range(first_old, last_old)} +{_range(first_new, last_new)} @@\n".encode()]
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            out += (_line(b" ", line) for line in old[old_start:old_end])
            continue
        out += (_line(b"-", line) for line in old[old_start:old_end])
        out += (_line(b"+", line) for line in new[new_start:new_end])
    return b"".join(out)


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
