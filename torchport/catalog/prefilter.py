"""Most files of a project concern no rule: found out by a search for plain bytes, before anything is decoded."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

from torchport.model import Rule

FROM_TORCH = b"from torch import "
NAME = re.compile(rb"\w+")
APART = bytes(code if NAME.match(bytes([code])) else ord(" ") for code in range(256))
"""Turns all that is not a part of a name into spaces."""
BLANKS = b" \t"
"""Left out of triggers and files alike: ``pin_memory = True`` is ``pin_memory=True``."""
MANY = 200_000
"""Names after which those of earlier files are forgotten."""


def _squeezed(text: bytes) -> bytes:
    return text.translate(None, BLANKS)


class Prefilter:
    """Tells from the bytes of a file alone whether any of the rules may concern it.

    A trigger is searched for as it is; ``from torch import save`` also finds the name further on in such a list.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rule for rule in rules if not rule.reads_settings_alone)
        self.within = {rule.within: [_squeezed(word.encode()) for word in rule.within] for rule in self.rules}
        self.last: tuple[bytes, tuple[Rule, ...]] = (b"", ())
        numbers: dict[bytes, tuple[int, ...]] = {}
        for number, rule in enumerate(self.rules):
            for trigger in rule.triggers:
                numbers[trigger.encode()] = (*numbers.get(trigger.encode(), ()), number)
        self.imported = {word.removeprefix(FROM_TORCH): n for word, n in numbers.items() if word.startswith(FROM_TORCH)}
        self.words: dict[bytes, list[tuple[bytes, frozenset[bytes], tuple[int, ...]]]] = {}
        """By the longest part of each trigger: its bytes, all parts, and the rules that it is of."""
        for word, its in numbers.items():
            if not word.startswith(FROM_TORCH):
                parts = NAME.findall(word)
                longest = max(parts, key=len, default=b"")
                self.words.setdefault(longest, []).append((_squeezed(word), frozenset(parts), its))
        self.parts = sorted({part for words in self.words.values() for _, parts, _ in words for part in parts})
        self.known: dict[bytes, tuple[bytes, ...]] = {}
        """Names of the files seen so far, each with the parts of triggers in it: files share most of their names."""

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``."""
        return any(True for _ in self._found(blob))

    def concerned(self, blob: bytes) -> tuple[Rule, ...]:
        """The rules of which a trigger is in ``blob``; asked twice of the same, it remembers."""
        if blob is self.last[0]:
            return self.last[1]
        found: set[int] = set()
        for number in self._found(blob, found):
            found.update(number)
        dense = _squeezed(blob)
        has = {
            words: not words or any(word in dense for word in dense_words) for words, dense_words in self.within.items()
        }
        rules = tuple(rule for number, rule in enumerate(self.rules) if number in found and has[rule.within])
        self.last = blob, rules
        return rules

    def _found(self, blob: bytes, done: Container[int] = ()) -> Iterator[tuple[int, ...]]:
        """The rules of each trigger in ``blob``, by number; no trigger is looked for whose rules are all ``done``."""
        held = self._parts_in(blob)
        left = []
        for part in (*held, b""):
            for word, parts, numbers in self.words.get(part, ()):
                if word in held:
                    yield numbers
                elif parts <= held:
                    left.append((word, numbers))
        dense = _squeezed(blob) if left else b""
        for word, numbers in left:
            if not all(number in done for number in numbers) and word in dense:
                yield numbers
        for piece in blob.split(FROM_TORCH)[1:]:
            listed = piece[: piece.find(b")")] if piece.startswith(b"(") else piece.splitlines()[0] if piece else b""
            for item in listed.lstrip(b"(").split(b","):
                if (its := self.imported.get(item.strip().partition(b" ")[0])) is not None:
                    yield its

    def _parts_in(self, blob: bytes) -> set[bytes]:
        """The parts of triggers in the names of ``blob``."""
        names = {*blob.translate(APART).split()}
        if len(self.known) > MANY:
            self.known.clear()
        if new := names.difference(self.known):
            self._learn(new)
        return {part for name in names for part in self.known[name]}

    def _learn(self, names: set[bytes]) -> None:
        self.known.update(dict.fromkeys(names, ()))
        text = b" ".join(names) + b" "
        for part in self.parts:
            start = text.find(part)
            while start >= 0:
                end = text.index(b" ", start)
                name = text[text.rfind(b" ", 0, start) + 1 : end]
                self.known[name] += (part,)
                start = text.find(part, end)


class SettingsFilter:
    """The same for files of settings and launchers, which are small: a plain search for each trigger."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        reading = (rule for rule in rules if rule.settings or rule.transformer == "suppressions")
        self.words = tuple({trigger.encode() for rule in reading for trigger in rule.triggers})

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``."""
        return any(word in blob for word in self.words)
