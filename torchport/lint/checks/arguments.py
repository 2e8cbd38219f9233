"""Calls of PyTorch that wait for the device because of an argument, or the lack of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.lint.checks.facts import facts, report
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

WAITING = ("torch.optim.LBFGS", "torch.optim.Rprop")
CLIPPING = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.get_total_norm",
)
LAWS = "torch.distributions."
DENSITIES = ("log_prob", "cdf", "icdf")


def clip_error(rule: Rule, context: Context) -> Iterator[Finding]:
    """``clip_grad_norm_(..., error_if_nonfinite=True)``."""
    for call in context.calls(*CLIPPING):
        given = keyword(call, "error_if_nonfinite")
        if isinstance(given, ast.Constant) and given.value is True:
            yield report(rule, context, call)


def waiting_optimizers(rule: Rule, context: Context) -> Iterator[Finding]:
    """LBFGS and Rprop."""
    for call in context.calls(*WAITING):
        yield report(rule, context, call)


def distributions(rule: Rule, context: Context) -> Iterator[Finding]:
    """``Normal(mean, 1.0)`` in a step, and what is asked of it."""
    if b"set_default_validate_args(False" in context.text.bytes:
        return
    known = facts(context)
    made: set[str] = set()
    for name, places in context.resolved.items():
        last = name.rpartition(".")[2]
        if not name.startswith(LAWS) or not last[:1].isupper() or last.endswith(("Transform", "Distribution")):
            continue
        for node, _ in places:
            call = context.tree.parents[node]
            if not isinstance(call, ast.Call) or call.func is not node or keyword(call, "validate_args") is not None:
                continue
            given = [known.value(a) for a in (*call.args, *(k.value for k in call.keywords))]
            if known.heat(call) and any(v.on_device or v.kind == "unknown" for v in given):
                parent = context.tree.parents[call]
                if isinstance(parent, ast.Assign):
                    made |= {target.id for target in parent.targets if isinstance(target, ast.Name)}
                yield report(rule, context, call, perhaps=not any(v.on_device for v in given))
    for call in known.named(*DENSITIES):
        func = call.func
        of_one = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in made
        if of_one and known.heat(call):
            yield report(rule, context, call)
