"""Programs that spread their work over several GPUs of one process, by number."""

from __future__ import annotations

import ast

from torchport.analysis.literals import device_text
from torchport.analysis.scopes import FUNCTIONS, dotted
from torchport.rewrite.context import Context

SPREAD = "it spreads its work over several GPUs by number; on a TPU a process has one device, to which all would go"
COUNT = "it scales with the GPUs of one process; on a TPU a process has one device, whatever the host has"
WRAPPERS = ("torch.nn.DataParallel", "torchport.shim.DataParallel")
GROUPS = ("torch.distributed.init_process_group", "torchport.shim.init_process_group")


def spread_over_gpus(context: Context) -> set[ast.AST]:
    """Classes, functions and the module in which GPUs of different numbers are asked for."""
    return context.once(_spread_over_gpus)


def _spread_over_gpus(context: Context) -> set[ast.AST]:
    numbers: dict[ast.AST, set[str]] = {}
    for node in context.tree.strings:
        text = device_text(node)
        if text is not None and text.index and text.index.isdigit() and _is_place(context, node):
            numbers.setdefault(owner(context, node), set()).add(text.index)
    for call in (call for name in ("cuda", "to") for call in context.tree.called().get(name, ())):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to") and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and type(first.value) is int:
                numbers.setdefault(owner(context, call), set()).add(str(first.value))
    return {node for node, found in numbers.items() if len(found) > 1}


def owner(context: Context, node: ast.AST) -> ast.AST:
    """The outermost class or function around ``node``, or the module."""
    around = [n for n in context.tree.ancestors(node) if isinstance(n, (*FUNCTIONS, ast.ClassDef))]
    return around[-1] if around else context.tree.module


def _is_place(context: Context, node: ast.AST) -> bool:
    """Whether something is put on the device, as opposed to a test or a list of devices."""
    parent = context.tree.parents[node]
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in ("to", "cuda", "device")
    return isinstance(parent, ast.Assign | ast.keyword)


def scales_with_gpus(context: Context, node: ast.expr) -> bool:
    """``32 * torch.cuda.device_count()`` in a program whose one process uses all GPUs, through DataParallel."""
    names = context.resolved
    if not any(name in names for name in WRAPPERS) or any(name in names for name in GROUPS):
        return False
    if _multiplied(context, context.tree.parents[node]):
        return True
    return any(_multiplied(context, read) for read in reads_of(context, node))


def reads_of(context: Context, node: ast.AST) -> list[ast.expr]:
    """Where the variable or attribute is read that the statement around ``node`` assigns."""
    statement = context.tree.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [read for target in targets for read in context.tree.reads(dotted(target))]


def _multiplied(context: Context, node: ast.AST) -> bool:
    parent = context.tree.parents[node]
    while isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("max", "int"):
        parent = context.tree.parents[parent]
    return isinstance(parent, ast.BinOp | ast.AugAssign) and isinstance(parent.op, ast.Mult | ast.Div | ast.FloorDiv)
