"""Every name that a rule may give as its transformer is that of a function of a rule and a file."""

from __future__ import annotations

import inspect

import pytest

from torchport.catalog import load_rules
from torchport.lint.checks import CHECKS
from torchport.rewrite.transformers import TRANSFORMERS, Transformers

EVERY = TRANSFORMERS | CHECKS


@pytest.mark.parametrize("name", EVERY)
def test_is_a_function_of_rule_and_context(name: str) -> None:
    assert list(inspect.signature(Transformers(EVERY)[name]).parameters) == ["rule", "context"]


def test_each_is_of_a_rule() -> None:
    assert {rule.transformer for rule in load_rules()} - {""} == set(EVERY)
