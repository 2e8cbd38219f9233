"""``--statistics``: how many findings of which rule, the most frequent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchport.lazy import NamedTuple
from torchport.report.findings import Report, Severity, is_fixed_by_lint, is_fixed_by_migrate, severity
from torchport.report.text import Style


class Count(NamedTuple):
    """The findings of one rule and severity. ``fixed_by``: the commands that mend some of them."""

    number: int
    code: str
    name: str
    severity: Severity
    files: int
    fixed_by: str


def counts(report: Report) -> Iterator[Count]:
    """A row for each rule and severity, by number and then by code."""
    numbers: Counter[tuple[str, str, Severity]] = Counter()
    files: dict[tuple[str, str, Severity], set[str]] = {}
    commands: dict[tuple[str, str, Severity], set[str]] = {}
    for path, finding in report.findings():
        key = finding.code, finding.name, severity(finding)
        numbers[key] += 1
        files.setdefault(key, set()).add(path)
        by = commands.setdefault(key, set())
        if is_fixed_by_lint(finding, report.rules):
            by.add("lint --fix")
        elif is_fixed_by_migrate(finding, report.rules):
            by.add("migrate")
    for key, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0])):
        code, name, rank = key
        yield Count(number, code, name, rank, len(files[key]), ", ".join(sorted(commands[key])))


def render(report: Report, style: Style, name: str) -> Iterator[str]:
    """The counts in the format of that name."""
    rows = list(counts(report))
    if name == "json":
        import json

        yield json.dumps([row._asdict() for row in rows], indent=2)
    elif name == "markdown":
        from torchport.report.formats.markdown import table

        yield from table(rows)
    else:
        yield from _text(rows, style)


def _text(rows: list[Count], style: Style) -> Iterator[str]:
    wide = max((len(f"{row.number:,}") for row in rows), default=0)
    names = max((len(row.name) for row in rows), default=0)
    for row in rows:
        fix = f"  {row.fixed_by}" if row.fixed_by else ""
        code = style.paint(row.code, "cyan")
        yield f"{row.number:>{wide},}  {code}  {row.name:<{names}}  {row.severity:<7}{fix}".rstrip()
