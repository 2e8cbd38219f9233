"""Where the value of an expression may come from: the variables, attributes and results that it hands on."""

from __future__ import annotations

import ast

from torchport.analysis.devices import Key, key_of, looked_up
from torchport.analysis.scopes import Scope, Tree
from torchport.lazy import pattern

COPIES = frozenset(("str", "repr", "list", "tuple", "set", "sorted", "next", "iter", "reversed", "enumerate"))
"""Builtins whose result is, or holds, what they are given."""
TEXTS = frozenset(("lower", "strip", "split", "rsplit", "partition", "replace", "removeprefix", "values", "copy"))
"""Methods whose result is made of the letters of a text, or of the items of a collection."""
HOLDS_NOTHING = frozenset((ast.Constant, ast.Compare, ast.Lambda, ast.Dict, ast.DictComp, ast.UnaryOp))
HAND_ON = (ast.NamedExpr, ast.Await, ast.Starred, ast.FormattedValue)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
CONTAINERS = (ast.List, ast.Tuple, ast.Set)
PIECE = pattern(r"(?:cuda|cpu|xla|tpu|%s|\{\w*\})?(?::(?:\d+|%[sdi]|\{\w*\})?)?")
"""What may stand beside a device name in a text that is one again: ``f"{kind}:{index}"``, not ``f"on {device}"``."""
SEPARATORS = pattern(r"[:,;\s]*")
"""What joins device names to a text that is taken apart again."""


def carriers(tree: Tree, node: ast.expr, scope: Scope) -> list[Key]:
    """The keys whose value ``node`` has, or is made of. A collection counts as what it holds."""
    if node.__class__ in HOLDS_NOTHING:
        return []
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return carriers(tree, node.value, scope)
    if isinstance(node, (ast.Name, ast.Attribute)):
        key = key_of(tree, node, scope)
        return [key] if key is not None else []
    if isinstance(node, ast.Call):
        return _of_call(tree, node, scope)
    if isinstance(node, ast.Subscript):
        return _of_subscript(tree, node, scope)
    return [key for part in _parts(node) for key in carriers(tree, part, scope)]


def _parts(node: ast.expr) -> list[ast.expr]:
    """The expressions of which one is, or which make up, the value of ``node``."""
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, HAND_ON):
        return [node.value]
    if isinstance(node, CONTAINERS):
        return node.elts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return [node.left, node.right] if _is_device_text(node.left, node.right) else []
    if isinstance(node, COMPREHENSIONS):
        return [node.elt]
    return node.values if isinstance(node, ast.JoinedStr) and _is_device_text(*node.values) else []


def _is_device_text(*parts: ast.expr) -> bool:
    """Whether the parts may make up a device name: the letters between them are those of one, or there are none."""
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return all(PIECE.fullmatch(text) for text in texts)


def _of_call(tree: Tree, node: ast.Call, scope: Scope) -> list[Key]:
    func = node.func
    if (key := looked_up(node)) is not None:
        return [key, *(k for default in node.args[1:] for k in carriers(tree, default, scope))]
    if isinstance(func, ast.Name):
        if func.id in COPIES:
            return [key for argument in node.args for key in carriers(tree, argument, scope)]
        return [("return", func.id)]
    if isinstance(func, ast.Attribute):
        if func.attr == "device":  # torch.device(...), shim.device(...)
            return [key for argument in node.args[:1] for key in carriers(tree, argument, scope)]
        if func.attr in ("format", "join"):
            written = func.value.value if isinstance(func.value, ast.Constant) else ""
            if not (PIECE if func.attr == "format" else SEPARATORS).fullmatch(str(written)):
                return []
            return [key for argument in node.args for key in carriers(tree, argument, scope)]
        if func.attr in TEXTS:
            return carriers(tree, func.value, scope)
        return [("return", func.attr)]
    return []


def _of_subscript(tree: Tree, node: ast.Subscript, scope: Scope) -> list[Key]:
    """``config["device"]`` has a key of its own; a slice or an item by its number is what holds it."""
    if (key := key_of(tree, node, scope)) is not None:
        return [key]
    if isinstance(node.slice, ast.Constant | ast.Slice | ast.UnaryOp):
        return carriers(tree, node.value, scope)
    return []
