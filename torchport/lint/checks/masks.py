"""Assignments through a mask, each with a form of one shape that computes the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.operations import BOOLEAN
from torchport.lint.checks.facts import Facts, facts, report
from torchport.lint.checks.selections import has_mask, is_mask_index
from torchport.lint.checks.spelling import torch_name
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

ELEMENTWISE = BOOLEAN - {"any", "all", "isin", "BoolTensor"}


def mask_writes(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x[mask] = value``: masked_fill_, torch.where, or the shim, which asks the running program what the index is."""
    known = facts(context)
    for node in known.indexed:
        if not isinstance(node.ctx, ast.Store) or not has_mask(known, node):
            continue
        if not known.heat(node) or not is_mask_index(known, node):
            continue
        statement = context.tree.parents[node]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            yield _rewritten(rule, context, known, node, statement)
        else:
            yield report(rule, context, node)
    for call in known.named("index_put_"):
        func = call.func
        if isinstance(func, ast.Attribute) and len(call.args) == 2 and isinstance(call.args[0], ast.Tuple | ast.List):
            places = call.args[0].elts
            if len(places) == 1 and known.value(places[0]).dtype == "bool" and known.heat(call):
                yield report(rule, context, call)


def _rewritten(rule: Rule, context: Context, known: Facts, node: ast.Subscript, statement: ast.Assign) -> Finding:
    """The assignment with a fix."""
    target, value = node.value, statement.value
    mask = node.slice
    base, index = context.source(target), context.source(mask)
    same_shape = isinstance(target, ast.Name) and _elementwise(known, mask, target.id)
    if same_shape and _is_number(known, value):
        text, shim = f"{base}.masked_fill_({index}, {context.source(value)})", False
    elif same_shape and _same_selection(node, value) and (torch := torch_name(context)):
        assert isinstance(value, ast.Subscript)
        text, shim = f"{base}.copy_({torch}.where({index}, {context.source(value.value)}, {base}))", False
    elif context.target == "portable" and not _selects(known, value):
        text, shim = f"{context.shim}.masked_assign({base}, {_index(context, mask)}, {context.source(value)})", True
    else:
        return report(rule, context, node)
    return context.rewrite(rule, statement, New(statement, text, shim))  # type: ignore[arg-type]


def _selects(known: Facts, value: ast.expr) -> bool:
    """Whether the value itself is a selection, whose size depends on the data."""
    return any(isinstance(n, ast.Subscript) and is_mask_index(known, n) for n in ast.walk(value))


def _index(context: Context, mask: ast.expr) -> str:
    """An index of several parts as a tuple; slices as what the brackets make of them."""
    if not isinstance(mask, ast.Tuple):
        return context.source(mask)
    parts = []
    for part in mask.elts:
        if isinstance(part, ast.Slice):
            bounds = [context.source(b) if b is not None else "None" for b in (part.lower, part.upper, part.step)]
            parts.append(f"slice({', '.join(bounds)})" if part.step is not None else f"slice({bounds[0]}, {bounds[1]})")
        else:
            parts.append(context.source(part))
    return f"({', '.join(parts)})"


def _elementwise(known: Facts, mask: ast.expr, name: str) -> bool:
    """Whether the mask is made of the tensor ``name`` element by element, and so has its shape."""
    match mask:
        case ast.Name():
            made = known.flow.made_by(mask)
            return len(made) == 1 and not isinstance(made[0], ast.Name) and _elementwise(known, made[0], name)
        case ast.Compare(ops=[_], comparators=[other]):
            return isinstance(mask.left, ast.Name) and mask.left.id == name and known.value(other).kind == "number"
        case ast.UnaryOp(op=ast.Invert()):
            return _elementwise(known, mask.operand, name)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
            return _elementwise(known, mask.left, name) and _elementwise(known, mask.right, name)
        case ast.Call(func=ast.Attribute() as func, args=[ast.Name() as only], keywords=[]):
            return func.attr in ELEMENTWISE and only.id == name and known.flow.name_of(func).startswith("torch.")
        case ast.Call(func=ast.Attribute(value=ast.Name() as only) as func, args=[], keywords=[]):
            return func.attr in ELEMENTWISE and only.id == name
    return False


def _is_number(known: Facts, value: ast.expr) -> bool:
    """A Python number, for certain."""
    found = known.value(value)
    return found.kind == "number" and found.sure and not isinstance(value, ast.Attribute)


def _same_selection(node: ast.Subscript, value: ast.expr) -> bool:
    """``x[mask] = y[mask]`` with two names."""
    return (
        isinstance(value, ast.Subscript)
        and isinstance(value.value, ast.Name)
        and isinstance(node.slice, ast.Name)
        and ast.dump(value.slice) == ast.dump(node.slice)
    )


def filtered_loss(rule: Rule, context: Context) -> Iterator[Finding]:
    """``F.cross_entropy(x[y != k], y[y != k])`` is ``ignore_index=k``.

    Rows that do not count are set to 0: from one that holds inf or NaN the gradient would be NaN.
    """
    known = facts(context)
    for call in context.calls("torch.nn.functional.cross_entropy"):
        if len(call.args) != 2 or not all(isinstance(a, ast.Subscript) for a in call.args):
            continue
        logits, labels = call.args
        assert isinstance(logits, ast.Subscript)
        assert isinstance(labels, ast.Subscript)
        if ast.dump(logits.slice) != ast.dump(labels.slice) or not isinstance(labels.value, ast.Name):
            continue
        ignored = _ignored(known, labels.slice, labels.value.id)
        allowed = all(
            k.arg == "weight"
            or (k.arg == "reduction" and isinstance(k.value, ast.Constant) and k.value.value in ("mean", "sum"))
            for k in call.keywords
        )
        if ignored is None or not isinstance(logits.value, ast.Name) or not known.heat(call):
            continue
        if not allowed:
            yield report(rule, context, call)
            continue
        rest = "".join(f", {k.arg}={context.source(k.value)}" for k in call.keywords)
        x, y = logits.value.id, labels.value.id
        kept = f"{x}.masked_fill(({y} == {ignored}).unsqueeze(-1), 0).flatten(0, -2)"
        text = f"{context.source(call.func)}({kept}, {y}.flatten(), ignore_index={ignored}{rest})"
        yield context.rewrite(rule, call, New(call, text, False))


def _ignored(known: Facts, mask: ast.expr, labels: str) -> int | None:
    """The label that a mask leaves out."""
    if isinstance(mask, ast.Name):
        made = known.flow.made_by(mask)
        return _ignored(known, made[0], labels) if len(made) == 1 and not isinstance(made[0], ast.Name) else None
    if not isinstance(mask, ast.Compare) or not isinstance(mask.ops[0], ast.NotEq) or len(mask.ops) != 1:
        return None
    if not isinstance(mask.left, ast.Name) or mask.left.id != labels:
        return None
    value = mask.comparators[0]
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) and isinstance(value.operand, ast.Constant):
        return -value.operand.value if type(value.operand.value) is int else None
    return value.value if isinstance(value, ast.Constant) and type(value.value) is int else None
