"""Classes of a project that have a method of the name of one of a tensor's: found by a byte search over its files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.lazy import NamedTuple, pattern

HEAD = pattern(rb"^([ \t]*)(class|def|async def)[ \t]+(\w+)[ \t]*(\([^)]*\))?", re.MULTILINE)
OWN_MOVE = pattern(rb"^[ \t]+def[ \t]+(to|_apply)[ \t]*\(", re.MULTILINE)
DERIVED = pattern(rb"(\w+)[ \t]*\(([^)]*)\)")
WORD = pattern(rb"\w+")
NO_MORE = frozenset((b"object", b"ABC", b"abc"))
"""Bases that add no method with which an object could be mistaken."""


class Own(NamedTuple):
    """A class that defines ``method``. ``closed``: it has no methods but those whose names are among ``words``."""

    name: str
    method: str
    words: frozenset[str]
    closed: bool


class OwnClasses:
    """Gathers them from the bytes of the files of a project, one after the other."""

    def __init__(self) -> None:
        self._own: list[Own] = []
        self._heads: list[bytes] = []

    def add(self, blob: bytes) -> None:
        """Take one file into account."""
        pieces = blob.split(b"\nclass ")
        first = pieces[0].removeprefix(b"class ") if blob.startswith(b"class ") else b""
        self._heads += [piece[:300] for piece in (first, *pieces[1:]) if b"(" in piece[:80]]
        if b"def cuda" in blob or b"def is_cuda" in blob:
            self._own += own_classes(blob)

    def all(self) -> tuple[Own, ...]:
        """Those that were found, and the classes that derive from them; a class that has derived ones is not closed."""
        if not self._own:
            return ()
        derived: dict[str, list[str]] = {}
        for head in self._heads:
            if match := DERIVED.match(head):
                for base in WORD.findall(match[2]):
                    derived.setdefault(base.decode(errors="replace"), []).append(match[1].decode(errors="replace"))
        found = {(own.name, own.method): own for own in self._own}
        for own in [*found.values()]:
            waiting = [own.name]
            while waiting:
                for name in derived.get(waiting.pop(), ()):
                    found[own.name, own.method] = own._replace(closed=False)
                    if (name, own.method) not in found:
                        found[name, own.method] = own._replace(name=name, closed=False)
                        waiting.append(name)
        return tuple(sorted(found.values(), key=lambda own: own[:2]))


def own_classes(blob: bytes) -> Iterator[Own]:
    """Classes of ``blob`` with an ``is_cuda`` of their own, or with a ``cuda`` and no ``to`` beside it."""
    heads = [(match.start(), len(match[1]), match) for match in HEAD.finditer(blob)]
    for number, (_, indent, match) in enumerate(heads):
        if match[2] == b"class" or match[3] not in (b"cuda", b"is_cuda"):
            continue
        around = next((head for head in reversed(heads[:number]) if head[1] < indent), None)
        if around is None or around[2][2] != b"class":
            continue
        end = next((start for start, other, _ in heads[number:] if other <= around[1]), len(blob))
        body = blob[around[0] : end]
        if match[3] == b"is_cuda" or not OWN_MOVE.search(body):
            words = frozenset(word.decode(errors="replace") for word in WORD.findall(body))
            bases = {*WORD.findall(around[2][4] or b"")}
            closed = bases <= NO_MORE and "__getattr__" not in words
            yield Own(around[2][3].decode(errors="replace"), match[3].decode(), words, closed)
