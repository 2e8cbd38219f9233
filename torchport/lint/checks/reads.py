"""The host asks for the value of a tensor in every step, and so waits until the device has computed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.calling import DTYPES
from torchport.analysis.values import Value
from torchport.lint.checks.facts import Facts, facts, report
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

RESULTS = "fetch what a batch gives by one .cpu() at its end, or collect it on the device and fetch it after the loop"
METHODS = ("item", "tolist", "numpy", "cpu")
ARRAYS = ("numpy.asarray", "numpy.array", "numpy.mean", "numpy.isnan", "numpy.isfinite", "numpy.concatenate")
NUMBERS = ("float", "int", "complex", "range")


def host_reads(rule: Rule, context: Context) -> Iterator[Finding]:
    """``loss.item()``, ``out.cpu()``, ``float(loss)``, ``math.isfinite(loss)`` in a step."""
    known = facts(context)
    for call in known.named(*METHODS, "to"):
        func = call.func
        if not isinstance(func, ast.Attribute) or (func.attr != "to" and _arguments(call, func.attr)):
            continue
        if func.attr == "to" and all(map(is_dtype, call.args)) and not call.keywords:
            continue
        if not known.heat(call):
            continue
        if func.attr == "to" and known.value(call).where != "host":
            continue
        if context.qualify(func) is None:
            yield from _read(rule, context, known, call, func.value)
    for call in known.named(*NUMBERS):
        if isinstance(call.func, ast.Name) and call.args and context.tree.scopes[call].find(call.func.id) is None:
            for argument in call.args:
                yield from _implicit(rule, context, known, call, argument)
    for call in context.calls(*(n for n in context.resolved if n.startswith("math.") or n in ARRAYS)):
        for argument in call.args[:1]:
            yield from _implicit(rule, context, known, call, argument)


def is_dtype(node: ast.expr) -> bool:
    """``torch.float32`` and ``x.dtype``, by their form: they leave a tensor where it is."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "dtype" or (node.attr in DTYPES and getattr(node.value, "id", "") == "torch")


def _arguments(call: ast.Call, method: str) -> bool:
    """Whether the method is given something that those of tensors do not take."""
    return bool(call.args) or (method == "item" and bool(call.keywords))


def _read(rule: Rule, context: Context, known: Facts, call: ast.Call, base: ast.expr) -> Iterator[Finding]:
    value = known.value(base)
    if not value.on_device and value.kind != "unknown":
        return
    if value.kind == "unknown" and _attribute(call) not in ("item", "cpu", "tolist"):
        return
    if known.flow.is_asked_as_model(call):
        return
    parent = context.tree.parents[call]
    if isinstance(parent, ast.AugAssign) and parent.value is call and _attribute(call) == "item" and value.is_tensor:
        text = f"{context.source(base)}.detach()"
        yield context.rewrite(rule, call, New(call, text, False), doubt=f"{rule.reason}; --unsafe adds up tensors")
    else:
        reason = RESULTS if _is_result(known, call) else ""
        yield report(rule, context, call, reason, perhaps=value.kind == "unknown" and known.flow.has_arrays)


def _is_result(known: Facts, call: ast.Call) -> bool:
    """Whether the read is one of a loop that trains nothing, and fetches more than a number."""
    loop = next((parent for parent in known.tree.ancestors(call) if parent in known.heats.loops), None)
    if loop is None or _attribute(call) not in ("cpu", "numpy", "to"):
        return False
    return not any(loop in known.tree.ancestors(sign) for sign in known.named("backward", "step"))


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _implicit(rule: Rule, context: Context, known: Facts, call: ast.Call, argument: ast.expr) -> Iterator[Finding]:
    if not isinstance(argument, ast.Constant) and known.heat(call) and wanted(known.value(argument)):
        yield report(rule, context, call)


def wanted(value: Value) -> bool:
    """A tensor, for certain, that is not known to live on the host."""
    return value.kind == "tensor" and value.sure and value.where != "host"
