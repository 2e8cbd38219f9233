"""Scopes, bindings and parents of a module, as :func:`torchport.analysis.build.build` finds them.

What a name means is decided by every binding of it in its scope, not by the order of lines: a name that is an import on
one path and something else on another is not certain.
"""

from __future__ import annotations

import ast
from typing import Any, Literal, TypeVar, cast

from torchport.lazy import NamedTuple

Kind = Literal["module", "function", "class", "comprehension"]
N = TypeVar("N", bound=ast.AST)
COLLECTED = (
    ast.Dict, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Compare, ast.If, ast.IfExp, ast.Return, ast.comprehension,
    ast.Assert, ast.Subscript, ast.Yield, ast.YieldFrom,
)  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTION_KINDS: frozenset[type[ast.AST]] = frozenset((*FUNCTIONS, ast.Lambda))
_CLASS_KINDS: frozenset[type[ast.AST]] = frozenset((ast.ClassDef,))


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
        if self.names.get(name):
            return self
        scope = self.parent
        while scope is not None:
            if scope.names.get(name) and scope.kind != "class":
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
        """String constants in which one of ``build.SPOKEN`` stands, also in f-strings."""
        self.loops: list[ast.For | ast.While | ast.AsyncFor] = []
        self.fstrings: list[ast.JoinedStr] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.imported: set[str] = set()
        """Names that an import anywhere in the file binds: no other name can have a qualified name."""
        self.definitions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.classes: list[ast.ClassDef] = []
        self.kinds: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in COLLECTED}
        """All nodes of the kinds in ``COLLECTED``."""
        self.qualified: dict[ast.AST, Any] = {}
        """What :func:`torchport.analysis.names.qualify` has found out, by node."""
        self._chains: dict[str, list[ast.Name | ast.Attribute]] = {}
        self._reads: dict[str, dict[str, list[ast.Name | ast.Attribute]]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._called: dict[str, list[ast.Call]] = {}

    def chains(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        """Names and dotted chains by their first part."""
        if not self._chains:
            found, attribute = self._chains, ast.Attribute
            for node in self.names:
                base: Any = node
                while base.__class__ is attribute:
                    base = base.value
                name = base.id
                if name in found:
                    found[name].append(node)
                else:
                    found[name] = [node]
        return self._chains

    def reads(self, name: str) -> list[ast.Name | ast.Attribute]:
        """Where a name or a dotted chain is read, as long as it is written."""
        base = name.partition(".")[0]
        if base not in self._reads:
            found = self._reads[base] = {}
            for node in self.chains().get(base, ()):
                if node.ctx.__class__ is ast.Load:
                    found.setdefault(dotted(node), []).append(node)
        return self._reads[base].get(name, [])

    def called(self) -> dict[str, list[ast.Call]]:
        """Calls by the last part of what is called; under an empty name what is neither a name nor an attribute."""
        if not self._called:
            found, attribute, name = self._called, ast.Attribute, ast.Name
            for call in self.calls:
                func: Any = call.func
                kind = func.__class__
                last = func.attr if kind is attribute else func.id if kind is name else ""
                if last in found:
                    found[last].append(call)
                else:
                    found[last] = [call]
        return self._called

    def calls_of(self, name: str) -> list[ast.Call]:
        """Calls of what ends in ``name``, and calls that are handed it."""
        if not self._calls:
            for call in self.calls:
                func = call.func
                last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
                self._calls.setdefault(last, []).append(call)
                for argument in call.args:
                    known = self._calls.setdefault(argument.id, []) if isinstance(argument, ast.Name) else [call]
                    if not known or known[-1] is not call:
                        known.append(call)
        return self._calls.get(name, [])

    def every(self, kind: type[N]) -> list[N]:
        """All nodes of one of the ``COLLECTED`` kinds."""
        return cast("list[N]", self.kinds[kind])

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """From the parent outwards to the module."""
        parents = self.parents
        found: list[ast.AST] = []
        while (parent := parents.get(node)) is not None:
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


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as a text; empty where it does not start at a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def children(node: ast.AST) -> list[ast.AST]:
    """The children of a node; contexts and operators, which hold nothing, are left out."""
    found: list[ast.AST] = []
    for name in FIELDS[node.__class__]:
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
        found += children(each)
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


FIELDS = _Fields({ast.MatchSingleton: (), ast.Constant: ()})
