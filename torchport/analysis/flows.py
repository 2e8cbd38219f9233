"""Which variables, attributes and parameters of a file have the same value, as far as plain code shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchport.analysis.carriers import CONTAINERS, carriers
from torchport.analysis.devices import Key, key_of
from torchport.analysis.parameters import Signatures, last_name
from torchport.analysis.scopes import FUNCTIONS, Scope, Tree, dotted

SAME = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
PLAIN = (ast.Name, ast.Attribute)
OWNERS = frozenset((*FUNCTIONS, ast.Lambda, ast.ClassDef))
"""What has a scope of its own, comprehensions aside."""
ADDS = ("append", "add", "insert", "extend")


def same_values(tree: Tree, signatures: Signatures) -> Iterator[tuple[Key, ...]]:
    """Keys that have one value: of assignments, loops, comparisons, arguments, results and options of click."""
    yield from _assignments(tree)
    yield from _loops(tree)
    for compare in tree.every(ast.Compare):
        if all(isinstance(operator, SAME) for operator in compare.ops):
            scope = scope_around(tree, compare)
            yield _all(tree, [compare.left, *compare.comparators], scope)
    yield from _calls(tree, signatures)
    for node in tree.every(ast.Return):
        function = tree.function(node)
        if isinstance(function, FUNCTIONS) and node.value is not None:
            yield from _result(tree, function, node.value)
    for definition in tree.definitions:
        if any(last_name(d) in ("property", "cached_property") for d in definition.decorator_list):
            yield ("return", definition.name), ("attribute", definition.name)
        yield from _decorated(tree, definition)


def scope_around(tree: Tree, node: ast.AST) -> Scope:
    """The scope in which ``node`` stands: for a function or a class the one around it."""
    parents = tree.parents
    child, parent = node, parents.get(node)
    while parent is not None:
        inner = tree.scopes.get(parent) if parent.__class__ in OWNERS else None
        if inner is not None and child is not getattr(parent, "args", None):
            return inner
        child, parent = parent, parents.get(parent)
    return tree.scope


def positions(tree: Tree, target: ast.expr, scope: Scope) -> list[Key | None]:
    """The keys of the names of a tuple on the left of an assignment, in order."""
    elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [key_of(tree, e.value if isinstance(e, ast.Starred) else e, scope) for e in elements]


def _all(tree: Tree, nodes: Iterable[ast.expr], scope: Scope) -> tuple[Key, ...]:
    return tuple(key for node in nodes for key in carriers(tree, node, scope))


def _assignments(tree: Tree) -> Iterator[tuple[Key, ...]]:
    pairs = [(target, node.value) for node in tree.every(ast.Assign) for target in node.targets]
    pairs += [(node.target, node.value) for node in tree.every(ast.AnnAssign) if node.value is not None]
    for target, value in pairs:
        if value.__class__ is ast.Constant and target.__class__ in PLAIN:
            continue  # a number or a text comes from nowhere else
        yield from _into(tree, target, value, scope_around(tree, target))


def _into(tree: Tree, target: ast.expr, value: ast.expr, scope: Scope) -> Iterator[tuple[Key, ...]]:
    """``target = value``, name by name."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        key = key_of(tree, target, scope)
        if key is not None:
            yield key, *carriers(tree, value, scope)
        if isinstance(value, ast.Call) and last_name(value.func) == "partial" and value.args:
            yield ("return", last_name(target)), ("return", last_name(value.args[0]))
        return
    keys = positions(tree, target, scope)
    if isinstance(value, CONTAINERS) and len(value.elts) == len(keys):
        pairs = zip(keys, value.elts, strict=True)
        yield from ((key, *carriers(tree, part, scope)) for key, part in pairs if key is not None)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        yield from ((key, ("return", f"{value.func.id} {i}")) for i, key in enumerate(keys) if key is not None)
    elif keys and keys[0] is not None:  # kind, *rest = device.split(":")
        yield keys[0], *carriers(tree, value, scope)


