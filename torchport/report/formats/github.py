"""Workflow commands that GitHub shows as annotations of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.report.findings import Report, sentence, severity
from torchport.report.text import Style, printable

KINDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, style: Style) -> Iterator[str]:
    """``::warning file=...,line=...::message``; columns only where a finding is on one line, as GitHub wants it."""
    for path, finding in report.findings():
        where: dict[str, object] = {"file": printable(path)}
        if not finding.cell:
            where |= {"line": finding.line, "endLine": finding.end_line}
        if not finding.cell and finding.line == finding.end_line:
            where |= {"col": finding.column, "endColumn": finding.end_column}
        where["title"] = f"torchport {finding.code} {finding.name}"
        yield _command(KINDS[severity(finding)], where, sentence(finding, report.rules, cell=True))
    for path, problem in report.problems():
        yield _command(
            "error", {"file": printable(path), "line": problem.line or 1, "title": "torchport"}, problem.message
        )


def _command(kind: str, properties: dict[str, object], message: str) -> str:
    said = ",".join(f"{key}={_escaped(str(value), properties=True)}" for key, value in properties.items())
    return f"::{kind} {said}::{_escaped(message)}"


def _escaped(text: str, *, properties: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if properties else text
