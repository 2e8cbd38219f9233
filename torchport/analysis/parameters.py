"""Which parameter of a function, class or lambda of the same file takes an argument."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from torchport.analysis.devices import Key
from torchport.analysis.names import qualify
from torchport.analysis.scopes import Tree

NAMESPACES = frozenset(("SimpleNamespace", "Namespace", "dict", "update", "_replace", "EasyDict"))
"""Calls that keep a keyword argument under its own name."""
Parameters = list[tuple[str, Key]]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def last_name(func: ast.AST) -> str:
    """``f`` of ``f`` and of ``a.b.f``."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


class Signatures:
    """The parameters of all functions, methods and classes of a file, by name."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.functions: dict[str, list[Parameters]] = defaultdict(list)
        self.methods: dict[str, list[Parameters]] = defaultdict(list)
        for definition in tree.definitions:
            method = isinstance(tree.parents[definition], ast.ClassDef)
            (self.methods if method else self.functions)[definition.name].append(_of_function(tree, definition))
        for node in tree.classes:
            self.functions[node.name].append(_of_class(tree, node))
        for name, parameters in _assigned(tree):
            self.functions[name].append(parameters)

    def takers(self, call: ast.Call, argument: ast.expr) -> list[Key]:
        """The parameters that take ``argument``, by its place or by its keyword; empty where none is seen."""
        func, arguments = call.func, call.args
        if not self.may_know(func):
            return []
        if self._is_partial(call):
            func, arguments = call.args[0], call.args[1:]
        keyword = next((k.arg for k in call.keywords if k.value is argument), None)
        found: list[Key] = []
        for parameters in self._known(func):
            if keyword is not None:
                found += [key for parameter, key in parameters if parameter == keyword]
            elif argument in arguments and not any(isinstance(a, ast.Starred) for a in arguments):
                position = arguments.index(argument)
                found += [key for _, key in parameters[position : position + 1]]
        if not found and keyword is not None and last_name(func) in NAMESPACES:
            return [("attribute", keyword)]
        return found

    def may_know(self, func: ast.expr) -> bool:
        """Whether the file has a function of this name; most calls are of those of other files."""
        if func.__class__ is ast.Attribute:
            name = func.attr
            return name in self.methods or name in NAMESPACES or name == "partial"
        if func.__class__ is ast.Name:
            name = func.id
            return name in self.functions or name in NAMESPACES or name == "partial"
        return func.__class__ is ast.Lambda

    def _is_partial(self, call: ast.Call) -> bool:
        found = qualify(self.tree, call.func) if last_name(call.func) == "partial" else None
        return found is not None and found.name == "functools.partial" and bool(call.args)

    def _known(self, func: ast.expr) -> list[Parameters]:
        """The parameters of everything in the file that ``func`` may stand for."""
        if isinstance(func, ast.Attribute):
            known = self.methods.get(func.attr, [])
            return known if known and qualify(self.tree, func) is None else []
        if isinstance(func, ast.Name):
            return self.functions.get(func.id, [])
        return [_of_function(self.tree, func)] if isinstance(func, ast.Lambda) else []


def _of_function(tree: Tree, node: Function) -> Parameters:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    decorators = [] if isinstance(node, ast.Lambda) else [last_name(d) for d in node.decorator_list]
    if isinstance(tree.parents[node], ast.ClassDef) and "staticmethod" not in decorators:
        names = names[1:]
    scope = id(tree.scopes[node])
    return [(name, (scope, name)) for name in (*names, *(a.arg for a in arguments.kwonlyargs))]


def _of_class(tree: Tree, node: ast.ClassDef) -> Parameters:
    """Those of ``__init__``; of a data class or a named tuple, its fields."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _of_function(tree, statement)
    fields = [s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    return [(name, ("attribute", name)) for name in fields]


def _assigned(tree: Tree) -> Iterator[tuple[str, Parameters]]:
    """``f = lambda device: ...`` and ``Point = namedtuple("Point", "x y")``."""
    for assign in tree.every(ast.Assign):
        target, value = assign.targets[0], assign.value
        if not isinstance(value, (ast.Lambda, ast.Call)) or not isinstance(target, ast.Name):
            continue
        if isinstance(value, ast.Lambda):
            yield target.id, _of_function(tree, value)
        elif isinstance(value, ast.Call) and last_name(value.func) == "namedtuple" and len(value.args) > 1:
            texts = [n.value for n in ast.walk(value.args[1]) if isinstance(n, ast.Constant)]
            words = [word for text in texts if isinstance(text, str) for word in text.replace(",", " ").split()]
            yield target.id, [(word, ("attribute", word)) for word in words]
