"""GitLab's Code Quality report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from torchport.report.findings import Report, Severity, sentence, severity
from torchport.report.formats.fingerprint import fingerprints
from torchport.report.text import Style, printable

RANKS: dict[Severity, str] = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report, style: Style) -> Iterator[str]:
    """A JSON array; a file that could not be examined is a ``critical`` entry."""
    entries: list[dict[str, object]] = []
    for path, finding, name in fingerprints(report):
        start = {"line": 1 if finding.cell else finding.line, "column": finding.column}
        end = {"line": 1 if finding.cell else finding.end_line, "column": finding.end_column}
        entries.append(
            {
                "description": sentence(finding, report.rules, cell=True),
                "check_name": finding.code,
                "fingerprint": name,
                "severity": RANKS[severity(finding)],
                "location": {"path": printable(path), "positions": {"begin": start, "end": end}},
            }
        )
    for path, problem in report.problems():
        name = sha256(f"{path}\0{problem.message}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        entries.append(
            {
                "description": f"not examined: {problem.message}",
                "check_name": "not-examined",
                "fingerprint": name,
                "severity": "critical",
                "location": {"path": printable(path), "lines": {"begin": problem.line or 1}},
            }
        )
    yield json.dumps(entries, indent=2)
