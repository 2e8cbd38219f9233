"""For a person: each finding with its line of source and a caret, what to do about it, and the sums."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.model import Finding
from torchport.report.findings import Report, advice, place, severity
from torchport.report.formats.summary import summary
from torchport.report.text import Style, error_line

COLORS = {"error": "red", "warning": "yellow", "note": "dim"}
WIDEST = 160
"""Characters of a line of source that are shown."""


def render(report: Report, style: Style) -> Iterator[str]:
    """The lines of the report. Fatal problems are not among them."""
    for path, finding in report.findings():
        yield from _finding(report, path, finding, style)
        yield ""
    for path, problem in report.problems():
        if not problem.fatal:
            yield f"{style.paint('not examined:', 'red')} {error_line(path, problem)}"
    yield from summary(report, style)


def _finding(report: Report, path: str, finding: Finding, style: Style) -> Iterator[str]:
    rank = severity(finding)
    where = style.paint(f"{place(path, finding)}:", "bold")
    perhaps = "perhaps " if finding.perhaps else ""
    code = style.paint(f"{finding.code} {finding.name}", "cyan")
    message = " ".join(finding.message.split())
    yield f"{where} {style.paint(perhaps + rank, COLORS[rank])}: {code}: {message}"
    number, line = str(finding.line), report.line(path, finding)
    margin = " " * len(number)
    if line.strip():
        shown, start, length = _window(line, finding)
        bar = style.paint("|", "dim")
        yield f"{margin} {bar}"
        yield f"{style.paint(number, 'dim')} {bar} {shown}"
        yield f"{margin} {bar} {_blank(shown[:start])}{style.paint('^' * length, COLORS[rank])}"
    if more := advice(finding, report.rules):
        yield f"{margin} {style.paint('=', 'dim')} {more}"


def _window(line: str, finding: Finding) -> tuple[str, int, int]:
    """The part of a line that is shown, and where and how long the caret is in it."""
    start = min(finding.column - 1, len(line))
    end = finding.end_column - 1 if finding.end_line == finding.line else len(line.rstrip())
    if not line.isprintable():
        line = "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line)
    first = 0
    if len(line) > WIDEST and start > WIDEST // 2:
        first = start - WIDEST // 2
    shown = line[first : first + WIDEST].rstrip()
    start -= first
    return shown, start, max(1, min(end - first, len(shown)) - start)


def _blank(text: str) -> str:
    """As wide as ``text``: tabs stay, and what takes two columns of a terminal becomes two blanks."""
    if text.isascii():
        return "\t".join(" " * len(part) for part in text.split("\t"))
    from unicodedata import combining, east_asian_width

    widths = {"W": "  ", "F": "  "}
    return "".join(
        "\t" if char == "\t" else "" if combining(char) else widths.get(east_asian_width(char), " ") for char in text
    )
