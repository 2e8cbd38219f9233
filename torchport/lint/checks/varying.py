"""Whether a Python number is another one in each step: counted by the loop, drawn at random, or read from data."""

from __future__ import annotations

import ast

from torchport.analysis.index import argument_of
from torchport.analysis.reaching import LOOPS, scope_of
from torchport.analysis.scopes import FUNCTIONS, walk
from torchport.analysis.values import Origin
from torchport.lint.checks.facts import Facts

DEPTH = 4
STEADY = frozenset(("len", "isinstance", "hasattr", "type", "str", "repr"))
"""Builtins whose result is not read from a tensor, not counted and not drawn."""
SHAPES = frozenset(
    ("size", "dim", "numel", "view", "reshape", "permute", "transpose", "flatten", "unsqueeze", "squeeze")
)
"""Methods that give tensors, or what is known of a tensor without its values."""


def may_vary(known: Facts, node: ast.expr) -> bool:
    """A cheap look before values are asked for: False where :func:`varies` finds nothing for certain."""
    for part in walk(node):
        match part:
            case ast.Name():
                if _name_may_vary(known, part):
                    return True
            case ast.Call(func=ast.Name() as function):
                if function.id not in STEADY:
                    return True
            case ast.Call(func=ast.Attribute() as method):
                if method.attr not in SHAPES or known.flow.class_of(method.value) is not None:
                    return True
            case ast.Call():
                return True
            case ast.Attribute(value=ast.Name(id="self")):
                if known.flow.class_of(part.value) is None or _attribute_may_vary(known, part):
                    return True
    return False


def _attribute_may_vary(known: Facts, node: ast.Attribute) -> bool:
    owner = known.flow.class_of(node.value)
    assert owner is not None
    key = owner, node.attr
    if key not in known.unsteady:
        known.unsteady[key] = False
        counted = any(getattr(s.target, "attr", "") == node.attr for s in known.tree.every(ast.AugAssign))
        given = known.flow.assigned.get(key, ())
        known.unsteady[key] = counted or any(may_vary(known, value) for value in given)
    return known.unsteady[key]


def _name_may_vary(known: Facts, name: ast.Name) -> bool:
    parent = known.tree.parents.get(name)
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is name):
        return False
    home = scope_of(known.tree, name).find(name.id)
    if home is None:
        return False
    key = home, name.id
    if key not in known.unsteady:
        known.unsteady[key] = False
        known.unsteady[key] = any(_binding_may_vary(known, b.node, home.node) for b in home.names[name.id])
    return known.unsteady[key]


def _binding_may_vary(known: Facts, node: ast.AST, function: ast.AST) -> bool:
    if isinstance(node, ast.arg):
        return function in known.flow.callers
    if not isinstance(node, ast.Name):
        return False
    parent = known.tree.parents.get(node)
    while isinstance(parent, ast.Tuple | ast.List | ast.Starred):
        parent = known.tree.parents.get(parent)
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return parent.value is not None and may_vary(known, parent.value)
    return not isinstance(parent, ast.withitem)


def varies(known: Facts, node: ast.expr, depth: int = DEPTH) -> Origin:
    """Where the changes of ``node`` from step to step come from; nothing where none are seen."""
    if depth == 0:
        return ""
    if isinstance(node, ast.Constant):
        return ""
    if depth == DEPTH:
        if node not in known.varying:
            known.varying[node] = _varies(known, node, depth)
        return known.varying[node]
    return _varies(known, node, depth)


def _varies(known: Facts, node: ast.expr, depth: int) -> Origin:
    value = known.value(node)
    if value.is_tensor or value.kind in ("array", "model", "none"):
        return ""
    if value.kind == "number" and value.origin in ("data", "random") and not isinstance(node, ast.Name):
        return value.origin
    for name in walk(node):
        if isinstance(name, ast.Attribute) and _counts(known, name):
            return "loop"
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            if isinstance(known.tree.parents.get(name), ast.Attribute) or _is_function(known, name):
                continue
            if origin := _name(known, name, depth):
                return origin
        elif isinstance(name, ast.Call):
            qualified = known.flow.name_of(name.func)
            if qualified.startswith(("random.", "numpy.random.")):
                return "random"
            if isinstance(name.func, ast.Attribute) and name.func.attr in ("item", "tolist") and not name.args:
                return "data"
    return ""


def _counts(known: Facts, node: ast.Attribute) -> bool:
    """``self.at``, which a method that runs in each step adds to."""
    owner = known.flow.class_of(node.value)
    if owner is None:
        return False
    return any(
        isinstance(statement.target, ast.Attribute)
        and statement.target.attr == node.attr
        and known.flow.class_of(statement.target.value) is owner
        and known.value(statement.value).kind == "number"
        and bool(known.heat(statement))
        for statement in known.tree.every(ast.AugAssign)
    )


def _is_function(known: Facts, name: ast.Name) -> bool:
    parent = known.tree.parents.get(name)
    if isinstance(parent, ast.Call) and parent.func is name:
        return True
    return known.value(name).is_tensor


def _name(known: Facts, name: ast.Name, depth: int) -> Origin:
    tree = known.tree
    home = scope_of(tree, name).find(name.id)
    if home is None:
        return ""
    found: Origin = ""
    for binding in home.names[name.id]:
        node = binding.node
        if isinstance(node, ast.arg):
            found = found or _handed(known, home.node, node.arg, depth)
            continue
        parent = tree.parents.get(node)
        while isinstance(parent, ast.Tuple | ast.List):
            parent = tree.parents.get(parent)
        match parent:
            case ast.For() if (_turns(known, parent) or is_batches(known, parent)) and parent in tree.ancestors(name):
                given = known.value(name)
                if given.kind == "number" and given.origin == "loop":
                    found = found or "loop"
            case ast.AugAssign() if known.value(parent.value).kind == "number":
                if any(_turns(known, n) for n in tree.ancestors(parent)):
                    found = found or "loop"
            case ast.Assign() if depth > 1 and parent is not tree.statement(name):
                if known.heat(parent):
                    found = found or varies(known, parent.value, depth - 1)
    return found


def _turns(known: Facts, loop: ast.AST) -> bool:
    """A loop whose turns are steps; one inside of a step runs through the same numbers in each."""
    return loop in known.heats.loops and not known.heat(loop)


def _handed(known: Facts, function: ast.AST, name: str, depth: int) -> Origin:
    """A parameter that a call in this file gives another number in each step."""
    if not isinstance(function, FUNCTIONS):
        return ""
    for site in known.flow.callers.get(function, ()):
        given = argument_of(function, site, name)
        if given is not None and (origin := varies(known, given, depth - 1)):
            return origin
    return ""


def is_batches(known: Facts, loop: ast.AST) -> bool:
    """``for i in range(0, len(X), size)``, outside of any step: batches of a tensor that lies on the device."""
    call = loop.iter if isinstance(loop, ast.For) else None
    counts = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range" and len(call.args) == 3
    return counts and not known.heat(loop)


def loop_of(known: Facts, node: ast.AST) -> ast.AST | None:
    """The innermost loop around ``node`` within its function."""
    for parent in known.tree.ancestors(node):
        if isinstance(parent, LOOPS):
            return parent
        if isinstance(parent, (*FUNCTIONS, ast.Lambda)):
            return None
    return None
