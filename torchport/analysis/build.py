"""One walk over the syntax tree of a module that finds its scopes, bindings and parents: no copies, no LibCST."""

from __future__ import annotations

import ast
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

from torchport.analysis.scopes import FIELDS, Binding, Scope, Tree, children

SPOKEN = ("cuda", "CUDA", "nccl", "NCCL_", "CUBLAS", "out of memory", "nvidia-smi")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_POSITION = attrgetter("lineno", "col_offset")
Name, Constant, Attribute, Call, Keyword, Load = ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.keyword, ast.Load


def build(module: ast.Module) -> Tree:
    """Walk ``module`` once. An explicit stack, since deep trees would exceed Python's recursion limit."""
    tree = Tree(module, Scope("module", module, None))
    stack: list[tuple[ast.AST, Scope]] = [(module, tree.scope)]
    parents, kinds, scopes, names, attributes = tree.parents, tree.kinds, tree.scopes, tree.names, tree.attributes
    while stack:
        node, scope = stack.pop()
        kind = node.__class__
        if kind in _SPECIAL:
            for child, inner in _SPECIAL[kind](tree, node, scope):
                parents.setdefault(child, node)
                stack.append((child, inner))
            continue
        if kind is Call:
            tree.calls.append(node)  # type: ignore[arg-type]
            scopes[node] = scope
        elif kind in kinds:
            kinds[kind].append(node)
        # As in children, written out, and most kinds without a turn of their own: this is where the time goes.
        for name in FIELDS[kind]:
            value = getattr(node, name)
            for child in value if value.__class__ is list else (value,):
                if child is None:
                    continue
                parents[child] = node
                inside = child.__class__
                if inside is Keyword:
                    keyword, child = child, child.value
                    parents[child] = keyword
                    inside = child.__class__
                if inside is Attribute:
                    outermost = child
                    while inside is Attribute:
                        attributes.append(child)
                        scopes[child] = scope
                        held, child = child, child.value
                        parents[child] = held
                        inside = child.__class__
                    if inside is Name:
                        names.append(outermost)
                        continue
                if inside is Name:
                    if child.ctx.__class__ is Load:
                        names.append(child)
                        scopes[child] = scope
                    else:
                        _visit_stored(tree, child, scope)
                elif inside is not Constant:
                    stack.append((child, scope))
                elif child.value.__class__ is str:
                    _visit_text(tree, child, scope)
    _resolve_outer(tree)
    for nodes in (tree.names, tree.calls, tree.attributes, tree.strings, tree.loops, tree.imports):
        nodes.sort(key=_POSITION)
    return tree


def _bind(scope: Scope, name: str, binding: Binding) -> None:
    scope.names.setdefault(name, []).append(binding)


