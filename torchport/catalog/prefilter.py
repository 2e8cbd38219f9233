"""Most files of a project concern no rule: found out by a search for plain bytes, before anything is decoded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from torchport.model import Rule

FROM_TORCH = b"from torch import "
NAME = re.compile(rb"\w+")
APART = bytes(code if NAME.match(bytes([code])) else ord(" ") for code in range(256))
"""Turns all that is not a part of a name into spaces."""


class Prefilter:
    """Tells from the bytes of a file alone whether any of the rules may concern it.

    A trigger is searched for as it is; ``from torch import save`` also finds the name further on in such a list.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        words = sorted({word.encode() for rule in self.rules for word in rule.triggers})
        self.imported = [word.removeprefix(FROM_TORCH) for word in words if word.startswith(FROM_TORCH)]
        plain = [word for word in words if not word.startswith(FROM_TORCH)]
        self.words = [(word, NAME.findall(word)) for word in _shortest(plain)]

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``.

        The names in a file, each once, are a fraction of its length, so a trigger is first looked for there.
        """
        names = b" ".join({*blob.translate(APART).split()})
        for word, parts in self.words:
            for part in parts:
                if part not in names:
                    break
            else:
                if word in blob:
                    return True
        return any(self._imports(piece) for piece in blob.split(FROM_TORCH)[1:])

    def _imports(self, piece: bytes) -> bool:
        """Whether a list of imported names, on one line or in brackets, holds one of the names looked for."""
        names = piece[: piece.find(b")")] if piece.startswith(b"(") else piece.splitlines()[0] if piece else b""
        return any(name.strip().partition(b" ")[0] in self.imported for name in names.lstrip(b"(").split(b","))


def _shortest(words: list[bytes]) -> list[bytes]:
    """The words that hold none of the others: wherever such a longer one is, the other is found as well.

    All words are searched as one text, since comparing each with each takes longer than reading a file.
    """
    text = b"\n".join(words)
    ends = list(accumulate(len(word) + 1 for word in words))
    longer: set[int] = set()
    for number, word in enumerate(words):
        place = text.find(word)
        while place != -1:
            found = bisect_right(ends, place)
            if found != number:
                longer.add(found)
            place = text.find(word, place + 1)
    return [word for number, word in enumerate(words) if number not in longer]
