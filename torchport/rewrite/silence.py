"""Findings that a person has silenced: they stay as they are, and so does what would move together with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from torchport.analysis.names import line_mark
from torchport.analysis.suppressions import VERBS, Suppression
from torchport.lazy import NamedTuple
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.text import Text

SILENCED = "it is silenced"
TOGETHER = "it moves together with {}, which is to stay"
UNUSED, UNEXPLAINED, UNKNOWN = "unused-suppression", "suppression-without-reason", "unknown-suppression"

Key = tuple[str, int, int]


class Places(Protocol):
    """A text in which a finding can be made: a file of Python, or one of settings."""

    @property
    def text(self) -> Text:
        """The text as bytes."""

    def at(self, rule: Rule, start: int, end: int, reason: str) -> Finding:
        """A finding at bytes of the text."""


class Silence(NamedTuple):
    """What comments and the configuration say of one file."""

    comments: Sequence[Suppression] = ()
    off: Collection[str] = ()
    """Codes of rules that the configuration switches off for this file."""

    def quiet(self, findings: Sequence[Finding]) -> set[Key]:
        """The findings that are not wanted."""
        return {key(f) for f in findings if f.code in self.off or any(covers(c, f) for c in self.comments)}

    def halved(self, findings: Sequence[Finding], text: Text) -> dict[Key, int]:
        """Findings that change a silenced line as well as others, with that line: the others stay with it."""
        found = {}
        for finding in findings if self.comments else ():
            if line := next((c.covers for c in self.comments if changes(c, finding, text)), 0):
                found[key(finding)] = line
        return found

    def unused(self, findings: Sequence[Finding], wanted: Collection[Rule], text: Text) -> Iterator[Suppression]:
        """Comments that silence nothing although the user asked for a rule that they are about."""
        for comment in self.comments:
            about = [rule for rule in wanted if comment.names(rule.code, rule.name)]
            used = any(covers(comment, finding) or changes(comment, finding, text) for finding in findings)
            if comment.verb in VERBS and about and not used:
                yield comment


def said_at_the_end(rule: Rule, context: Context) -> Iterator[Finding]:
    """Nothing: what is wrong with comments, or passed over, is known only when all other rules have run."""
    return iter(())


def key(finding: Finding) -> Key:
    """What tells one finding of a pass from all others."""
    return finding.code, finding.start, finding.end


def covers(comment: Suppression, finding: Finding) -> bool:
    """Whether a comment is about a finding: on its first line or on its last."""
    if comment.verb == "skip-file":
        return True
    on = comment.covers in (finding.line, finding.end_line)
    return comment.verb == "ignore" and on and comment.names(finding.code, finding.name)


def changes(comment: Suppression, finding: Finding, text: Text) -> bool:
    """Whether a comment is about a line that a finding of another line changes with its own."""
    if comment.verb != "ignore" or not comment.names(finding.code, finding.name) or covers(comment, finding):
        return False
    return any(text.line(e.start) <= comment.covers <= text.line(max(e.start, e.end - 1)) for e in finding.edits)


def held(findings: Sequence[Finding], quiet: Collection[Key], halved: Mapping[Key, int]) -> list[Finding]:
    """The findings, with no edit in those that are silenced, in part or whole, and in those of their groups."""
    if not quiet and not halved:
        return list(findings)
    lines = {key(finding): halved.get(key(finding), finding.line) for finding in findings}
    out = {*quiet, *halved}
    groups = {finding.group: lines[key(finding)] for finding in findings if finding.group and key(finding) in out}
    return [_held(finding, groups, quiet, halved) for finding in findings]


def _held(finding: Finding, groups: Mapping[str, int], quiet: Collection[Key], halved: Mapping[Key, int]) -> Finding:
    if key(finding) in quiet:
        return finding._replace(edits=(), needs=(), reason=finding.reason or SILENCED)
    if finding.edits and (key(finding) in halved or finding.group in groups):
        line = halved.get(key(finding)) or groups[finding.group]
        return finding._replace(edits=(), needs=(), reason=TOGETHER.format(line_mark(line)))
    return finding


def about_comments(
    silence: Silence, findings: Sequence[Finding], rules: Sequence[Rule], wanted: Collection[str], context: Places
) -> Iterator[Finding]:
    """What is wrong with the comments themselves: each says for which rules and why, and silences something."""
    own = {rule.name: rule for rule in rules if rule.name in (UNUSED, UNEXPLAINED, UNKNOWN) and rule.code in wanted}
    others = [rule for rule in rules if rule.code in wanted and rule.name not in own]
    known = {word for rule in rules for word in (rule.code, rule.name)}
    if rule := own.get(UNUSED):
        for comment in silence.unused(findings, others, context.text):
            yield context.at(rule, *_span(comment, context), rule.reason)
    for comment in silence.comments:
        if not comment.reason and comment.verb in VERBS and (rule := own.get(UNEXPLAINED)):
            yield context.at(rule, *_span(comment, context), rule.reason)
        if (what := _unknown(comment, known)) and (rule := own.get(UNKNOWN)):
            yield context.at(rule, *_span(comment, context), what)


def _unknown(comment: Suppression, known: Collection[str]) -> str:
    if comment.verb not in VERBS:
        return f"{comment.verb or 'nothing'!r} is not one of {', '.join(VERBS)}"
    for word in comment.codes:
        if not any(name == word.lower() or name.startswith(word.upper()) for name in known):
            return f"no rule is called {word!r}"
    return ""


def _span(comment: Suppression, context: Places) -> tuple[int, int]:
    start = context.text.starts[comment.line - 1]
    line = context.text.line_text(comment.line).decode()
    return start + len(line[: comment.column - 1].encode()), start + len(line[: comment.end_column - 1].encode())
