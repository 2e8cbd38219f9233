"""Where a file calls its own functions and methods."""

from __future__ import annotations

import ast

from torchport.analysis.names import chain
from torchport.analysis.parts import word_of
from torchport.analysis.scopes import FUNCTIONS, Tree

HANDS_ON = frozenset(("to", "cuda", "train", "eval"))
"""Methods of a module that return it."""


def calls_of(tree: Tree, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Call]:
    """Calls in this file of a function; of a method, on ``self`` or on what its class made; a closure handed on."""
    owner = tree.parents[function]
    own_class = owner if isinstance(owner, ast.ClassDef) else None
    made = _made_of(tree, own_class) if own_class is not None else set()
    found = []
    for call in tree.calls_of(function.name):
        parts = chain(call.func)
        if own_class is None and any(isinstance(a, ast.Name) and a.id == function.name for a in call.args):
            if not is_hook(call):
                found.append(call)
        elif not parts or parts[-1] != function.name:
            continue
        elif own_class is None:
            if len(parts) == 1:
                found.append(call)
        elif parts[:-1] == ["self"]:
            if own_class in tree.ancestors(call) or _are_kin(tree, own_class, tree.owner(call)):
                found.append(call)
        elif len(parts) > 1 and parts[-2] in made:
            found.append(call)
    return found


def is_hook(call: ast.Call) -> bool:
    """``parameter.register_hook(f)``: the backward pass calls it, and not what stands around."""
    return word_of(call.func).startswith("register_")


def _made_of(tree: Tree, owner: ast.ClassDef) -> set[str]:
    """Names to which the file assigns an object of a class of its own."""
    found = set()
    for call in tree.calls_of(owner.name):
        if not isinstance(call.func, ast.Name) or call.func.id != owner.name:
            continue
        value = tree.parents[call]
        while isinstance(value, ast.Attribute) and value.attr in HANDS_ON and _is_called(tree, value):
            value = tree.parents[tree.parents[value]]
        if isinstance(value, ast.Assign):
            found |= {word_of(target) for target in value.targets}
    return found


def _is_called(tree: Tree, method: ast.Attribute) -> bool:
    parent = tree.parents[method]
    return isinstance(parent, ast.Call) and parent.func is method


def _are_kin(tree: Tree, one: ast.ClassDef, other: ast.ClassDef | None) -> bool:
    """Whether one of two classes derives from the other: a method of the first may be what the other calls."""
    return other is not None and (_derives(tree, one, other.name, set()) or _derives(tree, other, one.name, set()))


def _derives(tree: Tree, owner: ast.ClassDef, name: str, seen: set[ast.ClassDef]) -> bool:
    """Whether a class derives from the one of that name, as far as the file shows it."""
    bases = {word_of(base) for base in owner.bases} if owner not in seen else set()
    seen.add(owner)
    return name in bases or any(c.name in bases and _derives(tree, c, name, seen) for c in tree.classes)


def outermost(tree: Tree, node: ast.AST) -> set[str]:
    """The functions through which a file comes to ``node`` and that it does not call itself."""
    found: set[str] = set()
    waiting, seen = [tree.function(node)], set[ast.AST | None]()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FUNCTIONS) or function in seen:
            continue
        seen.add(function)
        calls = calls_of(tree, function)
        waiting += map(tree.function, calls)
        found.update(() if calls else {function.name})
    return found
