"""The rule catalogue as text and JSON: the list, and one rule explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from torchport.model import TARGETS, Effect, Review, Rule, Safety, Support
from torchport.report.text import Style

EFFECTS: dict[Effect, str] = {
    "silent": "wrong or switched off, without a word",
    "error": "an error",
    "slow": "slow",
    "none": "no harm",
}
SUPPORTS: dict[Support, str] = {
    "same": "works as before",
    "emulated": "emulated",
    "dropped": "dropped, nothing to do",
    "manual": "left for a person",
}
SAFETIES: dict[Safety, str] = {
    "safe": "rewritten where imports and scopes prove what the name means",
    "unsafe": "rests on a heuristic: rewritten only with --unsafe",
    "manual": "reported, not rewritten",
}
READS: dict[Review, str] = {
    "merge": "merge such a hunk as it is",
    "glance": "glance at such a hunk",
    "read": "read such a hunk closely",
}


def rule_list(rules: Sequence[Rule], style: Style) -> Iterator[str]:
    """One line a rule: code, name, what happens if nothing is done, whether it is rewritten, summary."""
    name_width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        code = style.paint(rule.code, "cyan")
        yield f"{code}  {rule.name:<{name_width}}  {rule.effect:<6}  {rule.safety:<6}  {rule.summary}"


def explanation(rule: Rule, style: Style) -> Iterator[str]:
    """Everything that the catalogue says of one rule."""
    yield style.paint(f"{rule.code} {rule.name}", "bold")
    yield ""
    yield rule.summary.strip()
    yield ""
    yield from rule.why.strip().splitlines()
    yield ""
    yield f"If nothing is done   {EFFECTS[rule.effect]}"
    for target in TARGETS:
        if target in rule.support:
            yield f"Target {target:<13} {SUPPORTS[rule.support[target]]}"
    yield f"Rewriting            {SAFETIES[rule.safety]}"
    yield f"Review               {READS[rule.review]}"
    if rule.since:
        yield f"Holds for            {rule.since}"
    if rule.reason:
        yield f"Left for a person    {rule.reason}"
    yield from _example(rule, style)
    if rule.references:
        yield ""
        yield "References:"
        yield from (f"  {reference}" for reference in rule.references)


def _example(rule: Rule, style: Style) -> Iterator[str]:
    """The example as a diff for each target that the rule rewrites for."""
    before = rule.example.get("before", "").strip("\n").splitlines()
    if not before:
        return
    rewritten = [target for target in TARGETS if target in rule.example]
    if not rewritten:
        yield ""
        yield "Example:"
        yield from (f"    {line}" for line in before)
    for target in rewritten:
        yield ""
        yield f"Example, target {target}:"
        yield from _diff(before, rule.example[target].strip("\n").splitlines(), style)


def _diff(before: list[str], after: list[str], style: Style) -> Iterator[str]:
    """The whole of both texts, lines that stay marked with a blank."""
    import difflib

    for line in difflib.ndiff(before, after):
        if line.startswith("?"):
            continue
        how = {"-": "red", "+": "green"}.get(line[0])
        yield "    " + (style.paint(line, how) if how else line)


def as_data(rule: Rule) -> dict[str, Any]:
    """A rule as JSON has it."""
    return asdict(rule)
