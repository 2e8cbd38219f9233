"""What ``lint --fix`` makes of a program, and the comparison of what both compute."""

from __future__ import annotations

from typing import Any

import torch

from torchport.catalog import load_rules
from torchport.lint.linter import Linter
from torchport.project.source import Source

HEAD = "import torch\nimport torch.nn.functional as F\n"


def linted(code: str, *, unsafe: bool = False) -> str:
    """The code after ``lint --fix``."""
    rules = tuple(rule for rule in load_rules() if rule.lint_only)
    outcome = Linter(rules, "portable", fix=True, unsafe=unsafe)(Source("step.py", HEAD + code, "utf-8", False))
    assert not outcome.problems
    return outcome.text or ""


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """Values, dtypes and shapes are equal, NaN at the same places."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-5, atol=1e-6)
