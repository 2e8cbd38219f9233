"""What the names, classes and functions of one file are used for: found once, when something asks for it."""

from __future__ import annotations

import ast
from functools import cached_property

from torchport.analysis.names import Qualified, chain, qualify
from torchport.analysis.reaching import function_scope, scope_of
from torchport.analysis.scopes import FUNCTIONS, Scope, Tree

Function = ast.FunctionDef | ast.AsyncFunctionDef


ARRAY_LIBRARIES = frozenset(("numpy", "pandas", "cv2", "PIL", "jax", "cupy", "scipy", "sklearn", "tensorflow"))
DEFINED = frozenset(("import", "def", "class"))
REGISTERS = ("register_buffer", "register_parameter", "add_module", "register_module")


class Index:
    """The uses of one file."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._uses: dict[str, dict[Scope | None, list[ast.Name | ast.Attribute]]] = {}
        """Names and chains by their first part and the scope that binds it."""

    @cached_property
    def has_arrays(self) -> bool:
        """Whether the file imports a library whose arrays are used as tensors are."""
        names = [
            name.partition(".")[0]
            for node in self.tree.imports
            for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        ]
        return not ARRAY_LIBRARIES.isdisjoint(names)

    def qualify(self, node: ast.expr) -> Qualified | None:
        """The qualified name of a chain."""
        return qualify(self.tree, node)

    def name_of(self, node: ast.expr) -> str:
        """The qualified name, or nothing."""
        found = qualify(self.tree, node)
        return found.name if found is not None else ""

    def uses(self, home: Scope | None, name: str) -> list[ast.Name | ast.Attribute]:
        """Where a name of a scope is read, alone or as the start of a chain."""
        by_home = self._uses.get(name)
        if by_home is None:
            by_home = self._uses[name] = {}
            for node in self.tree.chains().get(name, ()):
                by_home.setdefault(scope_of(self.tree, node).find(name), []).append(node)
        return by_home.get(home, [])

    @cached_property
    def callers(self) -> dict[ast.AST, list[ast.Call]]:
        """The calls in this file of each of its functions, and those that are handed one."""
        found: dict[ast.AST, list[ast.Call]] = {}
        for call, function in self.runs.items():
            found.setdefault(function, []).append(call)
        return found

    @cached_property
    def runs(self) -> dict[ast.Call, Function]:
        """The one function or method of the file that a call runs, where there is one."""
        called = self.tree.called()
        names = dict.fromkeys(definition.name for definition in self.tree.definitions)
        every = ((call, own_function(self.tree, call)) for name in names for call in called.get(name, ()))
        return {call: function for call, function in every if function is not None}

    def is_defined(self, node: ast.expr) -> bool:
        """Whether ``node`` is what is imported, or functions and classes of the file alone: for certain no tensor."""
        if node.__class__ is not ast.Name:
            return node.__class__ is ast.Attribute and qualify(self.tree, node) is not None
        home = scope_of(self.tree, node).find(node.id)
        return home is not None and all(binding.kind in DEFINED for binding in home.names[node.id])

    def class_of(self, node: ast.expr) -> ast.ClassDef | None:
        """The class in whose method ``node`` is ``self``."""
        return self.tree.owner(node) if isinstance(node, ast.Name) and node.id == "self" else None

    @cached_property
    def own_calls(self) -> dict[ast.AST, list[ast.Call]]:
        """The calls of each function that do not stand in a function or class inside it."""
        found: dict[ast.AST, list[ast.Call]] = {}
        for call in self.tree.calls:
            found.setdefault(function_scope(self.tree.scopes[call]).node, []).append(call)
        return found

    @cached_property
    def assignments(self) -> dict[ast.AST | None, list[ast.Assign]]:
        """The assignments of each function, in order of the source."""
        found: dict[ast.AST | None, list[ast.Assign]] = {}
        for node in sorted(self.tree.every(ast.Assign), key=lambda n: n.lineno):
            found.setdefault(self.tree.function(node), []).append(node)
        return found

    @cached_property
    def generators(self) -> set[ast.AST | None]:
        """The functions that yield."""
        return {self.tree.function(n) for n in (*self.tree.every(ast.Yield), *self.tree.every(ast.YieldFrom))}

    @cached_property
    def results(self) -> dict[ast.AST | None, list[ast.expr]]:
        """What each function of the file returns."""
        found: dict[ast.AST | None, list[ast.expr]] = {}
        for node in self.tree.every(ast.Return):
            if node.value is not None:
                found.setdefault(self.tree.function(node), []).append(node.value)
        return found

    @cached_property
    def assigned(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        """What each class assigns to its attributes, buffers and parameters included."""
        found: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        for node in self.tree.attributes:
            if node.ctx.__class__ is ast.Store and (owner := self.class_of(node.value)) is not None:
                parent = self.tree.parents[node]
                if isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is not None:
                    found.setdefault((owner, node.attr), []).append(parent.value)
        called = self.tree.called()
        for call in (call for name in REGISTERS for call in called.get(name, ())):
            if (
                isinstance(call.func, ast.Attribute)
                and call.args
                and isinstance(call.args[0], ast.Constant)
                and (owner := self.class_of(call.func.value)) is not None
            ):
                found.setdefault((owner, str(call.args[0].value)), []).append(call)
        return found

    @cached_property
    def modules(self) -> dict[ast.ClassDef, str]:
        """Classes of the file that are modules of PyTorch, by their own bases or those of their bases."""
        found: dict[ast.ClassDef, str] = {}
        for node in sorted(self.tree.classes, key=lambda c: c.lineno):
            for base in node.bases:
                name = self.name_of(base) or ".".join(chain(base))
                last = name.rpartition(".")[2]
                if name.startswith("torch.nn.") or last in ("Module", "LightningModule", "PreTrainedModel"):
                    found[node] = name
                elif last in ("Function", "object", "Protocol", "ABC"):
                    continue
                elif (
                    any(last == known.name for known in found)
                    or last.endswith(("Module", "Model", "Layer", "Block", "Net", "Loss", "Head", "Backbone"))
                    or method_of(node, "forward") is not None
                ):
                    found[node] = last
        return found


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """The keyword argument of that name."""
    return next((k.value for k in node.keywords if k.arg == name), None)


def method_of(owner: ast.ClassDef, name: str) -> Function | None:
    """The method of that name that the class itself defines."""
    return next((n for n in owner.body if isinstance(n, FUNCTIONS) and n.name == name), None)


def own_function(tree: Tree, node: ast.Call) -> Function | None:
    """The one function or method of the file that a call runs."""
    parts_of = chain(node.func)
    if len(parts_of) == 1:
        home = scope_of(tree, node).find(parts_of[0])
        bindings = home.names[parts_of[0]] if home is not None else []
        if len(bindings) == 1 and isinstance(bindings[0].node, FUNCTIONS):
            return bindings[0].node
    elif len(parts_of) == 2 and parts_of[0] in ("self", "cls"):
        owner = tree.owner(node)
        return method_of(owner, parts_of[1]) if owner is not None else None
    return None


def default_of(arguments: ast.arguments, name: str) -> ast.expr | None:
    """The default of a parameter."""
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        if argument.arg == name:
            return default
    return next(
        (
            d
            for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if a.arg == name and d is not None
        ),
        None,
    )


def argument_of(function: Function, site: ast.Call, name: str) -> ast.expr | None:
    """The expression that a call gives to a parameter."""
    positional = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if positional[:1] in (["self"], ["cls"]) and isinstance(site.func, ast.Attribute):
        positional = positional[1:]
    if any(isinstance(a, ast.Starred) for a in site.args):
        return None
    if name in positional and positional.index(name) < len(site.args):
        return site.args[positional.index(name)]
    return keyword(site, name)
