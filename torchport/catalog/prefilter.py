"""Most files of a project concern no rule: found out by a search for plain bytes, before anything is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torchport.model import Rule

IMPORTED = "from torch import "
FROM_TORCH = IMPORTED.encode()
NAME = re.compile(rb"\w+")
APART = bytes(code if NAME.match(bytes([code])) else ord(" ") for code in range(256))
"""Turns all that is not a part of a name into spaces."""


class Prefilter:
    """Tells from the bytes of a file alone whether any of the rules may concern it.

    A trigger is searched for as it is; ``from torch import save`` also finds the name further on in such a list.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        every = sorted({word for rule in self.rules for word in rule.triggers})
        self.imported = {word.encode().removeprefix(FROM_TORCH): word for word in every if word.startswith(IMPORTED)}
        plain = [(word, word.encode()) for word in every if not word.startswith(IMPORTED)]
        self.last: tuple[bytes, tuple[Rule, ...]] = (b"", ())
        self.words = [(name, word, NAME.findall(word)) for name, word in plain]

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``."""
        return any(True for _ in self._found(blob))

    def concerned(self, blob: bytes) -> tuple[Rule, ...]:
        """The rules of which a trigger is in ``blob``; asked twice of the same, it remembers."""
        if blob is self.last[0]:
            return self.last[1]
        found = {*self._found(blob)}
        has = {words: any(word.encode() in blob for word in words) for words in {rule.within for rule in self.rules}}
        has[()] = True
        rules = tuple(rule for rule in self.rules if not found.isdisjoint(rule.triggers) and has[rule.within])
        self.last = blob, rules
        return rules

    def _found(self, blob: bytes) -> Iterator[str]:
        """The triggers that are in ``blob``.

        The names in a file, each once, are a fraction of its length, so a trigger is first looked for there.
        """
        names = b" ".join({*blob.translate(APART).split()})
        for name, word, parts in self.words:
            for part in parts:
                if part not in names:
                    break
            else:
                if word in blob:
                    yield name
        for piece in blob.split(FROM_TORCH)[1:]:
            listed = piece[: piece.find(b")")] if piece.startswith(b"(") else piece.splitlines()[0] if piece else b""
            for item in listed.lstrip(b"(").split(b","):
                if (trigger := self.imported.get(item.strip().partition(b" ")[0])) is not None:
                    yield trigger
