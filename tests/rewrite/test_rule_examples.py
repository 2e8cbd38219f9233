"""The example of each rule is what really happens to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import load_rules
from torchport.model import TARGETS, Rule, Target
from torchport.rewrite import Migrator, Outcome

RULES = load_rules()


targets = pytest.mark.parametrize("target", TARGETS)
MIGRATED = [rule for rule in RULES if not rule.lint_only and not rule.reads_settings_alone]
LINTED = [rule for rule in RULES if rule.lint_only]


@pytest.mark.parametrize("rule", LINTED, ids=lambda rule: rule.code)
def test_example_is_found_and_fixed_as_the_rule_says(
    rule: Rule, inspect: Callable[..., Outcome], fix: Callable[..., Outcome]
) -> None:
    found = inspect(rule.example["before"])
    assert not found.problems
    assert rule.code in {finding.code for finding in found.left}
    assert fix(rule.example["before"], unsafe=True).text == rule.example.get("portable")


@targets
@pytest.mark.parametrize("rule", MIGRATED, ids=lambda rule: rule.code)
def test_example_becomes_what_the_rule_says(rule: Rule, target: Target, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(rule.example["before"], target=target)
    assert not outcome.problems
    found = {finding.code for finding in [*outcome.applied, *outcome.left]}
    assert (rule.code in found) == (rule.support[target] == "manual" or target in rule.example or rule.effect == "none")
    assert outcome.text == rule.example.get(target)


@targets
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.reads_settings_alone], ids=lambda rule: rule.code)
def test_example_of_a_rule_for_settings_is_reported(
    rule: Rule, target: Target, migrators: dict[Target, Migrator]
) -> None:
    outcome = migrators[target].read(rule.example["file"], rule.example["before"])
    (finding,) = [finding for finding in outcome.left if finding.code == rule.code]
    assert finding.reason == rule.reasons.get(target, rule.reason)
    assert not finding.edits


@targets
@pytest.mark.parametrize("rule", MIGRATED, ids=lambda rule: rule.code)
def test_rule_that_rewrites_shows_it(rule: Rule, target: Target) -> None:
    """Only what works as it is, and what is left for a person, has no example of what becomes of it."""
    if target in rule.example:
        assert rule.support[target] != "manual"
    else:
        assert rule.support[target] in ("same", "manual")
