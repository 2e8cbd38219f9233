"""Scopes, bindings and parents of a module: one walk over the syntax tree, no copies, no LibCST.

What a name means is decided by every binding of it in its scope, not by the order of lines: a name that is an import on
one path and something else on another is not certain.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar, cast

Kind = Literal["module", "function", "class", "comprehension"]
N = TypeVar("N", bound=ast.AST)
SPOKEN = ("cuda", "CUDA", "nccl", "NCCL_", "CUBLAS", "out of memory", "nvidia-smi")
COLLECTED = (
    ast.Dict, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Compare, ast.If, ast.IfExp, ast.Return, ast.comprehension,
    ast.Assert, ast.Subscript, ast.Yield, ast.YieldFrom,
)  # fmt: skip
_POSITION = attrgetter("lineno", "col_offset")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTION_KINDS: frozenset[type[ast.AST]] = frozenset((*FUNCTIONS, ast.Lambda))
_CLASS_KINDS: frozenset[type[ast.AST]] = frozenset((ast.ClassDef,))
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Binding(NamedTuple):
    """One way in which a name gets its meaning. ``target`` is the qualified name of an import, else empty."""

    kind: Literal["import", "assign", "none", "param", "def", "class", "other"]
    node: ast.AST
    target: str = ""


class Scope:
    """A scope of Python: module, function (also lambda), class or comprehension."""

    __slots__ = ("kind", "names", "node", "outer", "parent", "stars")

    def __init__(self, kind: Kind, node: ast.AST, parent: Scope | None) -> None:
        self.kind, self.node, self.parent = kind, node, parent
        self.names: dict[str, list[Binding]] = {}
        self.stars: list[tuple[str, ast.ImportFrom]] = []
        self.outer: dict[str, bool] = {}
        """Names declared global (True) or nonlocal (False)."""

    def find(self, name: str) -> Scope | None:
        """The scope that binds ``name`` as seen from here, or None for a builtin, a star import or nothing."""
        scope: Scope | None = self
        while scope is not None:
            if scope.names.get(name) and (scope is self or scope.kind != "class"):
                return scope
            scope = scope.parent
        return None

    def module(self) -> Scope:
        """The scope of the whole file."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Tree:
    """A parsed module with its scopes, its parents, and the nodes that rules look at, each in order of the source."""

    def __init__(self, module: ast.Module, scope: Scope) -> None:
        self.module, self.scope = module, scope
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        """The scope in which each name, attribute chain, call, constant, loop or import stands."""
        self.names: list[ast.Name | ast.Attribute] = []
        """Outermost dotted chains that start at a name, and names alone."""
        self.calls: list[ast.Call] = []
        self.attributes: list[ast.Attribute] = []
        """Attributes of anything that is not a plain dotted chain, ``f(x).cuda``, and all chains of two or more."""
        self.strings: list[ast.Constant | ast.JoinedStr] = []
        """String constants in which one of ``SPOKEN`` stands, also in f-strings."""
        self.loops: list[ast.For | ast.While | ast.AsyncFor] = []
        self.fstrings: list[ast.JoinedStr] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.imported: set[str] = set()
        """Names that an import anywhere in the file binds: no other name can have a qualified name."""
        self.definitions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.classes: list[ast.ClassDef] = []
        self.kinds: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in COLLECTED}
        """All nodes of the kinds in ``COLLECTED``."""
        self.qualified: dict[ast.AST, object] = {}
        """What :func:`torchport.analysis.names.qualify` has found out, by node."""
        self._chains: dict[str, list[ast.Name | ast.Attribute]] = {}
        self._reads: dict[str, list[ast.Name | ast.Attribute]] = {}
        self._calls: dict[str, list[ast.Call]] = {}

    def chains(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        """Names and dotted chains by their first part."""
        if not self._chains:
            for node in self.names:
                base: ast.expr = node
                while base.__class__ is ast.Attribute:
                    base = base.value
                self._chains.setdefault(base.id, []).append(node)  # type: ignore[attr-defined]
        return self._chains

    def reads(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Where a name or a dotted chain is read, as long as it is written."""
        if not self._reads:
            for node in self.names:
                if node.ctx.__class__ is ast.Load:
                    self._reads.setdefault(dotted(node), []).append(node)
        return self._reads.get(name, [])

    def calls_of(self, name: str) -> list[ast.Call]:
        """Calls of what ends in ``name``, and calls that are handed it."""
        if not self._calls:
            for call in self.calls:
                func = call.func
                last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
                for key in {last, *(a.id for a in call.args if isinstance(a, ast.Name))}:
                    self._calls.setdefault(key, []).append(call)
        return self._calls.get(name, [])

    def every(self, kind: type[N]) -> list[N]:
        """All nodes of one of the ``COLLECTED`` kinds."""
        return cast("list[N]", self.kinds[kind])

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """From the parent outwards to the module."""
        found = []
        while (parent := self.parents.get(node)) is not None:
            found.append(parent)
            node = parent
        return found

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds ``node``."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def function(self, node: ast.AST) -> ast.AST | None:
        """The innermost function or lambda around ``node``, or None at module or class level."""
        return self._outwards(node, _FUNCTION_KINDS)

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around ``node``."""
        return cast("ast.ClassDef | None", self._outwards(node, _CLASS_KINDS))

    def _outwards(self, node: ast.AST, kinds: frozenset[type[ast.AST]]) -> ast.AST | None:
        parents = self.parents
        found = parents.get(node)
        while found is not None and found.__class__ not in kinds:
            found = parents.get(found)
        return found


def build(module: ast.Module) -> Tree:
    """Walk ``module`` once. An explicit stack, since deep trees would exceed Python's recursion limit."""
    tree = Tree(module, Scope("module", module, None))
    stack: list[tuple[ast.AST, Scope]] = [(module, tree.scope)]
    parents, kinds, scopes, names = tree.parents, tree.kinds, tree.scopes, tree.names
    while stack:
        node, scope = stack.pop()
        kind = node.__class__
        if kind in _SPECIAL:
            for child, inner in _SPECIAL[kind](tree, node, scope):
                parents.setdefault(child, node)
                stack.append((child, inner))
            continue
        if kind is ast.Attribute:
            _visit_attribute(tree, node, scope)  # type: ignore[arg-type]
        elif kind is ast.Call:
            tree.calls.append(node)  # type: ignore[arg-type]
            scopes[node] = scope
        elif kind in kinds:
            kinds[kind].append(node)
        # As in _children, written out, names and constants without a turn of their own: this is where the time goes.
        for name in _FIELDS[kind]:
            value = getattr(node, name)
            for child in value if value.__class__ is list else (value,):
                if child is None:
                    continue
                parents[child] = node
                inside = child.__class__
                if inside is ast.Name:
                    if child.ctx.__class__ is not ast.Load:
                        _visit_stored(tree, child, scope)
                    elif kind is not ast.Attribute:
                        names.append(child)
                        scopes[child] = scope
                elif inside is not ast.Constant:
                    stack.append((child, scope))
                elif child.value.__class__ is str:
                    _visit_text(tree, child, scope)
    _resolve_outer(tree)
    for nodes in (tree.names, tree.calls, tree.attributes, tree.strings, tree.loops, tree.imports):
        nodes.sort(key=_POSITION)
    return tree


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as a text; empty where it does not start at a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _bind(scope: Scope, name: str, binding: Binding) -> None:
    scope.names.setdefault(name, []).append(binding)


def _children(node: ast.AST) -> list[ast.AST]:
    """The children of a node; contexts and operators, which hold nothing, are left out."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name)
        if value.__class__ is list:
            found += [child for child in value if child is not None]
        elif value is not None:
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """As ``ast.walk``, in a fraction of its time; contexts and operators are left out."""
    found = [node]
    for each in found:
        found += _children(each)
    return found


_PLAIN = frozenset(
    [
        "arg",
        "asname",
        "attr",
        "conversion",
        "ctx",
        "id",
        "is_async",
        "kind",
        "kwd_attrs",
        "level",
        "lineno",
        "module",
        "name",
        "names",
        "op",
        "ops",
        "rest",
        "simple",
        "str",
        "tag",
        "type_comment",
        "type_ignores",
    ]
)
"""Fields that hold texts, numbers, contexts and operators."""


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Names of the fields of a class of nodes that hold other nodes; filled as classes are met."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
        return self[kind]


_FIELDS = _Fields({ast.MatchSingleton: (), ast.Constant: ()})


def _scoped(node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
    return [(child, scope) for child in _children(node)]


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


def _visit_attribute(tree: Tree, node: ast.Attribute, scope: Scope) -> None:
    tree.attributes.append(node)
    tree.scopes[node] = scope
    if tree.parents[node].__class__ is ast.Attribute:
        return
    base = node.value
    while isinstance(base, ast.Attribute):
        base = base.value
    if base.__class__ is ast.Name:
        tree.names.append(node)


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
