"""Positions and splices, all in UTF-8 bytes of the decoded source, as ``ast`` counts columns."""

from __future__ import annotations

import ast
import bisect
import re
from functools import cached_property
from itertools import accumulate

from torchport.model import Edit


class Text:
    """The source as UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.bytes = source.encode()

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        lines = self.bytes.splitlines(keepends=True)
        starts = [0, *accumulate(map(len, lines))]
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            starts.pop()
        return starts

    def span(self, node: ast.expr | ast.stmt | ast.pattern) -> tuple[int, int]:
        """First and last byte of ``node``."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.expr | ast.stmt | ast.pattern) -> str:
        """The source text of ``node``."""
        start, end = self.span(node)
        return self.bytes[start:end].decode()

    def line(self, offset: int) -> int:
        """The line number, from 1, of a byte."""
        return bisect.bisect_right(self.starts, offset)

    def position(self, offset: int) -> tuple[int, int]:
        """Line from 1 and column from 1, in characters, of a byte."""
        line = self.line(offset)
        return line, len(self.bytes[self.starts[line - 1] : offset].decode(errors="replace")) + 1

    def line_text(self, line: int) -> bytes:
        """A line with its line end."""
        end = self.starts[line] if line < len(self.starts) else len(self.bytes)
        return self.bytes[self.starts[line - 1] : end]

    def line_end(self, offset: int) -> int:
        """The end of the line of ``offset``, before its line break."""
        line = self.line(offset)
        return self.starts[line - 1] + len(self.line_text(line).rstrip(b"\r\n"))

    def newline(self, line: int) -> str:
        """How ``line`` ends; the last line, where it does not, as the one before it."""
        text = self.line_text(line)
        if not text.endswith((b"\n", b"\r")) and line > 1:
            text = self.line_text(line - 1)
        return "\r\n" if text.endswith(b"\r\n") else "\n"

    def indent(self, line: int) -> str:
        """The white space at the start of a line, form feeds left out."""
        found = re.match(rb"[ \t\f]*", self.line_text(line))
        return found[0].decode().replace("\f", "") if found else ""


def minimal(text: Text, start: int, end: int, new: str) -> tuple[Edit, ...]:
    """The smallest edits that turn the span into ``new``, so that edits inside one another seldom meet.

    What is put around the old text leaves it in place, and with it the places of what is found inside.
    """
    old = text.bytes[start:end].decode()
    before, same, after = new.partition(old)
    if same and before and after:
        return Edit(start, start, before), Edit(end, end, after)
    left = 0
    while left < min(len(old), len(new)) and old[left] == new[left]:
        left += 1
    right = 0
    while right < min(len(old), len(new)) - left and old[-1 - right] == new[-1 - right]:
        right += 1
    stop = len(old) - right
    first = start + len(old[:left].encode())
    return (Edit(first, first + len(old[left:stop].encode()), new[left : len(new) - right]),)


def overlap(edit: Edit, others: list[Edit]) -> bool:
    """Whether ``edit`` meets one of ``others``. Two insertions at one place meet; equal edits do not, they are one."""
    for other in others:
        if edit == other:
            continue
        if edit.start < other.end and other.start < edit.end:
            return True
        if edit.start == other.start and (edit.start == edit.end or other.start == other.end):
            return True
    return False


def splice(source: bytes, edits: list[Edit]) -> bytes:
    """``source`` with all edits made; equal edits are made once."""
    parts: list[bytes] = []
    done = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end)):
        parts += [source[done : edit.start], edit.text.encode()]
        done = edit.end
    return b"".join([*parts, source[done:]])


class Origin:
    """Maps bytes of the newest text to bytes of the first one, through every pass."""

    def __init__(self) -> None:
        self.passes: list[list[tuple[int, int, int, int]]] = []
        self.touched_comment = False
        """Whether an edit took away or put in a ``#``, so that comments have to be compared."""

    def add(self, source: bytes, edits: list[Edit]) -> None:
        """Remember a pass of edits to ``source``."""
        self.touched_comment |= any(b"#" in source[e.start : e.end] or "#" in e.text for e in edits)
        spans, shift = [], 0
        for edit in sorted(set(edits), key=lambda e: (e.start, e.end)):
            size = len(edit.text.encode())
            spans.append((edit.start + shift, edit.start + shift + size, edit.start, edit.end))
            shift += size - (edit.end - edit.start)
        self.passes.append(spans)

    def forward(self, offset: int, since: int) -> int:
        """Where ``offset``, a byte of the text before pass ``since``, is in the newest text."""
        for spans in self.passes[since:]:
            shift = 0
            for start, end, old_start, old_end in spans:
                if offset < old_start:
                    break
                if offset < old_end:
                    offset, shift = start, 0
                    break
                shift = end - old_end
            offset += shift
        return offset

    def __call__(self, offset: int) -> int:
        """Where ``offset`` was before all passes; a place inside new text goes to the start of what it replaced."""
        for spans in reversed(self.passes):
            shift = 0
            for start, end, old_start, old_end in spans:
                if offset < start:
                    break
                if offset < end:
                    offset, shift = old_start, 0
                    break
                shift = old_end - end
            offset += shift
        return offset
