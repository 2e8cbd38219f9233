"""What a worker process does for ``torchport lint``, and the short form in which its result travels and is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchport.lazy import NamedTuple
from torchport.model import Edit, Finding, Problem, Rule
from torchport.project.files import is_plain
from torchport.project.settings import read_settings, text_of
from torchport.project.source import Source, decode, encoded, read_bytes

if TYPE_CHECKING:
    from torchport.lint.linter import Linter

Row = list[Any]
"""A finding without what its rule says already, made of what JSON knows."""


SOME = (Edit(0, 0, ""),)


class Found(NamedTuple):
    """What was found in one file: rows of findings, rows of problems, and how many findings were silenced."""

    findings: list[Row]
    problems: list[Row]
    silenced: int = 0


def row_of(finding: Finding, rule: Rule) -> Row:
    """The short form of a finding."""
    return [
        finding.code,
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.effect,
        finding.review,
        finding.support,
        finding.old,
        "" if finding.new == finding.old else finding.new,
        finding.reason,
        int(bool(finding.edits)) + 2 * int(finding.perhaps),
        "" if finding.message == rule.summary else finding.message,
        finding.cell,
    ]


def finding_of(row: Row, rules: Mapping[str, Rule]) -> Finding:
    """The finding of a short form. Of its edits only that there are some is kept."""
    code, line, column, end_line, end_column, effect, review, support, old, new, reason, flags, message, cell = row
    rule = rules[code]
    return Finding(
        code=code,
        name=rule.name,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        message=message or rule.summary,
        effect=effect,
        support=support,
        safety=rule.safety,
        review=review,
        old=old,
        new=new,
        edits=SOME if flags & 1 else (),
        reason=reason,
        cell=cell,
        perhaps=bool(flags & 2),
    )


def problem_of(row: Row) -> Problem:
    """The problem of a short form."""
    message, line = row
    return Problem(message, line)


class Task(NamedTuple):
    """A file that may concern a rule. ``data`` is None where the worker reads the file itself."""

    path: str
    data: bytes | None = None


class Linted(NamedTuple):
    """What became of one file in a worker."""

    found: Found
    digest: str = ""
    """Of the content that was looked at."""
    fixed: tuple[Row, ...] = ()
    before: bytes = b""
    after: bytes | None = None

    def plain(self) -> tuple[Any, ...]:
        """The same made of plain values."""
        return tuple(self.found), *self[1:]

    @staticmethod
    def restored(values: tuple[Any, ...]) -> Linted:
        """The inverse of ``plain``."""
        found, *others = values
        return Linted(Found(*found), *others)


class Work:
    """The work of one process: picklable, so that it can be sent to a worker once. ``named``: digests are wanted."""

    def __init__(self, linter: Linter, rules: Mapping[str, Rule], *, named: bool = True) -> None:
        self.linter, self.rules, self.named = linter, rules, named

    def __call__(self, task: Task) -> Linted:
        """Lint one file in memory."""
        plain = is_plain(task.path)
        data = task.data if task.data is not None else read_settings(task.path) if plain else read_bytes(task.path)
        if isinstance(data, Problem):
            return Linted(Found([], [[data.message, data.line]]))
        if plain:
            outcome = self.linter.finder.read(task.path, text_of(data))
            return Linted(Found(self.rows(outcome.left), [], outcome.silenced), self.digest(data))
        if task.path.endswith(".ipynb"):
            return self.notebook(task.path, data)
        source = decode(task.path, data)
        if isinstance(source, Problem):
            return Linted(Found([], [[source.message, source.line]]), self.digest(data))
        outcome = self.linter(source)
        problems = outcome.problems
        after = None
        if outcome.text is not None and outcome.text != source.text:
            new = encoded(source, outcome.text)
            if isinstance(new, Problem):
                problems = [*problems, new]
            else:
                after = new
        found = Found(self.rows(outcome.left), [[p.message, p.line] for p in problems], outcome.silenced)
        fixed = tuple(self.rows(outcome.applied)) if after is not None else ()
        return Linted(found, self.digest(data), fixed, data if after is not None else b"", after)

    def notebook(self, path: str, data: bytes) -> Linted:
        """Lint the code cells of a notebook as one source, and say of each finding in which cell it is."""
        from torchport.project.notebook import read_notebook

        book = read_notebook(data)
        if isinstance(book, Problem):
            return Linted(Found([], [[book.message, 0]]), self.digest(data))
        outcome = self.linter.find(Source(path, book.text, "utf-8", False))
        placed = []
        for finding in outcome.left:
            (cell, line), (last, end_line) = book.place(finding.line), book.place(finding.end_line)
            one_cell = last == cell  # a group of statements may go on in the next cell
            end = (end_line, finding.end_column) if one_cell else (line, finding.column + 1)
            placed.append(finding._replace(cell=cell, line=line, end_line=end[0], end_column=end[1]))
        problems = [
            [f"cell {book.place(p.line)[0]}, line {book.place(p.line)[1]}: {p.message}", 0] for p in outcome.problems
        ]
        return Linted(Found(self.rows(placed), problems, outcome.silenced), self.digest(data))

    def digest(self, data: bytes) -> str:
        """What names a content in the cache, where there is one."""
        return digest_of(data) if self.named else ""

    def rows(self, findings: Sequence[Finding]) -> list[Row]:
        """Findings in their short form, in order."""
        ordered = sorted(findings, key=lambda f: (f.cell, f.line, f.column, f.code))
        return [row_of(finding, self.rules[finding.code]) for finding in ordered]


def digest_of(data: bytes) -> str:
    """What names a content."""
    from hashlib import sha256  # takes a while to load, and is wanted for the cache alone

    return sha256(data, usedforsecurity=False).hexdigest()
