"""SARIF 2.1.0, which GitHub code scanning and most other dashboards read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchport import __version__
from torchport.model import Finding, Rule
from torchport.report.findings import SEVERITIES, Report, sentence, severity
from torchport.report.formats.fingerprint import fingerprints
from torchport.report.rules import page
from torchport.report.rules import sentence as full
from torchport.report.text import Style, printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://pypi.org/project/torchport/"


def render(report: Report, style: Style) -> Iterator[str]:
    """One log with one run. Columns count characters, as the findings do."""
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report)]}, indent=2)


def _run(report: Report) -> dict[str, Any]:
    codes = sorted({finding.code for _, finding in report.findings()})
    numbers = {code: number for number, code in enumerate(codes)}
    driver = {
        "name": "torchport",
        "version": __version__,
        "informationUri": HOME,
        "rules": [_rule(report.rules[code]) for code in codes],
    }
    notifications = [
        {
            "level": "error",
            "message": {"text": problem.message},
            "locations": [_location(path, {"startLine": problem.line} if problem.line else None)],
        }
        for path, problem in report.problems()
    ]
    if report.refusal:
        notifications.append({"level": "error", "message": {"text": report.refusal}})
    status = report.exit_status
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": status < 2, "exitCode": status, "toolExecutionNotifications": notifications}
        ],
        "results": [_result(report, numbers, *entry) for entry in fingerprints(report)],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    text = "\n".join(page(rule))
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": full(rule.summary)},
        "fullDescription": {"text": " ".join(rule.why.split())},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": SEVERITIES[rule.effect]},
        "properties": {"tags": [rule.name, rule.effect]},
    }


def _result(report: Report, numbers: dict[str, int], path: str, finding: Finding, name: str) -> dict[str, Any]:
    region = (
        None
        if finding.cell
        else {
            "startLine": finding.line,
            "startColumn": finding.column,
            "endLine": finding.end_line,
            "endColumn": finding.end_column,
        }
    )
    return {
        "ruleId": finding.code,
        "ruleIndex": numbers[finding.code],
        "level": severity(finding),
        "message": {"text": sentence(finding, report.rules, cell=True)},
        "locations": [_location(path, region)],
        "partialFingerprints": {"torchport/v1": name},
    }


def _location(path: str, region: dict[str, int] | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if region:
        place["region"] = region
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    """Relative to the folder of the run where the file is in it, as code scanning wants it."""
    file = Path(path)
    if file.is_absolute():
        return file.as_uri()
    return quote(printable(file.as_posix()), safe="/")
