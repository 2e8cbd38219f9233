"""Mixed precision: autocast with a device argument, scalers with a device argument, half precision weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.literals import device_text
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import change_call, keyword_of, with_keyword, with_value
from torchport.rewrite.precision import FORCED, autocast_alone, decorators_alone, forces_float32, starred
from torchport.rewrite.scaler import scaler_alone

if TYPE_CHECKING:
    import libcst as cst

AUTOCAST = ("torch.autocast", "torch.amp.autocast")
ORDER = ("device_type", "dtype", "enabled", "cache_enabled")
STARRED = "its arguments are handed on with a star, so that the device among them is not seen"
VALUE = "it is handed on without a call, so that its device argument is not seen here"
WITH_DEVICE = {
    "torch.amp.GradScaler": ("shim.GradScaler", "device"),
    "torch.amp.custom_fwd": ("shim.custom_fwd", "device_type"),
    "torch.amp.custom_bwd": ("shim.custom_bwd", "device_type"),
}


def autocast(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.autocast("cuda", dtype=torch.float16)`` becomes ``shim.autocast(dtype=torch.float16)``."""
    if not context.spell.portable:
        yield from autocast_alone(rule, context, *AUTOCAST)
        return
    for node, found in context.uses(*AUTOCAST):
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.args[:1] == [node] and context.named(call.func, "functools.partial"):
            yield from _partial(rule, context, call, found.doubt)
        elif not (isinstance(call, ast.Call) and call.func is node):
            yield context.leave(rule, node, VALUE)
        elif starred(call):
            yield context.leave(rule, call, STARRED)
        else:
            yield from _autocast(rule, context, call, found.doubt)


def _partial(rule: Rule, context: Context, call: ast.Call, doubt: str) -> Iterator[Finding]:
    """``partial(torch.autocast, device_type=...)``: the same, one argument later."""
    device = next((k.value for k in call.keywords if k.arg == "device_type"), None)
    if device is None or len(call.args) > 1 or starred(call):
        yield context.leave(rule, call, VALUE)
        return
    keep = device_text(device) is None
    if forces_float32(context, call, ()):
        yield context.leave(rule, call, FORCED)
        return
    if not keep and len(call.keywords) == 1:
        yield context.rewrite(rule, call, New(call, "shim.autocast"), doubt=doubt)
        return
    source = context.source(call)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [
            with_value(old[0], f"{context.shim}.autocast"),
            *(a for a in old[1:] if keep or keyword_of(a) != "device_type"),
        ]

    if not isinstance(device, ast.Constant) or not keep:
        yield context.change(rule, call, lambda: change_call(source, None, arguments), doubt=doubt)


def _autocast(rule: Rule, context: Context, call: ast.Call, doubt: str) -> Iterator[Finding]:
    given = dict(zip(ORDER, call.args, strict=False))
    given.update({k.arg: k.value for k in call.keywords if k.arg})
    device = given.get("device_type")
    if device is None:
        yield context.leave(rule, call, "it names no device type, which PyTorch refuses")
        return
    cuda = device_text(device) is not None
    if isinstance(device, ast.Constant) and not cuda:
        return
    if forces_float32(context, call, ORDER):
        context.claimed.update((call, device))
        yield context.leave(rule, call, FORCED)
        return
    if not cuda and _portable(context, given):
        return
    keep = "" if cuda else "device_type"

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        named = [a if a.keyword else with_keyword(a, ORDER[i]) for i, a in enumerate(old)]
        return [a for a in named if keyword_of(a) != "device_type" or keep]

    source = context.source(call)
    yield context.change(
        rule,
        call,
        lambda: change_call(source, f"{context.shim}.autocast", arguments),
        doubt=doubt,
    )


def _portable(context: Context, given: dict[str, ast.expr]) -> bool:
    """An autocast for a computed device type to bfloat16, or one that is off, is right on every device."""
    enabled = given.get("enabled")
    off = isinstance(enabled, ast.Constant) and enabled.value is False
    return off or ("dtype" in given and context.named(given["dtype"], "torch.bfloat16"))


