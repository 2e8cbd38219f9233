"""States and switches of CUDA that PyTorch keeps by device type, and methods that only CUDA needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

STATES = {
    "torch.is_autocast_enabled": "is_autocast_enabled",
    "torch.get_autocast_gpu_dtype": "get_autocast_dtype",
}
SDP = "torch.backends.cuda.enable_{}_sdp"
KNOWN_KERNELS = tuple(SDP.format(kind) for kind in ("flash", "math"))
UNKNOWN_KERNELS = tuple(SDP.format(kind) for kind in ("mem_efficient", "cudnn"))
BACKEND = "torch.nn.attention.SDPBackend."
CHOSEN = tuple(BACKEND + kind for kind in ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION"))
ALLOWED = tuple(BACKEND + kind for kind in ("FLASH_ATTENTION", "MATH"))
COLUMN = re.compile(r"(self_)?cuda_(time|memory)\w*")
COLUMN_REASON = "PyTorch reads it as the time or memory of the device, whichever that is"
HARMLESS = "harmless: it does nothing on a TPU and goes on doing what it did on CUDA"


def autocast_state(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.is_autocast_enabled()`` asks for CUDA unless it is given a device type."""
    for node, found in context.uses(*STATES):
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node):
            continue
        if call.args or call.keywords:
            continue
        context.claimed.add(node)
        new = STATES[found.name]
        if isinstance(node, ast.Attribute) or node.id == new:
            name = f"{context.source(node.value)}.{new}" if isinstance(node, ast.Attribute) else new
            yield context.rewrite(rule, call, New(call, f"{name}({context.spell.compared()})"), doubt=found.doubt)
        else:
            yield context.leave(rule, node, rule.reason)


def attention_kernel(rule: Rule, context: Context) -> Iterator[Finding]:
    """TorchTPU has the kernels flash and math: what leaves one of them does no harm."""
    for call in context.calls(*KNOWN_KERNELS, *UNKNOWN_KERNELS):
        on = any(isinstance(a, ast.Constant) and a.value is True for a in call.args)
        if on or context.named(call.func, *UNKNOWN_KERNELS):
            context.claimed.add(call.func)
            yield context.leave(rule, call, HARMLESS, effect="none")
    for node, _ in context.uses(*CHOSEN):
        context.claimed.add(node)
        group = context.tree.parents[node]
        others = group.elts if isinstance(group, ast.List | ast.Tuple | ast.Set) else []
        harmless = any(context.named(other, *ALLOWED) for other in others)
        yield context.leave(rule, node, HARMLESS if harmless else rule.reason, effect="none" if harmless else None)


def record_stream(rule: Rule, context: Context) -> Iterator[Finding]:
    """``tensor.record_stream(stream)``, and the method handed on."""
    for attribute in context.tree.attributes:
        if attribute.attr == "record_stream" and isinstance(attribute.ctx, ast.Load):
            yield context.leave(rule, attribute, rule.reason)


def profiler(rule: Rule, context: Context) -> Iterator[Finding]:
    """``profile(use_cuda=True)``, and the columns of its table that are called after CUDA."""
    profiles = ("torch.autograd.profiler.profile", "torch.profiler.profile")
    for call in context.calls(*profiles):
        for keyword in call.keywords:
            off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            if keyword.arg in ("use_cuda", "use_device") and not off:
                yield context.leave(rule, keyword.value, rule.reason)
    for node in context.tree.strings:
        if isinstance(node, ast.Constant) and COLUMN.fullmatch(str(node.value)):
            yield context.leave(rule, node, COLUMN_REASON, effect="none")
