"""What a worker process does for ``torchport lint``, and the short form in which its result travels and is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torchport.model import Edit, Finding, Problem, Rule

Row = list[Any]
"""A finding without what its rule says already, made of what JSON knows."""


SOME = (Edit(0, 0, ""),)


class Found(NamedTuple):
    """What was found in one file: rows of findings, rows of problems, and how many findings were silenced."""

    findings: list[Row]
    problems: list[Row]
    silenced: int = 0


def row_of(finding: Finding, rule: Rule) -> Row:
    """The short form of a finding."""
    return [
        finding.code,
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.effect,
        finding.review,
        finding.support,
        finding.old,
        finding.new,
        finding.reason,
        int(bool(finding.edits)) + 2 * int(finding.perhaps),
        "" if finding.message == rule.summary else finding.message,
    ]


def finding_of(row: Row, rules: Mapping[str, Rule]) -> Finding:
    """The finding of a short form. Of its edits only that there are some is kept."""
    code, line, column, end_line, end_column, effect, review, support, old, new, reason, flags, message = row
    rule = rules[code]
    return Finding(
        code=code,
        name=rule.name,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        message=message or rule.summary,
        effect=effect,
        support=support,
        safety=rule.safety,
        review=review,
        old=old,
        new=new,
        edits=SOME if flags & 1 else (),
        reason=reason,
        perhaps=bool(flags & 2),
    )


def problem_of(row: Row) -> Problem:
    """The problem of a short form."""
    message, line = row
    return Problem(message, line)
