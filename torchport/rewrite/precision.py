"""Mixed precision for one target: ``torch.autocast("xla", dtype=torch.bfloat16)``, whatever 16 bits were asked for.

For the portable target the shim decides while the program runs (``torchport.rewrite.amp``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.literals import device_text
from torchport.analysis.names import Qualified
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of, with_keyword, with_value

if TYPE_CHECKING:
    import libcst as cst

CUDA = "torch.cuda.amp.autocast"
ORDER = {
    CUDA: ("enabled", "dtype", "cache_enabled"),
    "torch.autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
    "torch.amp.autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
}
DECORATORS = {"custom_fwd": ("fwd",), "custom_bwd": ("bwd",)}
SIXTEEN = ("torch.float16", "torch.half", "torch.bfloat16")
WIDE = ("torch.float32", "torch.float")
FORCED = (
    "it forces float32, which PyTorch/XLA's autocast does not know: it warns and is off, and what came in as bfloat16 "
    "stays so; turn autocast off and hand in x.float()"
)
STARRED = "its arguments are handed on with a star, so that the device and the dtype among them are not seen"
VALUE = "it is handed on without a call, so that its device and its dtype are not seen here"
COMPUTED = "the dtype is computed, and float16 is not for TPUs: make sure that it is torch.bfloat16"


def starred(call: ast.Call) -> bool:
    """Whether the call hands on arguments that are not seen."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def given(call: ast.Call, order: tuple[str, ...]) -> dict[str, ast.expr]:
    """The arguments of a call by name."""
    return dict(zip(order, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}


def forces_float32(context: Context, call: ast.Call, order: tuple[str, ...]) -> bool:
    """``autocast("cuda", dtype=torch.float32)`` where it is on: on CUDA it computes a bfloat16 input in float32."""
    values = given(call, order)
    enabled = values.get("enabled")
    off = isinstance(enabled, ast.Constant) and enabled.value is False
    return "dtype" in values and context.named(values["dtype"], *WIDE) and not off


def autocast_alone(rule: Rule, context: Context, *names: str) -> Iterator[Finding]:
    """Every use of one of the autocasts, for a target that has no shim."""
    for node, found in context.uses(*names):
        context.claimed.add(node)
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.args[:1] == [node] and context.named(call.func, "functools.partial"):
            yield from _partial(rule, context, call, found)
        elif not (isinstance(call, ast.Call) and call.func is node):
            yield context.leave(rule, node, VALUE)
        elif starred(call):
            yield context.leave(rule, call, STARRED)
        else:
            yield from _call(rule, context, call, found)


def _call(rule: Rule, context: Context, call: ast.Call, found: Qualified) -> Iterator[Finding]:
    order = ORDER[found.name]
    values = given(call, order)
    device, dtype = values.get("device_type"), values.get("dtype")
    if found.name != CUDA and device is None:
        yield context.leave(rule, call, "it names no device type, which PyTorch refuses")
        return
    ours = device is None or device_text(device) is not None
    if device is not None and not ours and isinstance(device, ast.Constant) and device.value != context.target:
        return
    if context.target == "xla" and forces_float32(context, call, order):
        yield context.leave(rule, call, FORCED)
        return
    computed = dtype is not None and _is_computed(context, dtype)
    if computed and dtype is not None and not context.named(dtype, *WIDE):
        yield context.leave(rule, dtype, COMPUTED)
    if _is_right(context, ours, dtype):
        return
    spelled = context.spell.text("", context.source(device)) if device is not None else context.spell.text()
    bfloat16 = f"{context.spell.torch}.bfloat16"

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        named = [a if a.keyword else with_keyword(a, order[i]) for i, a in enumerate(old)]
        kept = {keyword_of(a): a for a in named}
        first = argument(spelled) if ours else kept["device_type"]
        second = kept["dtype"] if computed else argument(bfloat16, "dtype")
        return [first, second, *(a for a in named if keyword_of(a) not in ("device_type", "dtype"))]

    source, function = context.source(call), f"{context.spell.torch}.autocast"
    kept = None if found.name != CUDA else function
    yield context.change(rule, call, lambda: change_call(source, kept, arguments), doubt=found.doubt)


def _is_right(context: Context, ours: bool, dtype: ast.expr | None) -> bool:
    """Whether nothing has to change: the device is not CUDA's, and the dtype is bfloat16 or computed."""
    if ours or dtype is None:
        return False
    return context.named(dtype, "torch.bfloat16") or _is_computed(context, dtype)


def _is_computed(context: Context, dtype: ast.expr) -> bool:
    return not context.named(dtype, *SIXTEEN) and not (isinstance(dtype, ast.Constant) and dtype.value is None)


def _partial(rule: Rule, context: Context, call: ast.Call, found: Qualified) -> Iterator[Finding]:
    """``partial(torch.autocast, device_type="cuda", dtype=torch.float16)``."""
    values = {k.arg: k.value for k in call.keywords}
    device, dtype = values.get("device_type"), values.get("dtype")
    if found.name == CUDA or device is None or len(call.args) > 1 or starred(call):
        yield context.leave(rule, call, VALUE)
        return
    if dtype is None:
        yield context.leave(rule, call, COMPUTED.replace("computed", "not given"))
    elif context.named(dtype, *WIDE):
        if context.target == "xla":
            yield context.leave(rule, call, FORCED)
            return
    elif _is_computed(context, dtype):
        yield context.leave(rule, dtype, COMPUTED)
    elif not context.named(dtype, "torch.bfloat16"):
        yield context.rewrite(rule, dtype, New(dtype, f"{context.spell.torch}.bfloat16"), doubt=found.doubt)
    if device_text(device) is not None:
        new = context.spell.text("", context.source(device))
        yield context.rewrite(rule, device, New(device, new), doubt=found.doubt)


def decorators_alone(rule: Rule, context: Context, module: str) -> Iterator[Finding]:
    """``@custom_fwd`` and ``@custom_fwd(cast_inputs=torch.float16)`` of ``torch.cuda.amp`` or ``torch.amp``."""
    cuda = module == "torch.cuda.amp"
    for name in DECORATORS:
        for node, found in context.uses(f"{module}.{name}"):
            context.claimed.add(node)
            call = context.tree.parents[node]
            function = f"{context.spell.torch}.amp.{name}"
            if isinstance(call, ast.Call) and call.func is node:
                yield from _decorator_call(rule, context, call, function if cuda else None, found.doubt)
            elif cuda:
                text = f'{function}(device_type="{context.target}")'
                yield context.rewrite(rule, node, New(node, text), doubt=found.doubt)
            else:
                yield context.leave(rule, node, VALUE)


def _decorator_call(
    rule: Rule, context: Context, call: ast.Call, function: str | None, doubt: str
) -> Iterator[Finding]:
    device = next((k.value for k in call.keywords if k.arg == "device_type"), None)
    cast = next((k.value for k in call.keywords if k.arg == "cast_inputs"), None)
    if starred(call) or call.args:
        yield context.leave(rule, call, STARRED)
        return
    if function is None and (device is None or device_text(device) is None):
        if device is not None and not isinstance(device, ast.Constant):
            yield context.leave(rule, call, "whether its device is CUDA is decided while the program runs")
        return
    if cast is not None and not context.named(cast, *SIXTEEN, "torch.float32"):
        yield context.leave(rule, cast, COMPUTED)
    half = cast is not None and context.named(cast, "torch.float16", "torch.half")

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        kept = [a for a in old if keyword_of(a) != "device_type"]
        bfloat16 = f"{context.spell.torch}.bfloat16"
        kept = [with_value(a, bfloat16) if half and keyword_of(a) == "cast_inputs" else a for a in kept]
        return [argument(f'"{context.target}"', "device_type"), *kept]

    source = context.source(call)
    yield context.change(rule, call, lambda: change_call(source, function, arguments), doubt=doubt)


def cuda_amp(rule: Rule, context: Context) -> Iterator[Finding]:
    """What ``torch.cuda.amp`` has, for a target that has no shim; the scaler has a rule of its own."""
    if not context.spell.portable:
        yield from autocast_alone(rule, context, CUDA)
        yield from decorators_alone(rule, context, "torch.cuda.amp")
        return
    for call in context.calls(CUDA):
        if forces_float32(context, call, ORDER[CUDA]):
            context.claimed.add(call.func)
            yield context.leave(rule, call, FORCED)
