"""A run as text for a person: what was rewritten, what is left and why, and at the end the sums."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchport.lazy import NamedTuple
from torchport.model import FileResult, Finding, Problem, Review
from torchport.report.run import Run

if TYPE_CHECKING:
    from torchport.report.findings import Report

REVIEWS: dict[Review, str] = {"merge": "to merge as they are", "glance": "for a glance", "read": "to read closely"}
_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2"}


class Style(NamedTuple):
    """Paints text for a terminal, or hands it back as it is."""

    color: bool = False

    def paint(self, text: str, how: str) -> str:
        """``text`` in one of the styles of ``_CODES``."""
        return f"\033[{_CODES[how]}m{text}\033[0m" if self.color else text


def printable(path: str) -> str:
    """A path on one line and in valid Unicode, whatever bytes its name has."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def count(number: int, noun: str) -> str:
    """``1 edit``, ``2 edits``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def error_line(path: str, problem: Problem) -> str:
    """Where and what, without a newline at the end."""
    where = f"{printable(path)}:{problem.line}" if problem.line else printable(path)
    return f"{where}: {problem.message}"


def render(run: Run, *, verbose: bool = False, style: Style | None = None) -> Iterator[str]:
    """The lines of the report. Fatal problems are not among them: ``errors`` gives these.

    Line numbers are those of the files as they are now: after the rewrite where there was one.
    """
    report = _Report(run, verbose, style or Style())
    yield from report.changes()
    yield from report.section("Read closely", report.to_read())
    yield from report.section("Left for a person", report.findings(run.left()))
    if verbose:
        yield from report.section("Notes", report.findings(run.remarks()))
    yield from report.section("Not done", [error_line(*pair) for pair in run.problems() if not pair[1].fatal])
    yield from report.sums()


def errors(run: Run | Report) -> Iterator[str]:
    """What made the run itself fail, one line each."""
    if run.refusal:
        yield run.refusal
    yield from (error_line(path, problem) for path, problem in run.problems() if problem.fatal)


class _Report:
    def __init__(self, run: Run, verbose: bool, style: Style) -> None:
        self.run, self.verbose, self.style = run, verbose, style
        self.rewritten = {} if run.mode != "write" or run.refusal else {file.path: file for file in run.changed()}

    def line(self, path: str, finding: Finding) -> int:
        return self.place(path, finding)[0]

    def place(self, path: str, finding: Finding) -> tuple[int, int]:
        """Line and column in the file as it is now."""
        return finding.now if path in self.rewritten and finding.now[0] else (finding.line, finding.column)

    def where(self, path: str, finding: Finding) -> str:
        line, column = self.place(path, finding)
        return f"{printable(path)}:{line}:{column}"

    def section(self, title: str, lines: Sequence[str]) -> Iterator[str]:
        if lines:
            yield self.style.paint(f"{title}:", "bold")
            yield from lines
            yield ""

    def changes(self) -> Iterator[str]:
        changed = self.run.changed()
        for file in changed:
            if self.verbose:
                yield from (self.edit(file, finding) for finding in file.applied)
            else:
                verb = "rewrote" if self.run.mode == "write" else "would rewrite"
                yield f"{verb} {self.style.paint(printable(file.path), 'bold')}: {count(len(file.applied), 'edit')}"
        if changed:
            yield ""

    def edit(self, file: FileResult, finding: Finding) -> str:
        old = self.style.paint(_one_line(finding.old), "red")
        new = self.style.paint(_one_line(finding.new) or "(removed)", "green")
        return f"{self.where(file.path, finding)} {self.style.paint(finding.code, 'cyan')} {old} -> {new}"

    def findings(self, pairs: Iterable[tuple[str, Finding]]) -> list[str]:
        """One line each; without ``verbose`` the same words about the same file are said once."""
        groups: dict[object, list[tuple[str, Finding]]] = {}
        for path, finding in pairs:
            words = (path, finding.code, finding.message, finding.reason)
            groups.setdefault((words, finding.line, finding.column) if self.verbose else words, []).append(
                (path, finding)
            )
        return [self.finding(group) for group in groups.values()]

    def finding(self, group: Sequence[tuple[str, Finding]]) -> str:
        path, first = group[0]
        words = first.reason_now if path in self.rewritten and first.reason_now else first.reason
        reason = f": {_one_line(words)}" if words else ""
        also = _line_list([self.line(path, finding) for path, finding in group[1:]], without=self.line(path, first))
        others = f" (also {also})" if also else ""
        code = self.style.paint(first.code, "cyan")
        return f"{self.where(path, first)} {code} {_one_line(first.message)}{reason}{others}"

    def sums(self) -> Iterator[str]:
        edits = [finding for _, finding in self.run.edits()]
        yield self.style.paint(_headline(self.run, len(edits)), "bold")
        yield from _by_rule(edits)
        yield from _to_review(edits)
        left = list(self.run.left())
        if left:
            files = len({path for path, _ in left})
            yield self.style.paint(f"Left for a person: {len(left):,} in {count(files, 'file')}", "yellow")
        undone = len({path for path, problem in self.run.problems() if not problem.fatal})
        if undone:
            yield self.style.paint(f"Not done: {count(undone, 'file')}", "yellow")
        if silenced := self.run.silenced():
            yield f"Silenced by comments and configuration: {silenced:,}"
        remarks = sum(1 for _ in self.run.remarks())
        if remarks:
            yield f"Notes: {remarks:,}" + ("" if self.verbose else " (shown with --verbose)")

    def to_read(self) -> list[str]:
        """Where a reviewer should look closely, one line for each file."""
        lines: dict[str, list[int]] = {}
        for path, finding in self.run.edits():
            if finding.review == "read":
                lines.setdefault(path, []).append(self.line(path, finding))
        return [f"{printable(path)}: {_line_list(numbers)}" for path, numbers in lines.items()]


def _to_review(findings: Sequence[Finding]) -> Iterator[str]:
    """How closely a reviewer should look at how many edits."""
    numbers = Counter(finding.review for finding in findings)
    if numbers:
        yield "To review: " + ", ".join(
            f"{numbers[review]:,} {how}" for review, how in REVIEWS.items() if numbers[review]
        )


def _line_list(lines: Iterable[int], without: int = 0) -> str:
    """``line 7``, ``lines 7, 9``."""
    different = [str(line) for line in sorted(set(lines) - {without})]
    return f"line{'s' if len(different) > 1 else ''} {', '.join(different)}" if different else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _headline(run: Run, edits: int) -> str:
    files = count(run.examined, "file")
    changed = len(run.changed())
    if not changed:
        return f"Nothing to rewrite in {files}"
    verb = "Rewrote" if run.mode == "write" else "Would rewrite"
    return f"{verb} {changed:,} of {files}: {count(edits, 'edit')}"


def _by_rule(findings: Sequence[Finding]) -> Iterator[str]:
    rules = Counter((finding.code, finding.name) for finding in findings)
    width = max((len(f"{number:,}") for number in rules.values()), default=0)
    for (code, name), number in sorted(rules.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {number:>{width},}  {code} {name}"
