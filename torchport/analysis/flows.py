"""Which variables, attributes and parameters of a file have the same value, as far as plain assignments show it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.devices import Key, key_of, stripped
from torchport.analysis.scopes import FUNCTIONS, Scope, Tree


def same_values(tree: Tree) -> Iterator[tuple[Key, Key]]:
    """Pairs of keys: ``a = b``, an argument and its parameter, a call and its function's result, an option of click."""
    for node in tree.every(ast.Assign):
        scope = _scope(tree, node)
        value = _value(tree, node.value, scope)
        for target in node.targets:
            key = key_of(tree, target, scope)
            if key is not None and value is not None:
                yield key, value
    for compare in tree.every(ast.Compare):
        if isinstance(compare.ops[0], ast.In | ast.NotIn) and isinstance(compare.comparators[0], ast.Name):
            scope = _scope(tree, compare)
            one, other = key_of(tree, stripped(compare.left)[0], scope), key_of(tree, compare.comparators[0], scope)
            if one is not None and other is not None:
                yield one, other
    functions = {definition.name: definition for definition in tree.definitions}
    for call in tree.calls:
        for keyword in call.keywords:
            if keyword.arg == "choices" and isinstance(keyword.value, ast.Name):
                choices = key_of(tree, keyword.value, tree.scopes[call])
                options = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
                if choices is not None and options:
                    yield ("attribute", options[-1].lstrip("-").replace("-", "_")), choices
        if isinstance(call.func, ast.Name) and (definition := functions.get(call.func.id)) is not None:
            yield from _arguments(tree, call, definition)
    for definition in tree.definitions:
        parameters = {argument.arg for argument in definition.args.args}
        for decorator in definition.decorator_list:
            if isinstance(decorator, ast.Call):
                for argument in decorator.args:
                    name = (
                        str(argument.value).lstrip("-").replace("-", "_") if isinstance(argument, ast.Constant) else ""
                    )
                    if name in parameters:
                        yield ("attribute", name), (id(tree.scopes[definition]), name)


def _scope(tree: Tree, node: ast.AST) -> Scope:
    """The scope of a statement."""
    around = next((n for n in tree.ancestors(node) if isinstance(n, (*FUNCTIONS, ast.ClassDef))), None)
    return tree.scopes[around] if around is not None else tree.scope


def _value(tree: Tree, node: ast.expr, scope: Scope) -> Key | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "getattr":
        return ("return", node.func.id)
    if isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return key_of(tree, node, scope)
    return None


def _arguments(
    tree: Tree, call: ast.Call, definition: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[Key, Key]]:
    scope = tree.scopes[call]
    inner = id(tree.scopes[definition])
    pairs = [(p.arg, a) for p, a in zip(definition.args.args, call.args, strict=False)]
    pairs += [(k.arg, k.value) for k in call.keywords if k.arg is not None]
    for name, node in pairs:
        if isinstance(node, ast.Name | ast.Attribute) and (key := key_of(tree, node, scope)) is not None:
            yield (inner, name), key
