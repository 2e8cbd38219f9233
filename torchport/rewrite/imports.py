"""Imports that nothing uses any more, and names that nothing defines."""

from __future__ import annotations

import ast
import builtins

from torchport.analysis.names import qualify
from torchport.analysis.scopes import Scope, Tree
from torchport.model import Edit
from torchport.rewrite.text import Text

BUILTINS = frozenset(dir(builtins))


def unused_imports(before: Tree, after: Tree, text: Text, handed_on: bool) -> list[Edit]:
    """Removes names under torch and apex that were used before and are not any more; ``import torch`` itself stays.

    A module that other files import may hand its own imports on, so there they stay.
    """
    if handed_on:
        return []
    exported = _exported(after)
    edits = []
    for node in after.imports:
        dead = [
            alias
            for alias in node.names
            if _dead(before, after, node, alias) and (alias.asname or alias.name) not in exported
        ]
        if not dead:
            continue
        edit = _remove(after, text, node, dead)
        if edit is not None:
            edits.append(edit)
    return edits


def _exported(tree: Tree) -> set[str]:
    names: set[str] = set()
    for statement in tree.module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            names |= {n.value for n in ast.walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return names


def _dead(before: Tree, after: Tree, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    if isinstance(node, ast.ImportFrom):
        target = f"{node.module}.{alias.name}"
        name = alias.asname or alias.name
    else:
        target, name = alias.name, alias.asname or ""
    if not name or not target.startswith(("torch.", "apex.")) or getattr(node, "level", None):
        return False
    return _used(before, name) and not _used(after, name) and not _reached(after, f"{target}.")


def _reached(tree: Tree, module: str) -> bool:
    """Whether a dotted chain still goes through the module, which the import may have been the one to load."""
    return any((found := qualify(tree, node)) is not None and found.name.startswith(module) for node in tree.names)


def _used(tree: Tree, name: str) -> bool:
    return name in tree.chains() or any(
        isinstance(n.value, str) and name in n.value for n in tree.strings if isinstance(n, ast.Constant)
    )


def _remove(tree: Tree, text: Text, node: ast.Import | ast.ImportFrom, dead: list[ast.alias]) -> Edit | None:
    """Take the statement out with its line, or the names out of it; None where that is not safe."""
    start, end = text.span(node)
    source = text.bytes[start:end].decode()
    if "#" in text.bytes[start : text.line_end(end)].decode() or any(
        isinstance(n, ast.Try) for n in tree.ancestors(node)
    ):
        return None
    if len(dead) < len(node.names):
        return Edit(start, end, without(source, dead, text.newline(node.lineno)))
    parent = tree.parents[node]
    block = next(
        (
            b
            for b in (getattr(parent, f, None) for f in ("body", "orelse", "finalbody"))
            if isinstance(b, list) and node in b
        ),
        [],
    )
    line_start = text.starts[node.lineno - 1]
    alone = text.bytes[line_start:start].strip() == b"" and text.bytes[end : text.line_end(end)].strip() == b""
    if not alone:
        return None
    if len(block) == 1:
        return Edit(start, end, "pass")
    after = text.line(end)
    return Edit(line_start, text.starts[after] if after < len(text.starts) else len(text.bytes), "")


def without(source: str, dead: list[ast.alias], newline: str) -> str:
    """The text of an import statement without some of its names, its lines and brackets as they were."""
    import libcst as cst

    gone = {(alias.name, alias.asname) for alias in dead}
    line = cst.ensure_type(cst.parse_statement(source + newline), cst.SimpleStatementLine)
    statement = line.body[0]
    assert isinstance(statement, cst.Import | cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    kept = [a for a in statement.names if (a.evaluated_name, a.evaluated_alias) not in gone]
    kept[-1] = kept[-1].with_changes(comma=statement.names[-1].comma)
    module = cst.Module([], default_newline=newline)
    return module.code_for_node(statement.with_changes(names=kept))


def unresolved(tree: Tree) -> set[str]:
    """Names that are used and that neither the file nor Python defines."""
    defined, scopes = tree.scope.names, tree.scopes
    return {
        name
        for name, nodes in tree.chains().items()
        if not defined.get(name)  # what the module binds is found from everywhere
        and name not in BUILTINS
        and any((scopes.get(node) or _scope_of_base(tree, node)).find(name) is None for node in nodes)
    }


def _scope_of_base(tree: Tree, node: ast.expr) -> Scope:
    while isinstance(node, ast.Attribute):
        node = node.value
    return tree.scopes.get(node) or tree.scope
