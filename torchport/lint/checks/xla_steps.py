"""Code that is written for PyTorch/XLA and leaves a step without an end."""

from __future__ import annotations

from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.lint.checks.facts import facts, report
from torchport.lint.checks.varying import loop_of
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

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
