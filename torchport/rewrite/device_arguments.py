"""Arguments of calls that are devices, whatever they are written as."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.rewrite.context import Context


def device_arguments(context: Context) -> dict[ast.Call, list[tuple[ast.expr, bool]]]:
    """Arguments that are devices, and whether the function is one of PyTorch's, by their calls."""
    found = {}
    for call in context.tree.calls:
        func = call.func
        moves = func.__class__ is ast.Attribute and func.attr == "to" and call.args
        if moves or (call.keywords and "device" in [keyword.arg for keyword in call.keywords]):
            found[call] = [*_of_call(context, call)]
    return found


def _of_call(context: Context, call: ast.Call) -> Iterator[tuple[ast.expr, bool]]:
    func = call.func
    found = context.qualify(func) if isinstance(func, ast.Name | ast.Attribute) else None
    if found is not None and (found.name.startswith("torchport.") or _memory(found.name)):
        return
    if found is not None and found.name == "torch.Generator":
        return
    method = isinstance(func, ast.Attribute) and found is None and (func.attr == "to" or func.attr.startswith("new_"))
    if method and isinstance(func, ast.Attribute) and func.attr == "to" and call.args:
        yield call.args[0], True
    for keyword in call.keywords:
        if keyword.arg == "device":
            yield keyword.value, method or (found is not None and found.name.startswith("torch."))


def _memory(name: str) -> bool:
    """Functions of torch.cuda take a number as what it is."""
    return name.startswith(("torch.cuda.", "torch.accelerator."))
