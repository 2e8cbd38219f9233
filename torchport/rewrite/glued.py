"""A number put behind the name of a device: ``f"{device}:{rank}"``, ``device += f":{rank}"`` and their like."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.devices import NAMED
from torchport.analysis.names import chain
from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

GLUED = "it puts a number behind a device type; write shim.device(number) instead"
TEMPLATES = ("%s:%d", "%s:%s", "{}:{}", "{0}:{1}")

ADDED = pattern(rb"""\+=?\s*f?["']:|%s:%|\{0?\}:\{""")
"""Without one of these nothing is put behind a name but in an f-string."""


def glued(rule: Rule, context: Context) -> Iterator[Finding]:
    """Texts that are made of a device's name and a number."""
    for text in context.tree.fstrings:
        match text.values:
            case [ast.FormattedValue(value=kind), ast.Constant(value=":"), _]:
                parent = context.tree.parents[text]
                device = ("torch.device", "torchport.shim.device")
                asked = isinstance(parent, ast.Call) and context.named(parent.func, *device)
                if asked or NAMED.search(".".join(chain(kind))):
                    yield context.leave(rule, text, GLUED)
    if not ADDED.search(context.text.bytes):
        return
    for added in context.tree.every(ast.AugAssign):
        behind = isinstance(added.op, ast.Add) and _begins_with_colon(added.value)
        if behind and NAMED.search(".".join(chain(added.target))):
            yield context.leave(rule, added, GLUED)
    for node in context.tree.names:
        if (whole := _put_together(context, node)) is not None and NAMED.search(".".join(chain(node))):
            yield context.leave(rule, whole, GLUED)


def _put_together(context: Context, node: ast.Name | ast.Attribute) -> ast.expr | None:
    """The expression that puts a colon and more behind ``node``."""
    parent = context.tree.parents[node]
    if isinstance(parent, ast.BinOp):
        behind = parent.left is node and isinstance(parent.op, ast.Add) and _begins_with_colon(parent.right)
        return parent if behind else None
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "format":
        return parent if parent.args[:1] == [node] and _is_template(parent.func.value) else None
    around = context.tree.parents[parent] if isinstance(parent, ast.Tuple) and parent.elts[0] is node else None
    return around if isinstance(around, ast.BinOp) and _is_template(around.left) else None


def _is_template(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in TEMPLATES


def _begins_with_colon(node: ast.expr) -> bool:
    first = node.left if isinstance(node, ast.BinOp) else node
    first = first.values[0] if isinstance(first, ast.JoinedStr) and first.values else first
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.startswith(":")
