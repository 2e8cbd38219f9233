"""Markdown for a comment on a pull request or the summary of a job: counts by rule, then every finding."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.report.findings import Report, place, sentence, severity
from torchport.report.formats.statistics import Count, counts
from torchport.report.formats.summary import summary
from torchport.report.text import Style, error_line


def render(report: Report, style: Style) -> Iterator[str]:
    """A heading, the table of counts, a table of findings."""
    yield "# torchport lint"
    yield ""
    yield from (f"- {_cell(line.strip())}" for line in summary(report, Style()))
    if any(True for _ in report.findings()):
        yield ""
        yield from table(list(counts(report)))
        yield ""
        yield from ("| where | severity | rule | finding |", "|---|---|---|---|")
        for path, finding in report.findings():
            where = place(path, finding)
            what = _cell(sentence(finding, report.rules))
            yield f"| {_cell(where)} | {severity(finding)} | {finding.code} {finding.name} | {what} |"
    undone = [error_line(*pair) for pair in report.problems()]
    if undone:
        yield from ("", "Not examined:", "")
        yield from (f"- {_cell(line)}" for line in undone)


def table(rows: list[Count]) -> Iterator[str]:
    """The counts by rule."""
    yield from ("| findings | rule | severity | fixed by |", "|---:|---|---|---|")
    for row in rows:
        yield f"| {row.number:,} | {row.code} {row.name} | {row.severity} | {row.fixed_by} |"


def _cell(text: str) -> str:
    """Text that no Markdown changes: a pipe would end the cell, an angle bracket begin a tag."""
    parts = text.replace("\\", "\\\\").replace("|", "\\|").split("`")
    for number in range(0, len(parts), 2):
        parts[number] = parts[number].replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
    if len(parts) % 2:
        return "`".join(parts)
    return "\\`".join(parts)
