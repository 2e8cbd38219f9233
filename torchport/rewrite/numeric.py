"""What shows that a parameter is the number of a GPU: its annotation, and what the function compares it with."""

from __future__ import annotations

import ast

from torchport.analysis.scopes import dotted
from torchport.rewrite.context import Context
from torchport.rewrite.own_objects import bindings

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def is_numeric(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` is a parameter annotated with ``int``, or one that the function compares with a number."""
    if not isinstance(node, ast.Name):
        return False
    bound = bindings(context, node, node.id)
    if not bound or any(b.kind != "param" for b in bound):
        return False
    notes = [note for b in bound if (note := getattr(b.node, "annotation", None)) is not None]
    if any(isinstance(part, ast.Name) and part.id == "int" for note in notes for part in ast.walk(note)):
        return True
    around = context.tree.function(node)
    asked = [c for c in context.tree.calls_of("isinstance") if len(c.args) == 2 and ast.unparse(c.args[1]) == "int"]
    if any(dotted(c.args[0]) == node.id and context.tree.function(c) is around for c in asked):
        return True
    return any(
        isinstance(test.left, ast.Name)
        and test.left.id == node.id
        and isinstance(test.ops[0], ORDERS)
        and _is_number(test.comparators[0])
        and context.tree.function(test) is around
        for test in context.tree.every(ast.Compare)
    )


def _is_number(node: ast.expr) -> bool:
    """``0`` and ``-1``."""
    value = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(value, ast.Constant) and type(value.value) is int
