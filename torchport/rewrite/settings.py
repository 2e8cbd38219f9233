"""Files of settings and launchers: what they ask of CUDA is found by the ``settings`` of rules, and never rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

from torchport.analysis.launchers import Fact, FactKind, launcher_facts
from torchport.analysis.settings import settings_facts
from torchport.analysis.suppressions import suppressions_in_settings
from torchport.catalog.load import SETTINGS
from torchport.lazy import NamedTuple
from torchport.model import Effect, Finding, Rule, Target
from torchport.project.files import kind_of
from torchport.project.paths import suffix_of
from torchport.rewrite.context import shorten
from torchport.rewrite.silence import Silence, about_comments, key
from torchport.rewrite.text import Text

WORKFLOW = re.compile(
    r"(^|/)(\.github|\.circleci|\.buildkite|\.gitlab|\.azure-pipelines|\.jenkins|\.ci)/"
    r"|(^|/)(\.gitlab-ci|\.travis|azure-pipelines|appveyor|\.pre-commit-config|tox|mkdocs)[\w.-]*\.(ya?ml|ini)$"
)
EVERY = ".*"
"""The pattern of an entry that is about a value under any name."""
ON_ITS_OWN_MACHINE = "it belongs to the checks of the project, which run on machines of their own"


class Asked(NamedTuple):
    """An entry of a rule's ``settings``, with its patterns compiled."""

    rule: Rule
    about: str
    name: re.Pattern[str]
    value: re.Pattern[str] | None
    of: re.Pattern[str] | None
    effect: Effect
    reason: str

    def holds(self, fact: Fact, short: str) -> bool:
        """Whether a fact is what this entry is about; ``short`` is its name without dashes and what is around it."""
        names = (fact.name,) if self.about in ("variable", "command") else (fact.name, short)
        return (
            any(self.name.fullmatch(name) for name in names)
            and (self.value is None or self.value.fullmatch(fact.value) is not None)
            and (self.of is None or self.of.fullmatch(fact.of) is not None)
        )


class Reader:
    """Finds in one file after the other; made once for all rules of a target."""

    def __init__(self, rules: Sequence[Rule], target: Target) -> None:
        self.rules, self.target = rules, target
        entries = [
            _asked(rule, entry) for rule in rules for entry in rule.settings if entry.get("target", target) == target
        ]
        entries.sort(key=lambda asked: asked.of is None)  # what says more comes first
        about = {"command": "command", "package": "package", "image": "image"}
        self.entries: dict[str, list[Asked]] = {kind: [] for kind in get_args(FactKind)}
        for entry in entries:
            self.entries[about.get(entry.about, "setting")].append(entry)
        self.names = {kind: _any(e.name for e in its if e.name.pattern != EVERY) for kind, its in self.entries.items()}
        self.values = _any(e.value for e in entries if e.value is not None and e.name.pattern == EVERY)

    def asked(self, fact: Fact) -> Asked | None:
        """The entry that a fact answers to. Most answer to none, which two patterns tell."""
        short = re.split(r"[./]", fact.name)[-1].lstrip("-+").replace("-", "_").lower()
        names = self.names[fact.kind]
        if not (names.fullmatch(short) or names.fullmatch(fact.name) or self.values.fullmatch(fact.value)):
            return None
        return next((entry for entry in self.entries[fact.kind] if entry.holds(fact, short)), None)

    def found(self, path: str, text: str) -> list[Finding]:
        """Everything in a file, each place once for each rule."""
        facts = launcher_facts(text) if kind_of(path) == "launcher" else settings_facts(text, suffix_of(path))
        page = Page(text, self.target)
        workflow = WORKFLOW.search(path) is not None
        every: dict[tuple[str, int, int], Finding] = {}
        for fact in facts:
            if (asked := self.asked(fact)) is not None:
                finding = page.about(asked, fact, workflow=workflow)
                last = next(reversed(every.values()), None)
                if last is None or last.code != finding.code or not last.start <= finding.start < last.end:
                    every.setdefault(key(finding), finding)
        return list(every.values())


def _any(patterns: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """Matches what one of the patterns does, and more: it does not tell capitals."""
    return re.compile("|".join(f"(?:{p.pattern})" for p in patterns) or "(?!)", re.IGNORECASE)


def _asked(rule: Rule, entry: object) -> Asked:
    assert isinstance(entry, dict)
    about = next(key for key in SETTINGS if key in entry)
    name, value, of = (
        re.compile(entry[key], 0 if key in ("variable", "command") else re.IGNORECASE) if key in entry else None
        for key in (about, "value", "of")
    )
    assert name is not None
    return Asked(rule, about, name, value, of, entry.get("effect", rule.effect), entry.get("reason", rule.reason))


class Page:
    """The text of a file, and how a finding is made of a part of it."""

    def __init__(self, text: str, target: Target) -> None:
        self.source, self.target = text, target
        self.text = Text(text)

    def about(self, asked: Asked, fact: Fact, *, workflow: bool) -> Finding:
        """The finding for a fact."""
        start, end = (len(self.source[:at].encode()) for at in (fact.start, fact.end))
        effect: Effect = "none" if workflow else asked.effect
        reason = f"{asked.reason}; {ON_ITS_OWN_MACHINE}" if workflow else asked.reason
        return self.at(asked.rule, start, end, reason)._replace(effect=effect)

    def at(self, rule: Rule, start: int, end: int, reason: str) -> Finding:
        """A finding that is left for a person, at bytes of the text."""
        (line, column), (end_line, end_column) = self.text.position(start), self.text.position(end)
        return Finding(
            code=rule.code,
            name=rule.name,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            message=rule.summary,
            effect=rule.effect,
            support="manual",
            safety=rule.safety,
            review=rule.review,
            old=shorten(self.text.bytes[start:end].decode(errors="replace")),
            reason=reason,
            start=start,
            end=end,
        )

    def first_line(self, line: int) -> int:
        """Where the command begins that goes on over several lines: a comment can only stand above it."""
        while line > 1 and self.text.line_text(line - 1).rstrip(b"\r\n").endswith(b"\\"):
            line -= 1
        return line


def read(
    reader: Reader, path: str, text: str, wanted: frozenset[str], off: frozenset[str]
) -> tuple[list[Finding], int]:
    """What is left for a person in one file, and how many findings a person has silenced."""
    found = reader.found(path, text)
    page = Page(text, reader.target)
    hush = Silence(suppressions_in_settings(text), off)
    reached = [f._replace(end_line=page.first_line(f.line)) for f in found]
    quiet = hush.quiet(reached)
    asked_for = [f for f in found if f.code in wanted]
    about = about_comments(hush, reached, reader.rules, wanted.difference(off), page)
    left = [f for f in asked_for if key(f) not in quiet]
    return [*left, *about], len(asked_for) - len(left)
