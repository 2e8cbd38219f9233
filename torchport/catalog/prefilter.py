"""Most files of a project concern no rule: found out by a search for plain bytes, before anything is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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

    A trigger is searched for as it is; ``from torch import save`` also finds the name further on in such a list, and a
    blank before a name, as in `` fused=``, says that it is a whole one, not the end of ``qkv_fused``.
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
        self.plain: dict[bytes, tuple[int, ...]] = {}
        """Triggers that are a name or a part of one, and the rules that they are of."""
        self.words: dict[bytes, list[tuple[bytes, frozenset[bytes], frozenset[bytes], tuple[int, ...]]]] = {}
        """The others by the longest part of each: its bytes, all parts, whole names among them, and its rules."""
        for word, its in numbers.items():
            if word.startswith(FROM_TORCH):
                continue
            parts = NAME.findall(word)
            if parts == [word]:
                self.plain[word] = its
                continue
            longest = max(parts, key=len, default=b"")
            whole = frozenset(parts[:1] if word[:1] in (b" ", b"\t") else ())
            self.words.setdefault(longest, []).append((_squeezed(word), frozenset(parts), whole, its))
        every = {part for words in self.words.values() for _, parts, _, _ in words for part in parts}
        self.parts = sorted(every | self.plain.keys())
        self.known: set[bytes] = set()
        """Names of the files seen so far: files share most of them."""
        self.telling: dict[bytes, tuple[bytes, ...]] = {}
        """Those with parts of triggers in them, and which."""

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``."""
        dense = _squeezed(blob)
        return any(
            not (within := self.within[self.rules[number].within]) or any(word in dense for word in within)
            for numbers in self._found(blob, dense)
            for number in numbers
        )

    def concerned(self, blob: bytes) -> tuple[Rule, ...]:
        """The rules of which a trigger is in ``blob``; asked twice of the same, it remembers."""
        if blob is self.last[0]:
            return self.last[1]
        found: set[int] = set()
        dense = _squeezed(blob)
        for number in self._found(blob, dense, found):
            found.update(number)
        has = {
            words: not words or any(word in dense for word in dense_words) for words, dense_words in self.within.items()
        }
        rules = tuple(rule for number, rule in enumerate(self.rules) if number in found and has[rule.within])
        self.last = blob, rules
        return rules

    def _found(
        self, blob: bytes, dense: bytes, done: set[int] | frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, ...]]:
        """The rules of each trigger in ``blob``, by number; no trigger is looked for whose rules are all ``done``.

        ``dense`` is ``blob`` without its blanks.
        """
        names = {*blob.translate(APART).split()}
        held = self._parts_in(names)
        for part in held & self.plain.keys():
            yield self.plain[part]
        for part in (*(held & self.words.keys()), b""):
            for word, parts, whole, numbers in self.words.get(part, ()):
                if parts <= held and whole <= names and word in dense and not done.issuperset(numbers):
                    yield numbers
        for piece in blob.split(FROM_TORCH)[1:]:
            listed = piece[: piece.find(b")")] if piece.startswith(b"(") else piece.splitlines()[0] if piece else b""
            for item in listed.lstrip(b"(").split(b","):
                if (its := self.imported.get(item.strip().partition(b" ")[0])) is not None:
                    yield its

    def _parts_in(self, names: set[bytes]) -> set[bytes]:
        """The parts of triggers in these names."""
        if len(self.known) > MANY:
            self.known.clear()
            self.telling.clear()
        if new := names.difference(self.known):
            self._learn(new)
        return {part for name in names & self.telling.keys() for part in self.telling[name]}

    def _learn(self, names: set[bytes]) -> None:
        self.known |= names
        text = b" ".join(names) + b" "
        for part in self.parts:
            start = text.find(part)
            while start >= 0:
                end = text.index(b" ", start)
                name = text[text.rfind(b" ", 0, start) + 1 : end]
                self.telling[name] = (*self.telling.get(name, ()), part)
                start = text.find(part, end)


class SettingsFilter:
    """The same for files of settings and launchers, which are small: a plain search for each trigger."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        reading = (rule for rule in rules if rule.settings or rule.transformer == "suppressions")
        self.words = tuple({trigger.encode() for rule in reading for trigger in rule.triggers})

    def search(self, blob: bytes) -> bool:
        """Whether a trigger of any rule is in ``blob``."""
        return any(word in blob for word in self.words)
