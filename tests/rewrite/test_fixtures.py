"""Every folder of ``fixtures/``: what becomes of ``before.py``, what is left, and what must hold of every rewrite.

``pytest tests/rewrite --snapshot-update`` writes ``portable.py``, ``xla.py``, ``tpu.py`` and what is left for each
(``findings.txt``, ``findings-xla.txt``, ``findings-tpu.txt``) anew; read the difference.
A case of a rule that lint alone runs has ``fixed.py``, what ``lint --fix --unsafe`` makes of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from torchport.catalog import load_rules
from torchport.model import TARGETS, Finding, Rule, Target
from torchport.rewrite import Outcome
from torchport.rewrite.comments import comments
from torchport.rewrite.placement import WANTED

FOLDER = Path(__file__).parents[2] / "fixtures"
ALL = sorted(path.parent for path in FOLDER.glob("*/before.py"))
LINT_ONLY = frozenset(rule.code for rule in load_rules() if rule.lint_only)
LINTED = [case for case in ALL if case.name.partition("-")[0] in LINT_ONLY]
CASES = [case for case in ALL if case not in LINTED]
NOTHING = [case for case in CASES if case.name.startswith("noop-")]

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
targets = pytest.mark.parametrize("target", TARGETS)


def read(case: Path) -> str:
    return (case / "before.py").read_bytes().decode()


def listed(findings: list[Finding]) -> str:
    ordered = sorted(findings, key=lambda f: (f.line, f.column, f.code))
    return "".join(f"{f.line}:{f.column} {f.code} {f.effect} {f.old!r}: {f.reason}\n" for f in ordered)


@targets
@pytest.mark.parametrize("case", NOTHING, ids=lambda case: case.name)
def test_what_is_not_cuda_is_not_touched(case: Path, target: Target, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(read(case), target=target)
    assert outcome.text is None
    assert not outcome.problems
    assert not [finding for finding in outcome.left if finding.left_for_a_person]


@targets
@cases
def test_output_is_as_recorded(case: Path, target: Target, migrate: Callable[..., Outcome], snapshot: object) -> None:
    outcome = migrate(read(case), target=target)
    snapshot.snapshot_dir = case  # type: ignore[attr-defined]
    if outcome.text is None:
        assert not (case / f"{target}.py").exists(), "it was rewritten once and is not any more"
    else:
        snapshot.assert_match(outcome.text, f"{target}.py")  # type: ignore[attr-defined]
    left = "findings.txt" if target == "portable" else f"findings-{target}.txt"
    snapshot.assert_match(listed(outcome.left), left)  # type: ignore[attr-defined]


@targets
@cases
def test_only_the_portable_target_speaks_of_torchport(
    case: Path, target: Target, migrate: Callable[..., Outcome]
) -> None:
    before = read(case)
    if target != "portable" and "shim" not in before:
        outcome = migrate(before, target=target)
        assert not re.search(r"\bfrom torchport|\bimport torchport|\bshim\.", outcome.text or "")
        assert [f.reason for f in outcome.left if re.search(r"\bshim\b", f.reason)] == []


@targets
@cases
def test_output_parses_keeps_comments_and_stays_on_a_second_run(
    case: Path, target: Target, migrate: Callable[..., Outcome]
) -> None:
    before = read(case)
    outcome = migrate(before, target=target)
    if outcome.text is None:
        return
    ast.parse(outcome.text)
    assert [text for text in comments(outcome.text) if text != WANTED] == comments(before)
    assert migrate(outcome.text, target=target).text is None


@targets
@cases
def test_crlf_gives_the_same_edits(case: Path, target: Target, migrate: Callable[..., Outcome]) -> None:
    before = read(case)
    plain, crlf = migrate(before, target=target), migrate(before.replace("\n", "\r\n"), target=target)
    expected = None if plain.text is None else plain.text.replace("\n", "\r\n")
    assert crlf.text == expected
    assert [(f.line, f.column, f.code) for f in crlf.left] == [(f.line, f.column, f.code) for f in plain.left]


@targets
@cases
def test_no_site_is_both_rewritten_and_left(case: Path, target: Target, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(read(case), target=target)
    done = {(f.code, f.line, f.column) for f in outcome.applied}
    assert not done & {(f.code, f.line, f.column) for f in outcome.left}


@pytest.mark.parametrize("case", LINTED, ids=lambda case: case.name)
def test_lint_finds_and_fixes_what_is_recorded(
    case: Path, inspect: Callable[..., Outcome], fix: Callable[..., Outcome], snapshot: object
) -> None:
    before = read(case)
    found, fixed = inspect(before), fix(before, unsafe=True)
    assert not found.problems
    assert not fixed.problems
    snapshot.snapshot_dir = case  # type: ignore[attr-defined]
    snapshot.assert_match(listed(found.left), "findings.txt")  # type: ignore[attr-defined]
    if fixed.text is None:
        assert not (case / "fixed.py").exists(), "it was fixed once and is not any more"
        return
    snapshot.assert_match(fixed.text, "fixed.py")  # type: ignore[attr-defined]
    assert comments(fixed.text) == comments(before)
    assert fix(fixed.text, unsafe=True).text is None


@pytest.mark.parametrize("case", LINTED, ids=lambda case: case.name)
def test_lint_of_crlf_gives_the_same(case: Path, inspect: Callable[..., Outcome], fix: Callable[..., Outcome]) -> None:
    before = read(case)
    crlf = before.replace("\n", "\r\n")
    places = [[(f.line, f.column, f.code) for f in inspect(text).left] for text in (before, crlf)]
    assert places[0] == places[1]
    plain, other = fix(before, unsafe=True).text, fix(crlf, unsafe=True).text
    assert other == (None if plain is None else plain.replace("\n", "\r\n"))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_case_is_named_after_its_rule(case: Path, rules: tuple[Rule, ...]) -> None:
    code = case.name.partition("-")[0]
    assert code in {rule.code for rule in rules} | {"noop", "place"}


def test_every_rule_has_a_case(
    migrate: Callable[..., Outcome], inspect: Callable[..., Outcome], rules: tuple[Rule, ...]
) -> None:
    seen = set()
    for case in ALL:
        outcomes = [inspect(read(case))] if case in LINTED else [migrate(read(case), target=t) for t in TARGETS]
        seen |= {finding.code for outcome in outcomes for finding in [*outcome.applied, *outcome.left]}
    assert {rule.code for rule in rules if not rule.reads_settings_alone} == seen  # test_settings.py has the others
