"""By which names a program may ask for a process group, as far as its file shows them."""

from __future__ import annotations

import ast

from torchport.analysis.flows import ADDED_OPTIONS, option
from torchport.analysis.index import default_of
from torchport.analysis.parameters import last_name
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import Binding
from torchport.lazy import NamedTuple
from torchport.rewrite.context import Context

NCCL = ("torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL")
KNOWN = ("torch.distributed.Backend.GLOO", "torch.distributed.Backend.MPI", "torch.distributed.Backend.UCC")
DEFAULT = "torch.distributed.get_default_backend_for_device"
"""It answers "nccl" for CUDA and "tpu_dist" for TorchTPU, and raises for the device of PyTorch/XLA."""
DEPTH = 5


class Names(NamedTuple):
    """What a backend may be called."""

    texts: tuple[tuple[ast.expr, str], ...] = ()
    """Where each name is written, and the name; empty for None."""
    whole: bool = True
    """No other name can reach the place."""

    def __add__(self, other: Names) -> Names:  # type: ignore[override]
        return Names((*self.texts, *other.texts), self.whole and other.whole)

    @property
    def every(self) -> set[str]:
        """The names alone."""
        return {text for _, text in self.texts}

    @property
    def nccl(self) -> list[ast.expr]:
        """Where a name with NCCL in it is written."""
        return [node for node, text in self.texts if "nccl" in text]


UNSEEN = Names(whole=False)


def names_of(context: Context, node: ast.expr, depth: int = DEPTH) -> Names:
    """What ``node`` may be: by itself, by what its variable is given, or by the default of its parameter or option."""
    if isinstance(node, ast.Constant):
        text = "" if node.value is None else node.value
        return Names(((node, text.lower()),)) if isinstance(text, str) else UNSEEN
    if isinstance(node, ast.IfExp):
        return names_of(context, node.body, depth) + names_of(context, node.orelse, depth)
    if isinstance(node, ast.BoolOp):
        return sum((names_of(context, value, depth) for value in node.values), Names())
    if isinstance(node, ast.Name | ast.Attribute):
        if context.named(node, *NCCL, *KNOWN):
            return Names(((node, last_name(node).lower()),))
        return _held(context, node, depth - 1) if depth else UNSEEN
    if isinstance(node, ast.Call) and context.named(node.func, DEFAULT):
        return Names(((node, "tpu_dist" if context.target == "tpu" else "nccl"),))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "lower":
        return names_of(context, node.func.value, depth)
    return UNSEEN


def _held(context: Context, node: ast.Name | ast.Attribute, depth: int) -> Names:
    if isinstance(node, ast.Name):
        home = scope_of(context.tree, node).find(node.id)
        bound = home.names[node.id] if home is not None else []
        return sum((_bound(context, b, depth) for b in bound), Names()) if bound else UNSEEN
    stores = [a for a in context.tree.attributes if a.attr == node.attr and not isinstance(a.ctx, ast.Load)]
    found = sum((_stored(context, store, depth) for store in stores), Names(whole=bool(stores)))
    for call in context.tree.calls:
        if last_name(call.func) in ADDED_OPTIONS and ("attribute", node.attr) in option(call):
            default = next((k.value for k in call.keywords if k.arg == "default"), None)
            found += (names_of(context, default, depth) if default is not None else Names())._replace(whole=False)
    return found


def _bound(context: Context, binding: Binding, depth: int) -> Names:
    if binding.kind == "param" and isinstance(binding.node, ast.arg):
        arguments = context.tree.parents[binding.node]
        default = default_of(arguments, binding.node.arg) if isinstance(arguments, ast.arguments) else None
        return (names_of(context, default, depth) if default is not None else Names())._replace(whole=False)
    return _stored(context, binding.node, depth)


def _stored(context: Context, store: ast.AST, depth: int) -> Names:
    around = context.tree.parents.get(store)
    if isinstance(around, ast.Assign | ast.AnnAssign | ast.NamedExpr) and around.value is not None:
        return names_of(context, around.value, depth)
    return UNSEEN


def serves_groups_alone(context: Context, name: ast.Name, groups: tuple[str, ...]) -> bool:
    """Whether a variable goes to functions of these names, as it is, and nowhere else."""
    tree, home = context.tree, scope_of(context.tree, name).find(name.id)
    reads = [read for read in tree.reads(name.id) if scope_of(tree, read).find(name.id) is home]
    around = [[n for n in tree.ancestors(read)[:2] if isinstance(n, ast.Call)] for read in reads]
    return all(any(context.named(call.func, *groups) for call in calls) for calls in around)


def choices_by_nccl(context: Context, names: Names) -> list[ast.expr]:
    """The tests ``is_nccl_available()`` by which a name is chosen: they are false on a TPU."""
    around = [context.tree.parents[node] for node, _ in names.texts]
    tests = [n.test.func for n in around if isinstance(n, ast.IfExp) and isinstance(n.test, ast.Call)]
    return [test for test in tests if context.named(test, "torch.distributed.is_nccl_available")]
