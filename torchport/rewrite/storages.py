"""Storages, whose ``to`` takes no device by its place: what map_location is called with, and ``x.storage()``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.parameters import last_name
from torchport.lazy import pattern
from torchport.rewrite.context import Context
from torchport.rewrite.own_objects import bindings

STORAGE = pattern(r"^torch\.([\w.]+\.)?(\w*Storage|_StorageBase)$")
GIVES = ("storage", "untyped_storage", "typed_storage", "_typed_storage")
"""Methods of a tensor."""
LOADED = "here it moves a storage while a file is loaded; give map_location a device instead"
MOVED = "it moves a storage, whose `to` is not that of a tensor; move the tensor"


def why_storage(context: Context, node: ast.expr) -> str:
    """Why a move of ``node`` stays, if it is a storage: by its annotation, its place, or how it is made."""
    source = context.text.bytes
    if b"torage" not in source and b"load" not in source:
        return ""
    if not isinstance(node, ast.Name):
        return MOVED if _gives_storage(context, node) else ""
    for binding in bindings(context, node, node.id):
        if binding.kind == "param":
            if _is_parameter(context, node.id, binding.node):
                return LOADED
        elif isinstance(made := context.tree.parents.get(binding.node), ast.Assign) and _gives_storage(
            context, made.value
        ):
            return MOVED
    return ""


def _gives_storage(context: Context, value: ast.expr) -> bool:
    """``x.untyped_storage()`` and ``torch.FloatStorage(3)``."""
    if not isinstance(value, ast.Call):
        return False
    return (isinstance(value.func, ast.Attribute) and value.func.attr in GIVES) or _names_type(context, value.func)


def _names_type(context: Context, note: ast.expr) -> bool:
    """``torch.Storage``, also in a text or as one of several; a ``RolloutStorage`` is the program's own."""
    for part in ast.walk(note):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            if STORAGE.search(part.value):
                return True
        elif isinstance(part, ast.Name | ast.Attribute):
            found = context.qualify(part)
            if found is not None and STORAGE.search(found.name):
                return True
    return False


def _is_parameter(context: Context, name: str, parameter: ast.AST) -> bool:
    """Whether a parameter is annotated as a storage, or is the first of two of a function for map_location."""
    note = getattr(parameter, "annotation", None)
    if note is not None:
        return _names_type(context, note)
    function = context.tree.function(parameter)
    arguments = getattr(function, "args", None)
    if function is None or arguments is None:
        return False
    given = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    own = isinstance(context.tree.parents[function], ast.ClassDef) and given[:1] in (["self"], ["cls"])
    if len(given) - own != 2 or given[own] != name:
        return False
    return name == "storage" or not {*_names_of(context, function)}.isdisjoint(context.once(_places))


def _names_of(context: Context, function: ast.AST) -> Iterator[str]:
    """Under which names a function is handed on: its own, a variable's, that of the function which makes it."""
    if isinstance(function, ast.Lambda):
        made = context.tree.parents[function]
        if isinstance(made, ast.Assign):
            yield from (last_name(target) for target in made.targets)
    else:
        yield getattr(function, "name", "")
    maker = context.tree.function(function)
    if isinstance(maker, ast.FunctionDef):
        yield f"{maker.name}()"


def _places(context: Context) -> set[str]:
    """Functions that the file gives as map_location, and, with brackets, those whose result it gives."""
    calls = context.original.calls  # a later pass no longer sees what another rule has replaced
    given = [k.value for call in calls for k in call.keywords if k.arg == "map_location"]
    given += [call.args[1] for call in calls if len(call.args) > 1 and last_name(call.func) == "load"]
    found = {f"{last_name(v.func)}()" if isinstance(v, ast.Call) else last_name(v) for v in given}
    return found - {"", "()"}