def _scoped(node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    return [(child, scope) for child in children(node)]


def _visit_constant(tree: Tree, node: ast.Constant, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    if node.value.__class__ is str:
        _visit_text(tree, node, scope)
    return []


def _visit_text(tree: Tree, node: ast.Constant, scope: Scope) -> None:
    text = cast(str, node.value)
    for word in SPOKEN:
        if word in text:
            tree.strings.append(node)
            tree.scopes[node] = scope
            return


def _visit_name(tree: Tree, node: ast.Name, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    if not isinstance(node.ctx, ast.Load):
        _visit_stored(tree, node, scope)
    elif not isinstance(tree.parents[node], ast.Attribute):
        tree.names.append(node)
        tree.scopes[node] = scope
    return []


def _visit_stored(tree: Tree, node: ast.Name, scope: Scope) -> None:
    if isinstance(node.ctx, ast.Del):
        return
    parent = tree.parents.get(node)
    while scope.kind == "comprehension" and isinstance(parent, ast.NamedExpr) and scope.parent is not None:
        scope = scope.parent
    value = parent.value if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) else None
    nothing = isinstance(value, ast.Constant) and value.value in (None, False)
    _bind(scope, node.id, Binding("none" if nothing else "assign", node))


def _visit_attribute(tree: Tree, node: ast.Attribute, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    tree.attributes.append(node)
    tree.scopes[node] = scope
    if tree.parents[node].__class__ is not Attribute:
        base = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        if base.__class__ is Name:
            tree.names.append(node)
    return [(node.value, scope)]


def _visit_function(
    tree: Tree, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope
) -> list[tuple[ast.AST, Scope]]:
    inner = Scope("function", node, scope)
    tree.scopes[node] = inner
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for arg in (*every, arguments.vararg, arguments.kwarg):
        if arg is not None:
            _bind(inner, arg.arg, Binding("param", arg))
    tree.parents[arguments] = node
    outside: list[ast.AST] = [*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)]
    for default in outside:
        tree.parents[default] = arguments
    children: list[tuple[ast.AST, Scope]] = []
    for arg in (*every, arguments.vararg, arguments.kwarg):
        if arg is not None:
            tree.parents[arg] = arguments
            if arg.annotation is not None:
                children.append((arg.annotation, scope))
    if isinstance(node, ast.Lambda):
        children.append((node.body, inner))
    else:
        tree.definitions.append(node)
        _bind(scope, node.name, Binding("def", node))
        children += [(decorator, scope) for decorator in node.decorator_list]
        if node.returns is not None:
            children.append((node.returns, scope))
        children += [(statement, inner) for statement in node.body]
    for default in outside:
        tree.scopes[default] = scope
    return children + [(default, scope) for default in outside]


def _visit_class(tree: Tree, node: ast.ClassDef, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    inner = Scope("class", node, scope)
    tree.scopes[node] = inner
    tree.classes.append(node)
    _bind(scope, node.name, Binding("class", node))
    outside = [*node.decorator_list, *node.bases, *node.keywords]
    return [(child, scope) for child in outside] + [(child, inner) for child in node.body]


def _visit_comprehension(tree: Tree, node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    inner = Scope("comprehension", node, scope)
    tree.scopes[node] = inner
    return _scoped(node, inner)


def _visit_import(tree: Tree, node: ast.Import, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    tree.imports.append(node)
    tree.scopes[node] = scope
    for alias in node.names:
        if alias.asname:
            tree.imported.add(alias.asname)
            _bind(scope, alias.asname, Binding("import", node, alias.name))
        else:
            root = alias.name.partition(".")[0]
            tree.imported.add(root)
            _bind(scope, root, Binding("import", node, root))
    return []


def _visit_import_from(tree: Tree, node: ast.ImportFrom, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    tree.imports.append(node)
    tree.scopes[node] = scope
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            scope.stars.append((module, node))
        else:
            tree.imported.add(alias.asname or alias.name)
            _bind(scope, alias.asname or alias.name, Binding("import", node, f"{module}.{alias.name}"))
    return []


def _visit_outer(tree: Tree, node: ast.Global | ast.Nonlocal, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    for name in node.names:
        scope.outer[name] = isinstance(node, ast.Global)
    return []


def _visit_loop(tree: Tree, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    tree.loops.append(node)
    tree.scopes[node] = scope
    return _scoped(node, scope)


def _visit_named(tree: Tree, node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    """An except handler or a pattern that captures: both bind a plain string."""
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    if name:
        _bind(scope, name, Binding("other", node))
    return _scoped(node, scope)


def _visit_fstring(tree: Tree, node: ast.JoinedStr, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    tree.scopes[node] = scope
    tree.fstrings.append(node)
    if any(isinstance(v, ast.Constant) and any(word in str(v.value) for word in SPOKEN) for v in node.values):
        tree.strings.append(node)
    return [(child, scope) for child in node.values if not isinstance(child, ast.Constant)]


_SPECIAL: dict[type[ast.AST], Callable[[Tree, Any, Scope], list[tuple[ast.AST, Scope]]]] = {
    ast.Name: _visit_name,
    ast.Constant: _visit_constant,
    ast.Attribute: _visit_attribute,
    ast.FunctionDef: _visit_function,
    ast.AsyncFunctionDef: _visit_function,
    ast.Lambda: _visit_function,
    ast.ClassDef: _visit_class,
    **dict.fromkeys(COMPREHENSIONS, _visit_comprehension),
    ast.Import: _visit_import,
    ast.ImportFrom: _visit_import_from,
    ast.Global: _visit_outer,
    ast.Nonlocal: _visit_outer,
    ast.For: _visit_loop,
    ast.AsyncFor: _visit_loop,
    ast.While: _visit_loop,
    ast.ExceptHandler: _visit_named,
    ast.MatchAs: _visit_named,
    ast.MatchStar: _visit_named,
    ast.MatchMapping: _visit_named,
    ast.JoinedStr: _visit_fstring,
}


def _resolve_outer(tree: Tree) -> None:
    """Move what a function binds after ``global`` or ``nonlocal`` to the scope that it means."""
    for scope in {*tree.scopes.values()}:
        for name, is_global in scope.outer.items():
            bindings = scope.names.pop(name, [])
            home = scope.module() if is_global else scope.parent.find(name) if scope.parent else None
            if bindings and home is not None:
                home.names.setdefault(name, []).extend(bindings)
