"""Tests for the number of a process: ``if rank == 0``."""

from __future__ import annotations

import ast

from torchport.analysis.names import chain
from torchport.analysis.scopes import FUNCTIONS, Tree
from torchport.lazy import words

RANK = words(r"(^|_)(rank|ordinal)$")
FIRST = words(
    r"^_?(is_?)?(local_|global_|world_)?(main|master|rank_?zero|rank_?0|chief|root|primary)(_(process|rank|ordinal|proc|node|worker))?$"
    r"|^is_(global|rank|node)_zero$",
)
"""What says of a process that it is the first one."""


def is_rank(node: ast.expr) -> bool:
    """``rank``, ``dist.get_rank()``, ``int(os.environ["LOCAL_RANK"])``."""
    match node:
        case ast.Call(func=ast.Name(id="int"), args=[only]):
            return is_rank(only)
        case ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[ast.Constant(value=str() as key), *_]):
            return bool(RANK.search(key))
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            return bool(RANK.search(key))
        case ast.Call():
            return bool(RANK.search((chain(node.func) or [""])[-1]))
    return bool(RANK.search((chain(node) or [""])[-1]))


def asks_for_several(op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
    """``rank != -1``, ``rank >= 0`` and ``rank is None`` ask whether there are several processes at all."""
    if isinstance(op, ast.Is | ast.IsNot):
        return True
    sides = [ast.unparse(side) for side in (left, right)]
    return "-1" in sides or "None" in sides or (isinstance(op, ast.GtE) and sides[1] == "0")


def in_one_process(tree: Tree, node: ast.AST) -> bool:
    """Whether ``node`` stands in the body of an ``if rank == 0:`` of its function."""
    child = node
    for parent in tree.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        if isinstance(parent, ast.If) and child in parent.body and _holds_in_one(parent.test):
            return True
        child = parent
    return False


def _holds_in_one(test: ast.expr) -> bool:
    match test:
        case ast.BoolOp(op=ast.And()):
            return any(map(_holds_in_one, test.values))
        case ast.Compare(left=left, ops=[ast.Eq() as op], comparators=[right]):
            return (is_rank(left) or is_rank(right)) and not asks_for_several(op, left, right)
        case ast.UnaryOp(op=ast.Not()):
            return is_rank(test.operand)
        case ast.Call():
            return bool(FIRST.search((chain(test.func) or [""])[-1]))
        case ast.Name() | ast.Attribute():
            return bool(FIRST.search(chain(test)[-1])) if chain(test) else False
    return False
