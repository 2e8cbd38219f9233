"""JSON for other programs. The keys only ever grow within one ``version``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from torchport import __version__
from torchport.model import FileResult, Finding
from torchport.report.findings import Report, advice, is_fixed_by_lint, is_fixed_by_migrate, severity
from torchport.report.text import Style

VERSION = 1
_FINDING = (
    "code",
    "name",
    "cell",
    "line",
    "column",
    "end_line",
    "end_column",
    "message",
    "effect",
    "safety",
    "perhaps",
)


def render(report: Report, style: Style) -> Iterator[str]:
    """One object. Lines and columns count from 1 and are those of the files after the fixes."""
    yield json.dumps(_report(report), indent=2)


def _report(report: Report) -> dict[str, Any]:
    return {
        "version": VERSION,
        "torchport": __version__,
        "target": report.target,
        "exit_status": report.exit_status,
        "refused": report.refusal or None,
        "summary": {
            "examined": report.examined,
            "findings": sum(1 for _ in report.findings()),
            "fixed": sum(1 for _ in report.fixes()),
            "problems": sum(1 for _ in report.problems()),
            "silenced": report.silenced,
            "accepted": report.accepted,
            "perhaps": report.perhaps,
            "notes": report.remarks,
        },
        "files": [_file(file, report) for file in report.files],
        "notes": report.notes,
    }


def _file(file: FileResult, report: Report) -> dict[str, Any]:
    return {
        "path": file.path,
        "findings": [_finding(finding, report) for finding in file.left],
        "fixed": [_finding(finding, report) for finding in file.applied],
        "problems": [{"message": p.message, "line": p.line or None, "fatal": p.fatal} for p in file.problems],
    }


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    by_lint = is_fixed_by_lint(finding, report.rules)
    by = "lint --fix" if by_lint else "migrate" if is_fixed_by_migrate(finding, report.rules) else None
    entry = {key: getattr(finding, key) for key in _FINDING}
    return entry | {
        "severity": severity(finding),
        "source": finding.old,
        "fixed_by": by,
        "replacement": finding.new or None,
        "advice": advice(finding, report.rules) or None,
    }
