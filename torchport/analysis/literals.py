"""Device texts: ``"cuda"``, ``"cuda:1"``, ``f"cuda:{i}"``, ``"cuda:" + str(i)``, ``"cuda:%d" % i`` and their like."""

from __future__ import annotations

import ast

from torchport.lazy import pattern

DEVICE = pattern(r"cuda(?::(\d*))?")
BUILDERS = ("cuda:%d", "cuda:%s", "cuda:%i")


class DeviceText:
    """An expression whose value is a CUDA device string: the whole ``node``, and the source of its ``index``.

    The index of "cuda:", which is only a part of one, is an empty text.
    """

    __slots__ = ("index", "node")

    def __init__(self, node: ast.expr, index: str | None = None) -> None:
        self.node, self.index = node, index

    @property
    def line(self) -> int:
        """The line on which it starts."""
        return self.node.lineno


def device_text(node: ast.expr) -> DeviceText | None:
    """What ``node`` says as a device string of CUDA, or None where it is something else or cannot be told."""
    if isinstance(node, ast.Constant):
        return _constant(node, node.value)
    if isinstance(node, ast.JoinedStr):
        return _fstring(node)
    if isinstance(node, ast.BinOp):
        return _operator(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _method(node, node.func)
    return None


def _constant(node: ast.expr, value: object) -> DeviceText | None:
    match = DEVICE.fullmatch(value) if isinstance(value, str) and value.startswith("cuda") else None
    return DeviceText(node, match[1]) if match else None


def _fstring(node: ast.JoinedStr) -> DeviceText | None:
    parts = node.values
    if len(parts) == 1 and isinstance(parts[0], ast.Constant):
        return _constant(node, parts[0].value)
    if len(parts) != 2 or not isinstance(parts[0], ast.Constant) or parts[0].value != "cuda:":
        return None
    value = parts[1]
    if not isinstance(value, ast.FormattedValue) or value.conversion != -1 or value.format_spec is not None:
        return None
    return DeviceText(node, _plain(value.value))


def _operator(node: ast.BinOp) -> DeviceText | None:
    left, right = node.left, node.right
    if not isinstance(left, ast.Constant):
        return None
    if isinstance(node.op, ast.Add) and left.value == "cuda:":
        return DeviceText(node, _plain(right))
    if isinstance(node.op, ast.Mod) and left.value in BUILDERS:
        if isinstance(right, ast.Tuple):
            return DeviceText(node, _plain(right.elts[0])) if len(right.elts) == 1 else None
        return DeviceText(node, _plain(right))
    return None


def _method(node: ast.Call, func: ast.Attribute) -> DeviceText | None:
    if not isinstance(func.value, ast.Constant) or node.keywords or len(node.args) != 1:
        return None
    argument = node.args[0]
    if func.attr == "format" and func.value.value in ("cuda:{}", "cuda:{:d}", "cuda:{0}"):
        return None if isinstance(argument, ast.Starred) else DeviceText(node, _plain(argument))
    if func.attr == "join" and func.value.value == ":" and isinstance(argument, ast.List | ast.Tuple):
        parts = argument.elts
        if len(parts) == 2 and isinstance(parts[0], ast.Constant) and parts[0].value == "cuda":
            return DeviceText(node, _plain(parts[1]))
    return None


def _plain(node: ast.expr) -> str:
    """The source of an index, without the ``str()`` that only made it a part of a string."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "str"
        and len(node.args) == 1
        and not node.keywords
    ):
        node = node.args[0]
    return ast.unparse(node)
