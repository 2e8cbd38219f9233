"""Which assignments of a name reach a use of it: those before it, and in a loop those after it as well."""

from __future__ import annotations

import ast
from operator import itemgetter

from torchport.analysis.scopes import FUNCTIONS, Binding, Scope, Tree, walk

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_PLACE = itemgetter(0)
BLOCKS = ("body", "orelse", "finalbody", "handlers")


def scope_of(tree: Tree, node: ast.AST) -> Scope:
    """The scope in which an expression stands."""
    scopes, around = tree.scopes, node
    while (found := scopes.get(around)) is None:
        parent = tree.parents.get(around)
        if parent is None:
            return tree.scope
        around = parent
    return found


def function_scope(scope: Scope) -> Scope:
    """The scope of the function, class or module around a comprehension."""
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    return scope


def reaching(tree: Tree, use: ast.expr, bindings: list[Binding]) -> list[Binding]:
    """The bindings, all of one scope and in order of the source, that ``use`` in that scope may see."""
    if len(bindings) == 1:
        return bindings
    statement = tree.statement(use)
    path = [statement, *tree.ancestors(statement)]
    around = set(path)
    at = _position(statement)
    found: list[Binding] = []
    later: list[tuple[Binding, ast.AST]] = []
    settled: ast.AST | None = None
    homes: list[ast.stmt] = []
    placed = [(_position(binding.node), binding) for binding in bindings]
    placed.sort(key=_PLACE)
    for place, binding in reversed(placed):
        home = _statement(tree, binding.node)
        if home is statement or place > at:
            later.append((binding, home or binding.node))
            continue
        if homes and home is not None and any(_replaces(tree, other, home) for other in homes):
            continue
        found.append(binding)
        if home is None or _always(tree, home, path, around):
            settled = home or tree.module
            break
        homes.append(home)
        branch = _both_ways(tree, homes)
        if branch is not None and _always(tree, branch, path, around):
            settled = branch
            break
    loops = [n for n in path if isinstance(n, LOOPS) and n is not settled] if later and settled is not None else []
    for binding, start in later:
        if settled is None or any(n in tree.ancestors(start) and n not in tree.ancestors(settled) for n in loops):
            found.append(binding)
    return found


def _block(tree: Tree, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which ``statement`` stands."""
    parent = tree.parents[statement]
    blocks = (getattr(parent, name, None) for name in BLOCKS)
    return next((block for block in blocks if isinstance(block, list) and statement in block), [])


def _replaces(tree: Tree, later: ast.stmt, earlier: ast.stmt) -> bool:
    """Whether what ``earlier`` assigns is always assigned anew by ``later``, of the same block, before it is left."""
    if tree.parents[later] is not tree.parents[earlier] or isinstance(tree.parents[later], ast.Try | ast.TryStar):
        return False
    block = _block(tree, later)
    if earlier not in block:
        return False
    between = block[block.index(earlier) + 1 : block.index(later)]
    return not any(isinstance(node, ast.Break | ast.Continue) for statement in between for node in walk(statement))


def _both_ways(tree: Tree, homes: list[ast.stmt]) -> ast.If | None:
    """The ``if`` in both of whose branches stands one of ``homes``, the last of them among these."""
    parent = tree.parents[homes[-1]]
    if not isinstance(parent, ast.If) or homes[-1] not in parent.body:
        return None
    return parent if any(home in parent.orelse for home in homes) else None


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _statement(tree: Tree, node: ast.AST) -> ast.stmt | None:
    """The statement of a binding; None for a parameter, which comes before everything."""
    if isinstance(node, ast.arg):
        return None
    return tree.statement(node)


def _always(tree: Tree, home: ast.stmt, path: list[ast.AST], around: set[ast.AST]) -> bool:
    """Whether ``home`` has run whenever the last of ``path`` runs, failures aside."""
    if home in around:
        return True  # the target of a loop around the use, or a `with`
    parent = tree.parents[home]
    while isinstance(parent, ast.With | ast.AsyncWith) or (isinstance(parent, ast.Try) and home in parent.body):
        if parent in around:
            break
        home, parent = parent, tree.parents[parent]
    if parent not in around:
        return False
    if isinstance(parent, (*FUNCTIONS, ast.Module, ast.ClassDef, ast.With, ast.AsyncWith)):
        return True
    child = path[path.index(parent) - 1] if parent in path[1:] else None
    return any(
        home in block and child in block for name in BLOCKS if isinstance(block := getattr(parent, name, 0), list)
    )