def with_device(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.amp.GradScaler("cuda", ...)`` becomes ``shim.GradScaler(...)``."""
    if not context.spell.portable:
        yield from scaler_alone(rule, context, "torch.amp.GradScaler")
        yield from decorators_alone(rule, context, "torch.amp")
        return
    for node, found in context.uses(*WITH_DEVICE):
        new, keyword = WITH_DEVICE[found.name]
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.args == [node] and context.named(call.func, "functools.partial"):
            yield _partial_with_device(rule, context, call, new, keyword, found.doubt)
            continue
        if not (isinstance(call, ast.Call) and call.func is node):
            if not _only_a_type(context, node, call):
                yield context.leave(rule, node, VALUE)
            continue
        if starred(call):
            yield context.leave(rule, call, STARRED)
            continue
        first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == keyword), None)
        if first is not None and device_text(first) is None:
            if not isinstance(first, ast.Constant):
                yield context.leave(rule, call, "whether its device is CUDA is decided while the program runs")
            continue
        if len(call.args) + len(call.keywords) == (first is not None) and keyword == "device_type":
            yield context.rewrite(rule, call, New(call, new), doubt=found.doubt)
            continue
        yield _without_device(rule, context, call, new, keyword, found.doubt)


def _partial_with_device(rule: Rule, context: Context, call: ast.Call, new: str, keyword: str, doubt: str) -> Finding:
    """``partial(torch.amp.custom_fwd, device_type="cuda")`` is ``shim.custom_fwd``."""
    device = next((k.value for k in call.keywords if k.arg == keyword), None)
    if device is None or device_text(device) is None or starred(call):
        return context.leave(rule, call, VALUE)
    if len(call.keywords) == 1:
        return context.rewrite(rule, call, New(call, new), doubt=doubt)
    source, function = context.source(call), new.replace("shim", context.shim, 1)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [with_value(old[0], function), *(a for a in old[1:] if keyword_of(a) != keyword)]

    return context.change(rule, call, lambda: change_call(source, None, arguments), doubt=doubt)


def _without_device(rule: Rule, context: Context, call: ast.Call, new: str, keyword: str, doubt: str) -> Finding:
    source, positional = context.source(call), bool(call.args)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [a for i, a in enumerate(old) if keyword_of(a) != keyword and not (positional and i == 0)]

    function = new.replace("shim", context.shim, 1)
    return context.change(rule, call, lambda: change_call(source, function, arguments), doubt=doubt)


def _only_a_type(context: Context, node: ast.AST, parent: ast.AST) -> bool:
    """An annotation or the class in ``isinstance``: both stay true, the shim's scaler is one of PyTorch's."""
    from torchport.rewrite.rename import in_annotation

    return in_annotation(context, node) or (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id in ("isinstance", "issubclass")
    )


def half(rule: Rule, context: Context) -> Iterator[Finding]:
    """``.half()`` on a tensor or a module: TPUs compute in bfloat16."""
    for call, _ in context.methods("half"):
        if not call.args and not call.keywords:
            yield context.leave(rule, call, rule.reason)
    for node, _ in context.uses("torch.float16", "torch.half"):
        if not _shim_decides(context, node) and not _compared(context, node):
            yield context.leave(rule, node, rule.reason)


def _shim_decides(context: Context, node: ast.AST) -> bool:
    """The dtype of an autocast is an upper bound for the shim, which takes bfloat16 on a TPU."""
    outer = (*AUTOCAST, "torch.cuda.amp.autocast", "torchport.shim.autocast", "torch.finfo")
    return any(isinstance(n, ast.Call) and context.named(n.func, *outer) for n in context.tree.ancestors(node)[:3])


def _compared(context: Context, node: ast.AST) -> bool:
    """A test for half precision is true of nothing on a TPU, which is right."""
    parent = context.tree.parents[node]
    return isinstance(parent, ast.Compare) or (
        isinstance(parent, ast.Tuple | ast.List | ast.Set) and isinstance(context.tree.parents[parent], ast.Compare)
    )
