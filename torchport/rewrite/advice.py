"""What costs time or is wrong on several devices, whatever the device is called: reported, never rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.scopes import FUNCTIONS
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

LOADER = "torch.utils.data.DataLoader"
NARROW = ("torch.bfloat16", "torch.float16", "torch.half")
LOOPS = (ast.For, ast.While, ast.AsyncFor)


def unsharded_loader(rule: Rule, context: Context) -> Iterator[Finding]:
    """A loader in a program of several processes that deals every process the same data."""
    if any(True for _ in context.calls("torch.distributed.init_process_group", "torchport.shim.init_process_group")):
        for call in context.calls(LOADER):
            names = {k.arg for k in call.keywords}
            if not names & {"sampler", "batch_sampler", None} and len(call.args) < 4:
                yield context.leave(rule, call, rule.reason)
    for call in context.calls("torch.utils.data.RandomSampler"):
        function = context.tree.function(call)
        if isinstance(function, FUNCTIONS) and any(
            a.arg in ("rank", "local_rank", "index") for a in function.args.args
        ):
            yield context.leave(rule, call, rule.reason)


def narrow_sum(rule: Rule, context: Context) -> Iterator[Finding]:
    """``total += loss`` in a loop where ``total`` was made in bfloat16: 4096 + 1 is 4096 there."""
    made = set()
    for call in context.tree.calls:
        parent = context.tree.parents[call]
        if isinstance(parent, ast.Assign) and any(
            k.arg == "dtype" and context.named(k.value, *NARROW) for k in call.keywords
        ):
            made |= {t.id for t in parent.targets if isinstance(t, ast.Name)}
    for node in context.tree.every(ast.AugAssign):
        if isinstance(node.target, ast.Name) and node.target.id in made and in_loop(context, node):
            yield context.leave(rule, node, rule.reason)


def in_loop(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` stands in the body of a loop."""
    return any(isinstance(n, LOOPS) for n in context.tree.ancestors(node))
