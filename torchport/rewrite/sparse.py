"""Sparse tensors that would go to an XLA device, which has none: as a buffer, by a move, or where they are made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import chain
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

METHODS = ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")
FACTORIES = tuple(f"torch.sparse_{kind}_tensor" for kind in ("coo", "csr", "csc", "bsr", "bsc", "compressed"))
KEPT = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")
OWN_DEVICE = ("self", "args", "cfg", "config", "opt")
"""What the device of a program hangs on; that of another tensor may be the CPU."""


def sparse_on_device(rule: Rule, context: Context) -> Iterator[Finding]:
    """``register_buffer("heads", x.to_sparse())``: to move the module raises an error on PyTorch/XLA."""
    if context.target != "tpu":
        for call in going_to_device(context):
            yield context.leave(rule, call, rule.reason)


def going_to_device(context: Context) -> list[ast.Call]:
    """The calls that make the sparse tensors which go to the device, in order of the source."""
    made = [*context.calls(*FACTORIES)]
    made += [c for name in METHODS for c in context.tree.calls_of(name) if getattr(c.func, "attr", "") == name]
    return sorted((call for call in made if _goes(context, call)), key=lambda call: (call.lineno, call.col_offset))


def _goes(context: Context, call: ast.Call) -> bool:
    if any(k.arg == "device" and _is_device(k.value) for k in call.keywords):
        return True
    if _is_kept(context, call):
        return True
    parent = context.tree.parents[call]
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    reads = context.tree.chains().get(target.id, ()) if isinstance(target, ast.Name) else ()
    function = context.tree.function(call)
    return any(context.tree.function(read) is function and _is_kept(context, _start(read)) for read in reads)


def _start(node: ast.expr) -> ast.expr:
    """The name with which a dotted chain starts."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _is_kept(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` is moved, or is handed to what keeps it for a module to move."""
    parent = context.tree.parents[node]
    if isinstance(parent, ast.Attribute) and parent.value is node:
        move = context.tree.parents[parent]
        if not isinstance(move, ast.Call) or move.func is not parent:
            return False
        if parent.attr in ("coalesce", "requires_grad_", "detach", "float"):
            return _is_kept(context, move)
        given = [*move.args, *(k.value for k in move.keywords if k.arg == "device")]
        return parent.attr == "cuda" or (parent.attr == "to" and any(map(_is_device, given)))
    if isinstance(parent, ast.keyword):
        parent = context.tree.parents[parent]
    if not isinstance(parent, ast.Call):
        return False
    return context.named(parent.func, *KEPT) or (chain(parent.func) or [""])[-1] == "register_buffer"


def _is_device(node: ast.expr) -> bool:
    """``"cuda"``, ``device``, ``self.device``, ``torch.device("cuda")``, ``shim.device()``."""
    match node:
        case ast.Constant(value=str() as text):
            return text.startswith(("cuda", "xla", "tpu"))
        case ast.Call():
            return (chain(node.func) or [""])[-1] == "device" and all(map(_is_device, node.args))
    parts = chain(node)
    return bool(parts) and "device" in parts[-1] and (len(parts) == 1 or parts[0] in OWN_DEVICE)
