"""Reductions that PyTorch/XLA computes otherwise than PyTorch does, without a word."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.lint.checks.facts import Facts, facts
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def bool_cumsum(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mask.cumsum(0)`` stays a tensor of bools."""
    known = facts(context)
    for call, base, rest in _reductions(context, known, "cumsum"):
        value = known.value(base)
        if value.dtype == "bool" and value.on_device and keyword(call, "dtype") is None and rest:
            yield context.rewrite(rule, call, New(base, f"{_operand(context, base)}.long()", False))


def bool_count(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mask.count_nonzero()`` gives True."""
    known = facts(context)
    for call, base, rest in _reductions(context, known, "count_nonzero"):
        if _only_tensors_have(known, base) and not _asks_for_any(context.tree.parents[call]):
            positional = [context.source(a) for a in rest if a in call.args]
            given = ", ".join([*positional, *(_written(context, k) for k in call.keywords)])
            yield context.rewrite(rule, call, New(call, f"({_operand(context, base)} != 0).sum({given})", False))


def _asks_for_any(parent: ast.AST) -> bool:
    """``mask.count_nonzero() > 0`` is right in any dtype."""
    return isinstance(parent, ast.Compare) and all(
        isinstance(c, ast.Constant) and c.value == 0 for c in parent.comparators
    )


def whole_amax(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.amax()`` gives ``x`` as it is."""
    known = facts(context)
    for name in ("amax", "amin"):
        for call, base, rest in _reductions(context, known, name):
            if _only_tensors_have(known, base) and not rest and not call.keywords:
                text = f"{_operand(context, base)}.{name.removeprefix('a')}()"
                yield context.rewrite(rule, call, New(call, text, False))


def _only_tensors_have(known: Facts, base: ast.expr) -> bool:
    """A tensor that is not known to be on the host; arrays have no method of these names."""
    value = known.value(base)
    return value.on_device or value.kind == "unknown"


def _reductions(context: Context, known: Facts, name: str) -> Iterator[tuple[ast.Call, ast.expr, list[ast.expr]]]:
    """Calls of a reduction as a function or a method, the tensor, and the arguments behind it."""
    for call in known.named(name):
        if context.named(call.func, f"torch.{name}"):
            if call.args and not isinstance(call.args[0], ast.Starred):
                yield call, call.args[0], call.args[1:] + [k.value for k in call.keywords if k.arg in ("dim", "axis")]
        elif isinstance(call.func, ast.Attribute) and context.qualify(call.func) is None:
            yield call, call.func.value, call.args + [k.value for k in call.keywords if k.arg in ("dim", "axis")]


def _operand(context: Context, node: ast.expr) -> str:
    """The source of what a method is called on; brackets around an operator."""
    source = context.source(node)
    return source if isinstance(node, SIMPLE) else f"({source})"


def _written(context: Context, argument: ast.keyword) -> str:
    return f"{argument.arg}={context.source(argument.value)}" if argument.arg else f"**{context.source(argument.value)}"