def _loops(tree: Tree) -> Iterator[tuple[Key, ...]]:
    loops = [(n.target, n.iter, scope_around(tree, n)) for n in tree.loops if not isinstance(n, ast.While)]
    for part in tree.every(ast.comprehension):
        loops.append((part.target, part.iter, tree.scopes[tree.parents[part]]))
    for target, iterable, scope in loops:
        name = last_name(iterable.func) if isinstance(iterable, ast.Call) else ""
        keys = positions(tree, target, scope)
        if isinstance(iterable, ast.Call) and name in ("zip", "product"):
            pairs = zip(keys, iterable.args, strict=False)
            yield from ((key, *carriers(tree, part, scope)) for key, part in pairs if key is not None)
        elif name == "enumerate" and len(keys) == 2 and keys[1] is not None:
            yield keys[1], *carriers(tree, iterable, scope)
        elif not isinstance(target, ast.Tuple | ast.List) and keys[0] is not None:
            yield keys[0], *carriers(tree, iterable, scope)


def _calls(tree: Tree, signatures: Signatures) -> Iterator[tuple[Key, ...]]:
    enums = {node.name for node in tree.classes if is_enum(node)}
    keep = enums.union(ADDS, ADDED_OPTIONS)
    for call in tree.calls:
        if signatures.may_know(call.func):
            yield from _arguments(tree, call, signatures)
        if (name := last_name(call.func)) in keep:
            yield from _kept(tree, call, name, enums)


def _arguments(tree: Tree, call: ast.Call, signatures: Signatures) -> Iterator[tuple[Key, ...]]:
    """What functions of the file are given."""
    for argument in (*call.args, *(k.value for k in call.keywords if k.arg is not None)):
        if isinstance(argument, ast.Constant):
            continue
        if takers := signatures.takers(call, argument):
            yield (*takers, *carriers(tree, argument, tree.scopes[call]))


def _kept(tree: Tree, call: ast.Call, name: str, enums: set[str]) -> Iterator[tuple[Key, ...]]:
    """What a collection, an option or an enumeration is given."""
    scope = tree.scopes[call]
    if name in ADDS and isinstance(call.func, ast.Attribute) and call.args:
        yield _all(tree, [call.func.value, call.args[-1]], scope)
    elif name in ADDED_OPTIONS:
        for keyword in call.keywords:
            if keyword.arg == "choices":
                yield (*option(call), *carriers(tree, keyword.value, scope))
    elif isinstance(call.func, ast.Name) and name in enums:
        yield (("enum", name), *_all(tree, call.args, scope))


ADDED_OPTIONS = ("add_argument", "option", "Option", "add_option")


def option(call: ast.Call) -> list[Key]:
    """The attribute under which argparse or click hands on an option."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]
    names = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    short = [name for name in names if len(name) == 2 and name.startswith("-")]
    keys: list[Key] = [("attribute", n.lstrip("-").replace("-", "_")) for n in names if n not in short]
    return keys[-1:]


def is_enum(node: ast.AST) -> bool:
    """Whether ``node`` is a class of enumerated members."""
    return isinstance(node, ast.ClassDef) and any("Enum" in (dotted(base) or ast.unparse(base)) for base in node.bases)


def _result(tree: Tree, function: ast.FunctionDef | ast.AsyncFunctionDef, value: ast.expr) -> Iterator[tuple[Key, ...]]:
    scope = tree.scopes[function]
    if isinstance(value, ast.Tuple):
        for i, part in enumerate(value.elts):
            yield ("return", f"{function.name} {i}"), *carriers(tree, part, scope)
    else:
        yield ("return", function.name), *carriers(tree, value, scope)


def _decorated(tree: Tree, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[Key, ...]]:
    """Options of click, and what pytest hands to the parameters of a test."""
    parameters = {argument.arg for argument in definition.args.args}
    inner = id(tree.scopes[definition])
    for decorator in definition.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        for argument in decorator.args:
            text = argument.value if isinstance(argument, ast.Constant) else None
            name = text.lstrip("-").replace("-", "_") if isinstance(text, str) else ""
            if name in parameters:
                values = decorator.args[1:] if last_name(decorator.func) == "parametrize" else []
                yield ("attribute", name), (inner, name), *_all(tree, values, tree.scopes[decorator])
