"""Findings that a team has accepted for now: new ones are reported, and what is gone leaves the file by itself.

A finding is known by its file, its rule and the text of its line, and by which of several such it is, so that it is
found again where lines have moved.
"""

from __future__ import annotations

import os
import pathlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from torchport.lazy import NamedTuple
from torchport.model import Finding, UserError

VERSION = 1


class BaselineError(UserError, ValueError):
    """A baseline that cannot be used: says file and what was expected."""


class Key(NamedTuple):
    """What names a finding; several may have the same name."""

    path: str
    code: str
    text: str


class Baseline:
    """``accepted`` counts the findings of each name that the file has; ``seen`` those that were met in this run."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.root = str(path.resolve().parent)
        self.exists = path.exists()
        self.accepted: Counter[Key] = _read(path) if self.exists else Counter()
        self.seen: Counter[Key] = Counter()

    def relative(self, path: str) -> str:
        """The name of a file in the baseline."""
        return os.path.relpath(os.path.realpath(path), self.root).replace(os.sep, "/")

    def new(self, path: str, findings: Sequence[tuple[Finding, str]]) -> list[Finding]:
        """The findings that are not accepted; each comes with the text of its line."""
        name = self.relative(path)
        left = []
        for finding, text in findings:
            key = Key(name, finding.code, " ".join(text.split()))
            self.seen[key] += 1
            if self.seen[key] > self.accepted[key]:
                left.append(finding)
        return left

    def shrink(self, examined: Iterable[str], codes: Collection[str], folders: Sequence[str]) -> int:
        """Drop what is gone from the files that were ``examined`` for rules of these codes; how much that was.

        A file that does not exist any more is gone with all that it had where it was under one of ``folders``.
        """
        missing = [key for key in self.accepted if key.code in codes and self.seen[key] < self.accepted[key]]
        if not missing:
            return 0
        names = {self.relative(path) for path in examined}
        tops = [self.relative(folder) for folder in folders]
        before = self.accepted.total()
        for key in missing:
            if key.path in names or self._is_gone(key.path, tops):
                self.accepted[key] = self.seen[key]
        self.accepted = +self.accepted
        return before - self.accepted.total()

    def _is_gone(self, name: str, tops: Sequence[str]) -> bool:
        under = any(top == "." or name == top or name.startswith(f"{top}/") for top in tops)
        return under and not (pathlib.Path(self.root) / name).exists()

    def accept(self, path: str, findings: Sequence[tuple[Finding, str]]) -> None:
        """Take findings in that ``new`` has let through, with the text of their lines."""
        name = self.relative(path)
        self.accepted.update(Key(name, finding.code, " ".join(text.split())) for finding, text in findings)

    def save(self) -> None:
        """Write the file. Raises OSError."""
        import json

        files: dict[str, dict[str, dict[str, int]]] = {}
        for key in sorted(self.accepted):
            files.setdefault(key.path, {}).setdefault(key.code, {})[key.text] = self.accepted[key]
        text = json.dumps({"version": VERSION, "findings": files}, indent=2, ensure_ascii=False) + "\n"
        data = text.encode("utf-8", "backslashreplace")
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(data)
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)


def _read(path: pathlib.Path) -> Counter[Key]:
    import json

    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise BaselineError(f"{path}: is not a baseline of torchport: not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION or not isinstance(data.get("findings"), dict):
        raise BaselineError(f"{path}: is not a baseline of torchport: expected version {VERSION}; make a new one")
    return Counter(dict(_entries(path, data["findings"])))


def _entries(path: pathlib.Path, files: dict[str, Any]) -> list[tuple[Key, int]]:
    entries = []
    for name, codes in files.items():
        for code, texts in codes.items() if isinstance(codes, dict) else [("", None)]:
            for text, number in texts.items() if isinstance(texts, dict) else [("", None)]:
                if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                    raise BaselineError(f"{path}: {name}: expected code, text of the line and a number; make a new one")
                entries.append((Key(name, code, text), number))
    return entries
