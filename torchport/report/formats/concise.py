"""One line a finding, in the form of compilers, which editors and problem matchers read."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.report.findings import Report, place, sentence, severity
from torchport.report.text import Style, printable


def render(report: Report, style: Style) -> Iterator[str]:
    """``path:line:column: severity: CODE message``."""
    for path, finding in report.findings():
        where = place(path, finding)
        code = style.paint(finding.code, "cyan")
        yield f"{where}: {severity(finding)}: {code} {sentence(finding, report.rules)}"
    for path, problem in report.problems():
        if not problem.fatal:
            yield f"{printable(path)}:{problem.line or 1}:1: error: not examined: {problem.message}"
