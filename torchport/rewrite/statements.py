"""Whole statements: taken out with their lines, or put in beside others."""

from __future__ import annotations

import ast

from torchport.analysis.scopes import Tree
from torchport.model import Edit
from torchport.rewrite.text import Text

BLOCKS = ("body", "orelse", "finalbody")


def block_of(tree: Tree, node: ast.stmt) -> list[ast.stmt]:
    """The statements among which ``node`` stands."""
    parent = tree.parents[node]
    blocks = (getattr(parent, name, None) for name in BLOCKS)
    return next((block for block in blocks if isinstance(block, list) and node in block), [node])


def removal(tree: Tree, text: Text, node: ast.stmt, *, gone: tuple[ast.stmt, ...] = ()) -> Edit:
    """Takes ``node`` out with its line, a comment behind it left; ``pass`` stays where a block needs a statement there.

    ``gone`` are other statements that are taken out together with it.
    """
    start, end = text.span(node)
    line_start = text.starts[node.lineno - 1]
    behind = text.bytes[end : text.line_end(end)].lstrip()
    first = not text.bytes[line_start:start].strip()
    alone = first and not behind
    block = block_of(tree, node)
    emptied = all(other is node or other in gone for other in block) and not isinstance(tree.parents[node], ast.Module)
    if first and behind.startswith(b"#") and not (emptied and node is block[0]):
        return Edit(start, text.line_end(end) - len(behind), "")
    if not alone or (emptied and node is block[0]):
        return Edit(start, end, "pass")
    after = text.line(end)
    return Edit(line_start, text.starts[after] if after < len(text.starts) else len(text.bytes), "")


def replacement(text: Text, node: ast.stmt, lines: list[str]) -> Edit:
    """Puts ``lines`` in the place of ``node``, each on a line of its own, or beside one another where it shares one."""
    start, end = text.span(node)
    line_start = text.starts[node.lineno - 1]
    alone = not text.bytes[line_start:start].strip()
    between = f"{text.newline(node.lineno)}{text.indent(node.lineno)}" if alone else "; "
    return Edit(start, end, between.join(lines))
