"""Code that is written for PyTorch/XLA: steps without an end, and gradients that are clipped too early."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.lint.checks.facts import facts, report
from torchport.lint.checks.varying import loop_of
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

CLIPS = tuple(f"torch.nn.utils.{module}clip_grad_{by}_" for module in ("", "clip_grad.") for by in ("norm", "value"))
REDUCE = "torch_xla.core.xla_model.reduce_gradients"
STEP = "torch_xla.core.xla_model.optimizer_step"
ENDS = ("torch_xla.sync", "torch_xla.core.xla_model.mark_step", "torch_xla.step", "torchport.shim.sync")
LOADERS = ("MpDeviceLoader", "per_device_loader", "ParallelLoader")


def without_barrier(rule: Rule, context: Context) -> Iterator[Finding]:
    """``xm.optimizer_step(opt)`` in a loop that nothing cuts into steps."""
    if any(True for _ in context.uses(*ENDS)) or any(name.encode() in context.text.bytes for name in LOADERS):
        return
    for call in context.calls(STEP):
        barrier = keyword(call, "barrier")
        if barrier is None and loop_of(facts(context), call) is not None:
            yield report(rule, context, call)


def clip_before_reduce(rule: Rule, context: Context) -> Iterator[Finding]:
    """``clip_grad_norm_`` before an ``xm.optimizer_step`` of the same function, and no ``xm.reduce_gradients``."""
    function = context.tree.function
    reduced = {function(call) for call in context.calls(REDUCE)}
    steps = {function(call): call.lineno for call in context.calls(STEP)}
    for call in context.calls(*CLIPS):
        if call.lineno < steps.get(function(call), 0) and function(call) not in reduced:
            yield report(rule, context, call)
