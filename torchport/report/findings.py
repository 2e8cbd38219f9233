"""What a run of ``torchport lint`` has to say, as every format of the report takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from torchport.model import Effect, FileResult, Finding, Problem, Rule, Target
from torchport.project.files import is_plain
from torchport.project.settings import text_of
from torchport.project.source import decode, read_bytes
from torchport.report.text import printable

Severity = Literal["error", "warning", "note"]
SEVERITIES: dict[Effect, Severity] = {"error": "error", "silent": "warning", "slow": "warning", "none": "note"}

DONE, LEFT, FAILED = 0, 1, 2


class Report:
    """``files`` holds those with something to say, by path; their ``left`` is what is reported, in order."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        target: Target,
        looked_at: list[str] | None = None,
        files: list[FileResult] | None = None,
        notes: list[str] | None = None,
        refusal: str = "",
        written: bool = True,
        silenced: int = 0,
    ) -> None:
        """``looked_at``: every file that was read, or could not be.

        ``refusal``: why nothing was written at all. ``written``: whether fixes are in the files already; otherwise
        the run only shows them. ``silenced``: findings that comments or the configuration of single files take out.
        """
        self.rules = rules
        self.target: Target = target
        self.looked_at = [] if looked_at is None else looked_at
        self.files = [] if files is None else files
        self.notes = [] if notes is None else notes
        self.refusal = refusal
        self.written = written
        self.silenced = silenced
        self.accepted = 0
        """Findings that the baseline has."""
        self.perhaps = 0
        """Findings that only ``--pedantic`` shows."""
        self.remarks = 0
        """Notes that only ``--verbose`` shows."""
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._by_path: dict[str, FileResult] = {}

    def add(self, other: Report) -> None:
        """Take in the report of other files."""
        self.rules = {**self.rules, **other.rules}
        self.looked_at += other.looked_at
        self.files = sorted([*self.files, *other.files], key=lambda file: file.path.split("/"))
        self.notes += other.notes
        self.refusal = self.refusal or other.refusal
        self.silenced += other.silenced
        self.accepted += other.accepted
        self.perhaps += other.perhaps
        self.remarks += other.remarks

    @property
    def examined(self) -> int:
        """The number of files."""
        return len(self.looked_at)

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Path and finding, in the order of the files and of their lines."""
        return ((file.path, finding) for file in self.files for finding in file.left)

    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Path and problem of each file that could not be examined or written."""
        return ((file.path, problem) for file in self.files for problem in file.problems)

    def fixes(self) -> Iterator[tuple[str, Finding]]:
        """Path and finding of what was fixed, or would be."""
        return ((file.path, finding) for file in self.files for finding in file.applied)

    def changed(self) -> list[FileResult]:
        """The files that were fixed, or would be."""
        return [file for file in self.files if file.after is not None]

    def line(self, path: str, finding: Finding) -> str:
        """The line of a finding, as it is after the fixes, without its end."""
        number = finding.line
        if path not in self._lines:
            if path not in self._by_path:
                self._by_path = {file.path: file for file in self.files}
            file = self._by_path[path]
            data = file.after or file.before or read_bytes(path)
            self._lines[path] = {} if isinstance(data, Problem) else lines_of(path, data)
        lines = self._lines[path].get(finding.cell, [])
        return lines[number - 1].removesuffix("\r") if 0 < number <= len(lines) else ""

    @property
    def exit_status(self) -> int:
        """0: nothing left to do, 1: something is left for a person, 2: the run itself failed."""
        problems = [problem for _, problem in self.problems()]
        if self.refusal or any(problem.fatal for problem in problems):
            return FAILED
        pending = not self.written and bool(self.changed())
        return LEFT if problems or pending or any(f.effect != "none" for _, f in self.findings()) else DONE


def lines_of(path: str, data: bytes) -> dict[int, list[str]]:
    """The lines of a file, split at line feeds, by the cell of a notebook or 0; none where it cannot be read."""
    if path.endswith(".ipynb"):
        from torchport.project.notebook import read_notebook

        book = read_notebook(data)
        cells: dict[int, list[str]] = {}
        if not isinstance(book, Problem):
            for (cell, _), line in zip(book.lines, book.text.split("\n"), strict=False):
                cells.setdefault(cell, []).append(line)
        return cells
    if is_plain(path):
        return {0: text_of(data).split("\n")}
    source = decode(path, data)
    return {} if isinstance(source, Problem) else {0: source.text.split("\n")}


def place(path: str, finding: Finding) -> str:
    """Where a finding is, for a person: ``train.py:3:5``, in a notebook ``train.ipynb:cell 2:3:5``."""
    cell = f":cell {finding.cell}" if finding.cell else ""
    return f"{printable(path)}{cell}:{finding.line}:{finding.column}"


def severity(finding: Finding) -> Severity:
    """How a finding is ranked where a format knows ranks."""
    return SEVERITIES[finding.effect]


def is_fixed_by_lint(finding: Finding, rules: Mapping[str, Rule]) -> bool:
    """Whether ``lint --fix`` mends it."""
    return bool(finding.edits) and not finding.cell and rules[finding.code].lint_only


def is_fixed_by_migrate(finding: Finding, rules: Mapping[str, Rule]) -> bool:
    """Whether ``migrate`` mends it."""
    return bool(finding.edits) and not finding.cell and not rules[finding.code].lint_only


def advice(finding: Finding, rules: Mapping[str, Rule]) -> str:
    """What to do, on one line; empty where the message says it all."""
    if not finding.edits:
        return " ".join(finding.reason.split())
    command = "torchport lint --fix" if rules[finding.code].lint_only else "torchport migrate"
    new = " ".join(finding.new.split())
    if finding.cell:
        return f"write {new} in its place" if new else f"{command} rewrites it in a .py file; change notebooks by hand"
    return f"{command} writes {new}" if new else f"{command} rewrites it"


def sentence(finding: Finding, rules: Mapping[str, Rule], *, cell: bool = False) -> str:
    """The message with the advice after it, on one line; with ``cell`` the place in a notebook is part of it."""
    what, more = " ".join(finding.message.split()), advice(finding, rules)
    perhaps = "perhaps: " if finding.perhaps else ""
    if cell and finding.cell:
        perhaps = f"cell {finding.cell}, line {finding.line}: {perhaps}"
    return f"{perhaps}{what}: {more}" if more else f"{perhaps}{what}"
