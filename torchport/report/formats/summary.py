"""The sums at the end of a report for a person."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.report.findings import Report, is_fixed_by_lint, is_fixed_by_migrate
from torchport.report.text import Style, count


def summary(report: Report, style: Style) -> Iterator[str]:
    """What was found and fixed, and what is not shown."""
    yield from _fixed(report, style)
    findings = [finding for _, finding in report.findings()]
    files = len({path for path, _ in report.findings()})
    if findings:
        yield style.paint(f"Found {count(len(findings), 'finding')} in {files:,} of {_files(report.examined)}", "bold")
        by_lint = sum(is_fixed_by_lint(finding, report.rules) for finding in findings)
        by_migrate = sum(is_fixed_by_migrate(finding, report.rules) for finding in findings)
        if by_lint:
            yield f"  {by_lint:,} can be fixed with `torchport lint --fix`"
        if by_migrate:
            yield f"  {by_migrate:,} can be rewritten with `torchport migrate`"
    else:
        yield style.paint(f"No findings in {_files(report.examined)}", "bold")
    undone = len({path for path, problem in report.problems() if not problem.fatal})
    if undone:
        yield style.paint(f"Not examined: {count(undone, 'file')}", "yellow")
    if report.silenced:
        yield f"Silenced by comments and configuration: {report.silenced:,}"
    if report.accepted:
        yield f"In the baseline: {report.accepted:,}"
    if report.perhaps:
        yield f"Not certain: {report.perhaps:,} (shown with --pedantic)"
    if report.remarks:
        yield f"Notes: {report.remarks:,} (shown with --verbose)"


def _files(number: int) -> str:
    return count(number, "file")


def _fixed(report: Report, style: Style) -> Iterator[str]:
    fixes = sum(1 for _ in report.fixes())
    if fixes:
        verb = "Fixed" if report.written and not report.refusal else "Would fix"
        yield style.paint(f"{verb} {count(fixes, 'finding')} in {count(len(report.changed()), 'file')}", "green")
