"""A name that a rule knows is known under the name of the module that defines it as well."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
import torch

from torchport.analysis.names import canonical
from torchport.catalog import load_rules

RULES = load_rules()
KNOWN = sorted(
    {name for rule in RULES for name in rule.match if not name.endswith("*")}
    | {name for rule in RULES for names in rule.rename.values() for name in names}
)


def found(name: str) -> Any:
    """The object of that name, or None where this torch has none."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def home(value: Any) -> str:
    """The name under which the module that defines ``value`` exports it; empty where that is private."""
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    private = any(part.startswith("_") for part in f"{module}.{name}".split("."))
    if private or not module.startswith("torch.") or "." in name:
        return ""
    return f"{module}.{name}" if getattr(importlib.import_module(module), name, None) is value else ""


CASES = [
    (name, other)
    for name in KNOWN
    if name.startswith("torch.") and (inspect.isclass(found(name)) or inspect.isroutine(found(name)))
    if (other := home(found(name))) and other != name
]


def test_there_are_such_names() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize(("name", "other"), CASES, ids=[other for _, other in CASES])
def test_the_name_of_the_defining_module_is_known(name: str, other: str) -> None:
    assert canonical(other) in (canonical(name), *KNOWN)
