"""Tests that decide between devices: availability, and branches that only a CUDA kernel can take."""

from __future__ import annotations

import ast
import re

from torchport.analysis.names import chain
from torchport.rewrite.context import Context

AVAILABLE = ("torch.cuda.is_available", "torch.accelerator.is_available", "torchport.shim.is_available")
KERNEL = re.compile(r"cuda|triton|flash_attn|xformers|apex|cupy|(^|_)_?C$|_ext$|_kernel", re.IGNORECASE)
WORKER = (
    "it runs in a worker process of the loader, which cannot open a TPU; hand on CPU tensors and move the batch in the "
    "training loop"
)
SCRIPTS = tuple(f"torch.jit.{n}" for n in ("script", "script_method", "script_if_tracing", "export", "interface"))
PACKAGE = re.compile(r"CUDA\w*Provider|-gpu\b|cu1\d\d|[Tt]ensor[Rr][Tt]|nvidia")
PACKAGE_REASON = "it chooses a package or a provider that exists for CUDA alone"
KERNEL_REASON = "it guards a kernel that exists for CUDA alone: on a TPU the other branch has to run"


def is_available(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` asks for an accelerator and nothing else."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords and context.named(node.func, *AVAILABLE)


def guards_kernel(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` decides on a call of a function whose name says that it is a CUDA kernel."""
    return any(_kernel_call(context, n) for part in decided(context, node) for n in ast.walk(part))


def decided(context: Context, node: ast.AST) -> list[ast.AST]:
    """What runs only where the test that ``node`` is a part of is true of CUDA.

    The body of an ``if``; for a negative test its ``else``, or what follows where its body leaves the block; what
    follows an ``assert``.
    """
    child: ast.AST = node
    negative = False
    for parent in context.tree.ancestors(node):
        if (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)) or (
            isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.NotEq | ast.NotIn | ast.IsNot)
        ):
            negative = not negative
        elif isinstance(parent, ast.IfExp):
            return [parent.orelse if negative else parent.body] if child is parent.test else []
        elif isinstance(parent, ast.If):
            if child is not parent.test:
                return []
            if not negative:
                return [*parent.body]
            leaves = isinstance(parent.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            return [*parent.orelse, *(following(context, parent) if leaves else [])]
        elif isinstance(parent, ast.Assert):
            return following(context, parent) if child is parent.test else []
        elif isinstance(parent, ast.stmt):
            return []
        child = parent
    return []


def following(context: Context, statement: ast.stmt) -> list[ast.AST]:
    """The statements after ``statement`` in its block."""
    parent = context.tree.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block[block.index(statement) + 1 :]
    return []


def chooses_cuda(context: Context, node: ast.AST) -> str:
    """Why a test stays that chooses a package or a provider which exists for CUDA alone."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.IfExp) and child is parent.test:
            texts = [n.value for n in ast.walk(parent) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            return PACKAGE_REASON if any(PACKAGE.search(text) for text in texts) else ""
        if isinstance(parent, ast.stmt):
            return ""
        child = parent
    return ""


def scripted(context: Context) -> list[ast.AST]:
    """Functions and classes that TorchScript compiles, which cannot call the shim."""
    found: list[ast.AST] = []
    for node in [*context.tree.definitions, *context.tree.classes]:
        if any(context.named(d, *SCRIPTS) for d in node.decorator_list) or (
            isinstance(node, ast.ClassDef) and any(context.named(b, "torch.jit.ScriptModule") for b in node.bases)
        ):
            found.append(node)
    names = set()
    for call in context.calls("torch.jit.script"):
        for argument in call.args:
            inner = argument.func if isinstance(argument, ast.Call) else argument
            if isinstance(inner, ast.Name):
                names.add(inner.id)
    return found + [n for n in [*context.tree.definitions, *context.tree.classes] if n.name in names]


def workers(context: Context) -> list[ast.AST]:
    """Functions that run in the worker processes of a loader, as far as the file shows it."""
    names: set[str] = set()
    found: list[ast.AST] = []
    for call in context.tree.calls:
        for keyword in call.keywords:
            if keyword.arg not in ("collate_fn", "worker_init_fn"):
                continue
            value = keyword.value
            if isinstance(value, ast.Call) and value.args:
                value = value.args[0]
            if isinstance(value, ast.Lambda):
                found.append(value)
            elif parts := chain(value):
                names.add(parts[-1])
    for function in context.tree.definitions:
        owner = context.tree.parents[function]
        dataset = isinstance(owner, ast.ClassDef) and any("Dataset" in ast.unparse(base) for base in owner.bases)
        if function.name in names or (dataset and function.name in ("__getitem__", "__getitems__", "__iter__")):
            found.append(function)
    return found


def _kernel_call(context: Context, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    found = context.qualify(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else None
    if found is not None:
        name = found.name
        return (not name.startswith("torch.") and bool(KERNEL.search(name))) or name.startswith("torch.ops.")
    func = node.func
    if isinstance(func, ast.Attribute):
        return func.attr not in ("cuda", "is_cuda") and bool(KERNEL.search(func.attr))
    return isinstance(func, ast.Name) and bool(KERNEL.search(func.id))
