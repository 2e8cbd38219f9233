"""Gradient norms that are clipped by hand: the condition goes into the factor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.lint.checks.facts import Facts, facts
from torchport.lint.checks.reads import wanted
from torchport.lint.checks.spelling import torch_name
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New


def norm_clip(rule: Rule, context: Context) -> Iterator[Finding]:
    """``if norm > c: g = g * (c / norm)`` is ``g = g * (c / torch.where(norm > c, norm, c))``."""
    known = facts(context)
    for branch in context.tree.every(ast.If):
        division = clipping(known, branch)
        if division is None or not known.heat(branch.test):
            continue
        statement, torch = branch.body[0], torch_name(context)
        bound, norm, test = (context.source(n) for n in (division.left, division.right, branch.test))
        changed = f"{bound} / {torch}.where({test}, {norm}, {bound})"
        source = context.source(statement)
        first = context.text.span(statement)[0]
        start, end = (offset - first for offset in context.text.span(division))
        raw = source.encode()
        text = (raw[:start] + changed.encode() + raw[end:]).decode()
        doubt = f"{rule.reason}; --unsafe does it: it is equal but for the gradient through a norm that is NaN"
        if not torch:
            yield context.leave(rule, branch, rule.reason)
            continue
        yield context.rewrite(rule, branch, New(branch, text, False), doubt=doubt)  # type: ignore[arg-type]


def clipping(known: Facts, branch: ast.If) -> ast.BinOp | None:
    """The ``c / norm`` of a branch that does nothing but to multiply by it where ``norm > c``."""
    test = branch.test
    if branch.orelse or len(branch.body) != 1 or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    division = _factor(branch.body[0]) if isinstance(test.ops[0], ast.Gt) else None
    if division is None or not wanted(known.value(test.left)) or not known.value(test.left).scalar:
        return None
    if ast.dump(division.right) != ast.dump(test.left):
        return None
    bound = test.comparators[0]
    if ast.dump(division.left) != ast.dump(bound) or known.value(bound).kind not in ("number", "unknown"):
        return None
    if isinstance(bound, ast.Constant) and not (isinstance(bound.value, int | float) and bound.value > 0):
        return None  # where nothing is clipped the factor is c / c
    return division


def _factor(statement: ast.stmt) -> ast.BinOp | None:
    """``c / norm`` in ``g = g * (c / norm)``, ``g *= c / norm`` and ``g.mul_(c / norm)``."""
    match statement:
        case ast.AugAssign(op=ast.Mult(), value=ast.BinOp(op=ast.Div()) as division):
            return division
        case ast.Assign(
            targets=[ast.Name() as target],
            value=ast.BinOp(op=ast.Mult(), left=ast.Name() as left, right=ast.BinOp(op=ast.Div()) as division),
        ):
            return division if target.id == left.id else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="mul_"), args=[ast.BinOp(op=ast.Div()) as division])):
            return division
    return None
