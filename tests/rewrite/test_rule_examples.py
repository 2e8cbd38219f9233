"""The example of each rule is what really happens to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.model import Rule
from torchport.rewrite import Outcome

RULES = load_rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_example_becomes_what_the_rule_says(rule: Rule, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(rule.example["before"])
    assert not outcome.problems
    assert rule.code in {finding.code for finding in [*outcome.applied, *outcome.left]}
    assert outcome.text == rule.example.get("portable")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rule_that_rewrites_shows_it(rule: Rule) -> None:
    assert ("portable" in rule.example) == (rule.support["portable"] != "manual" and rule.effect != "none")
