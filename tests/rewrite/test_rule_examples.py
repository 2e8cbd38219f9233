"""The example of each rule is what really happens to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.model import Rule
from torchport.rewrite import Outcome

RULES = load_rules()


MIGRATED = [rule for rule in RULES if not rule.lint_only]
LINTED = [rule for rule in RULES if rule.lint_only]


@pytest.mark.parametrize("rule", LINTED, ids=lambda rule: rule.code)
def test_example_is_found_and_fixed_as_the_rule_says(
    rule: Rule, inspect: Callable[..., Outcome], fix: Callable[..., Outcome]
) -> None:
    found = inspect(rule.example["before"])
    assert not found.problems
    assert rule.code in {finding.code for finding in found.left}
    assert fix(rule.example["before"], unsafe=True).text == rule.example.get("portable")


@pytest.mark.parametrize("rule", MIGRATED, ids=lambda rule: rule.code)
def test_example_becomes_what_the_rule_says(rule: Rule, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(rule.example["before"])
    assert not outcome.problems
    assert rule.code in {finding.code for finding in [*outcome.applied, *outcome.left]}
    assert outcome.text == rule.example.get("portable")


@pytest.mark.parametrize("rule", MIGRATED, ids=lambda rule: rule.code)
def test_rule_that_rewrites_shows_it(rule: Rule) -> None:
    assert ("portable" in rule.example) == (rule.support["portable"] != "manual" and rule.effect != "none")
