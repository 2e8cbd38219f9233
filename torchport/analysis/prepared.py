"""Loaders that Accelerate has prepared: on PyTorch/XLA they are its MpDeviceLoader, which marks each step."""

from __future__ import annotations

import ast

from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import FUNCTIONS, Tree, dotted

WRAPS = frozenset(("enumerate", "tqdm", "trange", "track", "iter"))
"""Functions that hand on the loader that they are given."""
PREPARES = ("prepare", "prepare_data_loader", "skip_first_batches")
DEEP = 3
"""Names that are followed to what they were given."""


def is_prepared(tree: Tree, iterable: ast.expr, deep: int = DEEP) -> bool:
    """Whether what a loop turns over is a loader that ``accelerator.prepare`` has given, whatever is around it."""
    if not deep or not any(map(_is_of_accelerate, tree.imports)):
        return False
    while isinstance(iterable, ast.Call) and iterable.args and dotted(iterable.func).rpartition(".")[2] in WRAPS:
        iterable = iterable.args[0]
    if _prepares(iterable):
        return True
    given, others = _given(tree, iterable)
    if any(_prepares(a.value) and isinstance(tree.parents[a], (ast.Module, *FUNCTIONS)) for a in given):
        return True
    return bool(given) and not others and all(_prepares(a.value) or is_prepared(tree, a.value, deep - 1) for a in given)


def _given(tree: Tree, node: ast.expr) -> tuple[list[ast.Assign], bool]:
    """What assigns a value to a variable or an attribute, and whether it has values from anywhere else."""
    name = dotted(node)
    if not isinstance(node, ast.Name):
        every = tree.every(ast.Assign) if name else []
        return [a for a in every if any(name == dotted(t) for target in a.targets for t in _flat(target))], False
    home = scope_of(tree, node).find(name)
    statements = [tree.statement(b.node) for b in home.names[name] if b.kind != "param"] if home is not None else []
    given = [statement for statement in statements if isinstance(statement, ast.Assign)]
    return given, home is None or len(given) < len(home.names[name])


def _is_of_accelerate(statement: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
    return any(name.partition(".")[0] == "accelerate" for name in names)


def _prepares(value: ast.expr) -> bool:
    """``accelerator.prepare(...)``, and what it is called on has that name."""
    owner, _, method = dotted(value.func).rpartition(".") if isinstance(value, ast.Call) else ("", "", "")
    return method in PREPARES and "accelerator" in owner.rpartition(".")[2]


def _flat(target: ast.expr) -> list[ast.expr]:
    return [*target.elts] if isinstance(target, ast.Tuple | ast.List) else [target]
