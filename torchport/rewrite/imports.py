"""Where the import of the shim goes, and which imports nothing uses any more."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from torchport.analysis.names import qualify
from torchport.analysis.scopes import FUNCTIONS, Tree
from torchport.model import Edit, Finding
from torchport.rewrite.text import Text

SHIM = "torchport.shim"


def shim_name(tree: Tree) -> str:
    """``shim``, or ``torchport_shim`` in a file that binds that name itself."""
    for scope in {tree.scope, *tree.scopes.values()}:
        for binding in scope.names.get("shim", ()):
            if binding.target != SHIM:
                return "torchport_shim"
    return "shim"


def shim_imports(tree: Tree, text: Text, findings: Iterable[Finding], name: str) -> list[Edit]:
    """The import statements that the new text of ``findings`` needs, each once."""
    starts = sorted(f.edits[0].start for f in findings if f.shim and f.edits)
    if not starts or _bound(tree, name):
        return []
    top = _top_import(tree)
    if top is None:
        functions = [(node, _torch_import(node.body)) for node in tree.definitions]
        local = [(node, found) for node, found in functions if found is not None]
        edits, rest = [], []
        for start in starts:
            home = next(
                (f for n, f in local if text.span(n)[0] <= start < text.span(n)[1] and text.span(f)[1] <= start), None
            )
            if home is None:
                rest.append(start)
            else:
                edits.append(_after(text, home, name))
        starts = rest
        if not starts:
            return sorted(set(edits), key=lambda e: e.start)
        return [*set(edits), _at_top(tree, text, name)]
    _, end = text.span(top)
    if starts[0] < _line_end(text, end) and not _only_in_functions(tree, text, starts, end):
        return [_before(text, top, name)]
    return [_after(text, top, name)]


def _only_in_functions(tree: Tree, text: Text, starts: list[int], end: int) -> bool:
    """Uses above the import that stand in functions run after it."""
    early = [start for start in starts if start < end]
    spans = [text.span(node) for node in tree.definitions]
    return all(any(a <= start < b for a, b in spans) for start in early) and not any(
        end <= start < _line_end(text, end) for start in starts
    )


def _bound(tree: Tree, name: str) -> bool:
    return any(b.target == SHIM for b in tree.scope.names.get(name, ()))


def _torch_import(body: list[ast.stmt]) -> ast.stmt | None:
    """The last of the first imports of torch in a block."""
    for statement in body:
        if isinstance(statement, ast.Import) and any(a.name.partition(".")[0] == "torch" for a in statement.names):
            return statement
        if (
            isinstance(statement, ast.ImportFrom)
            and not statement.level
            and (statement.module or "").partition(".")[0] == "torch"
        ):
            return statement
    return None


def _top_import(tree: Tree) -> ast.stmt | None:
    """The first statement of the module that imports torch, also one inside ``try`` or ``if``."""
    found = _torch_import(tree.module.body)
    if found is not None:
        return found
    for node in tree.imports:
        if _torch_import([node]) is None:
            continue
        chain = [node, *tree.ancestors(node)]
        if not any(isinstance(n, (*FUNCTIONS, ast.ClassDef)) for n in chain):
            top = chain[-2]
            assert isinstance(top, ast.stmt)
            return top
    return None


def _at_top(tree: Tree, text: Text, name: str) -> Edit:
    """After the imports at the head of the module; without any, after its docstring."""
    last: ast.stmt | None = None
    for statement in tree.module.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = statement
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and last is None):
            break
    if last is not None:
        return _after(text, last, name)
    body = tree.module.body
    docstring = (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )
    if docstring and len(body) > 1:
        edit = _after(text, body[0], name)
        return Edit(edit.start, edit.end, text.newline(1) + edit.text)
    return _before(text, body[0], name)


def _statement(name: str) -> str:
    return "from torchport import shim" if name == "shim" else f"from torchport import shim as {name}"


def _line_end(text: Text, offset: int) -> int:
    line = text.line(offset)
    return text.starts[line - 1] + len(text.line_text(line).rstrip(b"\r\n"))


def _after(text: Text, statement: ast.stmt, name: str) -> Edit:
    place = _line_end(text, text.span(statement)[1])
    return Edit(place, place, f"{text.newline(text.line(place))}{text.indent(statement.lineno)}{_statement(name)}")


def _before(text: Text, statement: ast.stmt, name: str) -> Edit:
    decorators = getattr(statement, "decorator_list", [])
    line = min([statement.lineno, *(d.lineno for d in decorators)])
    place = text.starts[line - 1]
    return Edit(place, place, f"{text.indent(line)}{_statement(name)}{text.newline(line)}")


def unused_imports(before: Tree, after: Tree, text: Text, is_package: bool) -> list[Edit]:
    """Removes names under torch that were used before and are not any more; ``import torch`` itself stays."""
    if is_package:
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
    if not name or not target.startswith("torch.") or getattr(node, "level", None):
        return False
    return _used(before, name) and not _used(after, name) and not _reached(after, f"{target}.")


def _reached(tree: Tree, module: str) -> bool:
    """Whether a dotted chain still goes through the module, which the import may have been the one to load."""
    return any((found := qualify(tree, node)) is not None and found.name.startswith(module) for node in tree.names)


def _used(tree: Tree, name: str) -> bool:
    for node in tree.names:
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name) and base.id == name:
            return True
    return any(isinstance(n.value, str) and name in n.value for n in tree.strings if isinstance(n, ast.Constant))


def _remove(tree: Tree, text: Text, node: ast.Import | ast.ImportFrom, dead: list[ast.alias]) -> Edit | None:
    """Take the statement out with its line, or the names out of it; None where that is not safe."""
    start, end = text.span(node)
    source = text.bytes[start:end].decode()
    if "#" in text.bytes[start : _line_end(text, end)].decode() or any(
        isinstance(n, ast.Try) for n in tree.ancestors(node)
    ):
        return None
    if len(dead) < len(node.names):
        return Edit(start, end, _without(source, dead, text.newline(node.lineno)))
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
    alone = text.bytes[line_start:start].strip() == b"" and text.bytes[end : _line_end(text, end)].strip() == b""
    if not alone:
        return None
    if len(block) == 1:
        return Edit(start, end, "pass")
    after = text.line(end)
    return Edit(line_start, text.starts[after] if after < len(text.starts) else len(text.bytes), "")


def _without(source: str, dead: list[ast.alias], newline: str) -> str:
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
    missing = set()
    for node in tree.names:
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name):
            scope = tree.scopes.get(node) or tree.scopes.get(base) or tree.scope
            if scope.find(base.id) is None:
                missing.add(base.id)
    return missing - set(dir(builtins))
