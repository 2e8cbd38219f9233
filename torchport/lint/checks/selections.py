"""What is selected by a condition has another size in each step, and each size is compiled anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.analysis.values import Value
from torchport.lint.checks.facts import Facts, facts, moved_after, report
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

COUNTS = ("unique", "unique_consecutive", "bincount", "histc", "histogram", "repeat_interleave")
MASKS = (ast.Name, ast.Attribute, ast.Call, ast.Compare, ast.BinOp, ast.Subscript)
INSTEAD = {
    "unique": "mark the ids that occur, of n: torch.zeros(n, device=ids.device).index_fill_(0, ids, 1)",
    "return_inverse": "of n ids, seen = torch.zeros(n, dtype=torch.long, device=ids.device).index_fill_(0, ids, 1) "
    "marks those that occur, and (seen.cumsum(0) - 1)[ids] is the inverse",
    "unique_consecutive": "compare neighbours (x[1:] != x[:-1]) and keep the shape",
    "repeat_interleave": "where the total n is known, "
    "x[(torch.arange(n, device=x.device)[:, None] >= counts.cumsum(0)).sum(1)] gives the same rows",
}
"""What keeps the shape, where it is not a count with a fixed number of bins."""


def nonzero(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mask.nonzero()``, ``torch.where(mask)``, ``torch.masked_select(x, mask)``."""
    known = facts(context)
    for call in known.named("nonzero", "argwhere", "flatnonzero", "masked_select"):
        if _on_tensor(context, known, call) and known.heat(call):
            yield report(rule, context, call)
    for call in known.named("where"):
        alone = len(call.args) == 1 and not call.keywords
        if (
            alone
            and context.named(call.func, "torch.where")
            and _not_host(known.value(call.args[0]))
            and known.heat(call)
        ):
            yield report(rule, context, call)


def counted(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.unique(ids)``, ``torch.bincount(ids)``, ``x.repeat_interleave(counts)``."""
    known = facts(context)
    for call in known.named(*COUNTS):
        if not _on_tensor(context, known, call) or not known.heat(call):
            continue
        last = _last(call)
        if last == "repeat_interleave":
            if not repeats_by_tensor(known, call) or keyword(call, "output_size") is not None:
                continue
        elif last == "unique" and keyword(call, "return_inverse") is not None:
            last = "return_inverse"
        elif keyword(call, "return_counts") is not None:
            last = "bincount"
        yield report(rule, context, call, INSTEAD.get(last, ""))


def one_hot(rule: Rule, context: Context) -> Iterator[Finding]:
    """``F.one_hot(labels)``: how many classes there are is read from the data."""
    known = facts(context)
    for call in context.calls("torch.nn.functional.one_hot"):
        given = len(call.args) != 1 or keyword(call, "num_classes") is not None
        if not given and _not_host(known.value(call.args[0])) and known.heat(call):
            yield report(rule, context, call)


def mask_reads(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x[mask]`` where the mask is a tensor of bools."""
    known = facts(context)
    for node in known.indexed:
        if not isinstance(node.ctx, ast.Load) or moved_after(context.tree, node):
            continue
        if has_mask(known, node) and known.heat(node) and is_mask_index(known, node):
            yield report(rule, context, node)


def is_mask_index(known: Facts, node: ast.Subscript) -> bool:
    """Whether a tensor is indexed by a tensor of bools."""
    if not has_mask(known, node):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if known.value(node.value).where == "host" or known.value(node.value).kind not in ("tensor", "output", "unknown"):
        return False
    values = [known.value(index) for index in indices]
    return any(v.kind == "tensor" and v.dtype == "bool" and v.where != "host" for v in values)


def has_mask(known: Facts, node: ast.Subscript) -> bool:
    """A cheap look before values are asked for: whether a part of an index may be a tensor."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(_may_be_mask(known, index) for index in indices)


def _may_be_mask(known: Facts, node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.operand, ast.Constant)
    return isinstance(node, MASKS) and not known.flow.is_defined(node)


def _on_tensor(context: Context, known: Facts, call: ast.Call) -> bool:
    """A function of PyTorch on a tensor that may be on the device, or a method of such a tensor."""
    name = known.flow.name_of(call.func)
    if name:
        return name.startswith("torch.") and bool(call.args) and _not_host(known.value(call.args[0]))
    if not isinstance(call.func, ast.Attribute):
        return False
    value = known.value(call.func.value)
    return value.on_device or (
        value.kind == "unknown" and (_last(call) == "masked_select" or not known.flow.has_arrays)
    )


def _not_host(value: Value) -> bool:
    return value.on_device or value.kind == "unknown"


def repeats_by_tensor(known: Facts, call: ast.Call) -> bool:
    """``repeat_interleave`` whose repeats are a tensor, or which is given nothing else."""
    repeats = keyword(call, "repeats")
    position = 1 if known.flow.name_of(call.func) else 0
    if repeats is None:
        if len(call.args) <= position:
            return position == 1
        repeats = call.args[position]
    return known.value(repeats).is_tensor


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
