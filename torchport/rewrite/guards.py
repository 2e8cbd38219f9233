"""Tests that decide between devices: availability, and branches that only a CUDA kernel can take."""

from __future__ import annotations

import ast
import re

from torchport.rewrite.context import Context

AVAILABLE = ("torch.cuda.is_available", "torch.accelerator.is_available", "torchport.shim.is_available")
KERNEL = re.compile(r"cuda|triton|flash_attn|xformers|apex|cupy|(^|_)_?C$|_ext$|_kernel", re.IGNORECASE)
WORKER = (
    "it runs in a worker process of the loader, which cannot open a TPU; hand on CPU tensors and move the batch in the "
    "training loop"
)
KERNEL_REASON = "it guards a kernel that exists for CUDA alone: on a TPU the other branch has to run"


def is_available(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` asks for an accelerator and nothing else."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords and context.named(node.func, *AVAILABLE)


def guards_kernel(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` is in the test of a branch that calls a function whose name says that it is a CUDA kernel."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.If | ast.IfExp):
            if child is not parent.test:
                return False
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            return any(_kernel_call(context, n) for statement in body for n in ast.walk(statement))
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def worker_reason(context: Context, node: ast.AST) -> str:
    """Why a move to the device may not stay where it is: it runs in the worker process of a loader."""
    function = next((n for n in context.tree.ancestors(node) if isinstance(n, ast.FunctionDef)), None)
    if function is None:
        return ""
    owner = context.tree.parents[function]
    if function.name == "__getitem__" and isinstance(owner, ast.ClassDef):
        if any("ataset" in ast.unparse(base) for base in owner.bases):
            return WORKER
    elif any(
        k.arg in ("collate_fn", "worker_init_fn") and isinstance(k.value, ast.Name) and k.value.id == function.name
        for call in context.tree.calls
        for k in call.keywords
    ):
        return WORKER
    return ""


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
