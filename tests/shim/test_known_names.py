"""Every public name of torch.cuda, torch.backends.cuda and torch.backends.cudnn that is installed has a rule."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import get_args

import pytest

from torchport.catalog import load_rules
from torchport.model import TARGETS, Effect, Finding, Support, Target
from torchport.project.source import Source
from torchport.rewrite import Migrator

ROOTS = ("torch.cuda", "torch.backends.cuda", "torch.backends.cudnn")
CATCH_ALL = "other-cuda-name"
INSIDE = ("TYPE_CHECKING", "annotations", "m")
"""Not for users: what ``typing`` and ``__future__`` leave, and how PyTorch makes flags of a module."""
PROPERTIES = {
    "torch.backends.cuda.matmul": ("allow_tf32", "fp32_precision", "allow_fp16_accumulation"),
    "torch.backends.cudnn": ("benchmark", "benchmark_limit", "deterministic", "enabled", "allow_tf32"),
    "torch.cuda.Stream": ("wait_stream", "wait_event", "record_event", "synchronize", "query"),
    "torch.cuda.Event": ("record", "synchronize", "query", "elapsed_time", "wait", "ipc_handle", "from_ipc_handle"),
    "torch.cuda.CUDAGraph": ("capture_begin", "capture_end", "replay", "reset", "pool"),
}
RULES = tuple(rule for rule in load_rules() if not rule.lint_only)


def modules(name: str) -> list[ModuleType]:
    """A module and all modules in it."""
    module = importlib.import_module(name)
    inner = [i.name for i in pkgutil.iter_modules(getattr(module, "__path__", [])) if not i.name.startswith("_")]
    return [module, *(m for i in inner for m in modules(f"{name}.{i}"))]


def public(module: ModuleType) -> list[str]:
    """What ``__all__`` lists, and what has no underscore and was not imported from elsewhere."""
    listed = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if not name.startswith("_") and (home is None or str(home).startswith(ROOTS)):
            listed.add(name)
    return [f"{module.__name__}.{name}" for name in listed]


def installed() -> list[str]:
    """All names that a program can write, each under every module that has it."""
    names = {name for root in ROOTS for module in modules(root) for name in public(module)}
    names |= {f"{owner}.{name}" for owner, inner in PROPERTIES.items() for name in inner}
    return sorted(name for name in names if name.rpartition(".")[2] not in INSIDE)


NAMES = installed()


def test_the_list_is_not_empty() -> None:
    assert len(NAMES) > 280
    assert {"torch.cuda.memory_allocated", "torch.cuda.amp.GradScaler", "torch.backends.cudnn.benchmark"} <= set(NAMES)


def findings(target: Target, names: list[str], *, called: bool = False) -> dict[str, list[Finding]]:
    """What is found in a program that reads, or calls, every name, each on a line of its own."""
    lines = [f"import {root}" for root in ROOTS]
    source = "\n".join([*lines, *(f"print({name}{'()' if called else ''})" for name in names)])
    outcome = Migrator(RULES, target)(Source("names.py", source + "\n", "utf-8", False))
    assert not outcome.problems
    found: dict[str, list[Finding]] = {name: [] for name in names}
    for finding in [*outcome.applied, *outcome.left]:
        if finding.line > len(ROOTS):
            found[names[finding.line - len(ROOTS) - 1]].append(finding)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_every_name_has_a_rule(target: Target) -> None:
    found = findings(target, NAMES)
    assert [name for name in NAMES if not [f for f in found[name] if f.name != CATCH_ALL]] == []
    assert [name for name in NAMES if any(f.name == CATCH_ALL for f in found[name])] == []
    for finding in [f for group in found.values() for f in group]:
        assert finding.support in get_args(Support)
        assert finding.effect in get_args(Effect)


def test_a_name_that_no_rule_knows_is_found_by_the_catch_all_alone() -> None:
    name = "torch.cuda.a_name_of_tomorrow"
    assert [f.name for f in findings("portable", [name])[name]] == [CATCH_ALL]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_said_to_be_the_same_is_rewritten_or_harmless(target: Target) -> None:
    """A name that stays although a person has to act is not supported, whatever its neighbours in the rule are."""
    wrong = [
        (name, finding.support)
        for name, group in findings(target, NAMES, called=True).items()
        for finding in group
        if finding.left_for_a_person and finding.support in ("same", "emulated") and not finding.edits
    ]
    assert wrong == []
