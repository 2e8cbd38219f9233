"""States and switches of CUDA that PyTorch keeps by device type, and methods that only CUDA needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import chain
from torchport.lazy import pattern
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
CHOOSE = ("torch.nn.attention.sdpa_kernel", "torchport.shim.sdpa_kernel")
ALLOWED = tuple(BACKEND + kind for kind in ("FLASH_ATTENTION", "MATH"))
STREAMS = tuple(f"torch.cuda.{name}" for name in ("current_stream", "default_stream", "Stream"))
NO_STREAM = "whether this is a tensor that is told of a stream is not seen here; if it is one, {}"
REPLAYED = "it raises on PyTorch/XLA: keep the device's random state by shim.get_rng_state and shim.set_rng_state"
POINTER = "a kernel of CUDA gets the pointer of this stream; keep both for CUDA alone"
MEMORY_ERRORS = ("torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError")
COLUMN = pattern(r"(self_)?cuda_(time|memory)\w*")
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
        around = context.tree.ancestors(node)[:3]
        if context.spell.portable and any(isinstance(n, ast.Call) and context.named(n.func, *CHOOSE) for n in around):
            continue  # the shim reads it
        others = group.elts if isinstance(group, ast.List | ast.Tuple | ast.Set) else []
        harmless = any(context.named(other, *ALLOWED) for other in others)
        yield context.leave(rule, node, HARMLESS if harmless else rule.reason, effect="none" if harmless else None)


def record_stream(rule: Rule, context: Context) -> Iterator[Finding]:
    """``tensor.record_stream(stream)``, and the method handed on; not what else has a method of this name."""
    own = "record_stream" in context.stored or any(d.name == "record_stream" for d in context.tree.definitions)
    for node in context.tree.attributes:
        if node.attr != "record_stream" or not isinstance(node.ctx, ast.Load) or context.qualify(node) is not None:
            continue
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node):
            if not own:
                yield context.leave(rule, node, rule.reason)
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if len(given) != 1 or isinstance(given[0], ast.Constant | ast.JoinedStr):
            continue  # a tensor takes one stream
        if _is_stream(context, given[0]) and not (own and chain(node.value) == ["self"]):
            text = f"shim.record_stream({context.source(node.value)}, {context.source(given[0])})"
            if context.spell.portable:
                yield context.rewrite(rule, call, New(call, text))
            else:
                yield context.leave(rule, node, rule.reason)
        elif not own:
            yield context.leave(rule, node, NO_STREAM.format(rule.reason))


def _is_stream(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` is a stream by its maker, or by its name."""
    if isinstance(node, ast.Call):
        return context.named(node.func, *STREAMS, *(s.replace("torch.cuda", "torchport.shim") for s in STREAMS))
    name = (chain(node) or [""])[-1]
    if "stream" in name.lower():
        return True
    made = [n.value for n in context.tree.every(ast.Assign) for t in n.targets if chain(t) == chain(node) != []]
    return any(isinstance(value, ast.Call) and _is_stream(context, value) for value in made)


def stream_pointer(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda.current_stream().cuda_stream`` is a pointer for a kernel of CUDA, which stays with its stream."""
    for call in context.calls(*STREAMS):
        parent = context.tree.parents[call]
        if isinstance(parent, ast.Attribute) and parent.attr == "cuda_stream":
            context.claimed.add(call.func)
            yield context.leave(rule, call.func, POINTER)


def fork_rng(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.random.fork_rng(devices)`` saves the generators of CUDA unless it is given another device type."""
    for call in context.calls("torch.random.fork_rng"):
        given = {k.arg for k in call.keywords}
        if context.spell.portable and given <= {"devices", "enabled"} and len(call.args) <= 2:
            yield context.rewrite(rule, call.func, New(call.func, "shim.fork_rng"))
        elif "device_type" not in given:
            yield context.leave(rule, call.func, rule.reason)


def states_for_a_replay(rule: Rule, context: Context) -> Iterator[Finding]:
    """``get_device_states`` asks for a module that PyTorch/XLA has not; TorchTPU has it."""
    names = ("torch.utils.checkpoint.get_device_states", "torch.utils.checkpoint.set_device_states")
    for node, _ in context.uses(*names) if context.target != "tpu" else ():
        yield context.leave(rule, node, REPLAYED, effect="error")


def memory_error(rule: Rule, context: Context) -> Iterator[Finding]:
    """``except torch.cuda.OutOfMemoryError``: the shim's name is asked for when the clause is reached."""
    for node, found in context.uses(*MEMORY_ERRORS):
        around = context.tree.parents[node]
        clause = context.tree.parents[around] if isinstance(around, ast.Tuple) else around
        if isinstance(clause, ast.ExceptHandler) and context.spell.portable:
            context.claimed.add(node)
            yield context.rewrite(rule, node, New(node, "shim.OutOfMemoryError"), doubt=found.doubt)


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


def inference_mode_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.inference_mode()`` becomes ``torch.no_grad()`` for PyTorch/XLA. The linter has a rule of its own."""
    for node, found in context.uses(*rule.rename["portable"]):
        if context.spell.portable and not context.draft:
            continue
        context.claimed.add(node)
        if context.target != "xla" or context.draft:
            continue
        up = context.tree.parents[node]
        call = up if isinstance(up, ast.Call) and up.func is node else None
        given = [*call.args, *(k.value for k in call.keywords)] if call else []
        values = [value.value for value in given if isinstance(value, ast.Constant)]
        if len(values) < len(given) or not (call or node in getattr(up, "decorator_list", [])):
            yield context.leave(rule, node, rule.reason)
        elif all(values):
            text = f"{context.spell.torch}.no_grad" + ("()" if call else "")
            yield context.rewrite(rule, node, New(call or node, text, False), doubt=found.doubt)
