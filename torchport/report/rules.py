"""The rule catalogue as text and JSON: the list, and the page of one rule.

The page is made here alone: ``docs/rules/``, ``torchport rule CODE`` and the help in SARIF are the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
FIXES: dict[Safety, str] = {
    "safe": "`torchport lint --fix` changes it where the result is proved to be equal",
    "unsafe": "the result may differ: `torchport lint --fix` changes it only with `--unsafe`",
    "manual": "reported, not changed",
}
LANGUAGES = {"yaml": "yaml", "json": "json", "sh": "sh", "sbatch": "sh", "txt": "text"}
"""What the example of a rule for files of settings and launchers is written in."""
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


def page(rule: Rule) -> Iterator[str]:
    """Everything that the catalogue says of one rule, as Markdown."""
    yield from (f"# {rule.name} ({rule.code})", "")
    yield from ("## What it finds", "", sentence(rule.summary), "")
    yield from ("## Why it matters", "", *rule.why.strip().splitlines(), "")
    if rule.measured:
        yield from (f"Measured: {rule.measured.strip()}", "")
    yield f"If nothing is done: {EFFECTS[rule.effect]}."
    if rule.since:
        yield f"Holds for {rule.since}."
    yield from ("", "## What becomes of it", "")
    yield from _becomes(rule)
    if rule.instead:
        yield from ("", "## Use instead", "", *rule.instead.strip().splitlines())
    yield from ("", "## Example")
    yield from _example(rule)
    if rule.references:
        yield from ("", "## References", "")
        yield from (f"- <{reference}>" for reference in rule.references)


def _becomes(rule: Rule) -> Iterator[str]:
    if rule.settings:
        yield f"- looks at: {'' if rule.reads_settings_alone else 'Python, '}files of settings and launchers"
    if rule.lint_only:
        yield "- found by: `torchport lint`"
        yield f"- fix: {FIXES[rule.safety]}"
    else:
        yield "- found by: `torchport lint` and `torchport migrate`"
        yield from (f"- target `{target}`: {SUPPORTS[rule.support[target]]}" for target in TARGETS)
        yield f"- rewriting: {SAFETIES[rule.safety]}"
    if not rule.lint_only or rule.safety != "manual":
        yield f"- review: {READS[rule.review]}"
    if rule.reason:
        yield f"- left for a person: {rule.reason}"


def _example(rule: Rule) -> Iterator[str]:
    """The example as a diff for each target that the rule rewrites for, or as it is where there is none."""
    import difflib

    before = rule.example["before"].strip("\n").splitlines()
    targets = [target for target in TARGETS if target in rule.example]
    if not targets:
        language = LANGUAGES.get(rule.example.get("file", "").rpartition(".")[2], "python")
        yield from ("", f"```{language}", *before, "```")
    for target in targets:
        after = rule.example[target].strip("\n").splitlines()
        yield from ("", f"Target `{target}`:", "", "```diff")
        yield from (line.rstrip() for line in difflib.ndiff(before, after) if not line.startswith("?"))
        yield "```"


def explanation(rule: Rule, style: Style) -> Iterator[str]:
    """The page for a terminal: the same lines, painted."""
    fence = ""
    for line in page(rule):
        if line.startswith("```"):
            fence = "" if fence else line[3:]
            yield style.paint(line, "dim")
        elif fence == "diff" and line[:1] in ("-", "+"):
            yield style.paint(line, "red" if line[0] == "-" else "green")
        else:
            yield style.paint(line, "bold") if line.startswith("#") and not fence else line


def sentence(text: str) -> str:
    """Summaries stand in lists, without a capital and a full stop."""
    text = text.strip()
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def as_data(rule: Rule) -> dict[str, Any]:
    """A rule as JSON has it."""
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in rule._asdict().items()}
