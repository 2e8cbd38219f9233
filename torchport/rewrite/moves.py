"""Methods that move to CUDA: ``.cuda()`` on tensors and modules, type strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.literals import device_text
from torchport.analysis.parameters import last_name
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.cst import argument, change_method, source_of, with_keyword
from torchport.rewrite.own_objects import own_class
from torchport.rewrite.precision import starred
from torchport.rewrite.spread import SPREAD, owner, spread_over_gpus
from torchport.rewrite.storages import LOADED, why_storage

if TYPE_CHECKING:
    import libcst as cst

FLAGS = frozenset(
    ("args", "arg", "opt", "opts", "options", "cfg", "config", "conf", "hparams", "params", "flags", "FLAGS", "params")
)


def cuda_method(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.cuda(...)`` becomes ``x.to(shim.device(...), ...)``."""
    spread = spread_over_gpus(context)
    for node in context.tree.attributes:
        if node.attr != "cuda" or not isinstance(node.ctx, ast.Load) or context.qualify(node) is not None:
            continue
        parent = context.tree.parents[node]
        if isinstance(parent, ast.Attribute):
            continue
        if not (isinstance(parent, ast.Call) and parent.func is node):
            if not _is_flag(context, node, parent):
                yield context.leave(
                    rule,
                    node,
                    "the method is handed on without a call; write `lambda t: t.to(shim.device())` for tensors",
                )
            continue
        if _own_class(context, node):
            continue
        if reason := _why_it_stays(context, parent, node, spread):
            yield context.leave(rule, parent, reason)
        else:
            yield _moved(rule, context, parent)


def _why_it_stays(context: Context, call: ast.Call, method: ast.Attribute, spread: set[ast.AST]) -> str:
    if reason := _not_ours(context, method):
        return reason
    if starred(call):
        return "its arguments are handed on with a star, so that the device among them is not seen"
    return SPREAD if call.args and owner(context, method) in spread else ""


def becomes_to(context: Context, call: ast.Call) -> bool:
    """Whether ``x.cuda(number)`` becomes ``x.to(...)``; where it stays, its argument has to stay a number."""
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != "cuda" or context.qualify(method) is not None:
        return False
    return not _own_class(context, method) and not _why_it_stays(context, call, method, spread_over_gpus(context))


def _moved(rule: Rule, context: Context, call: ast.Call) -> Finding:
    source = context.source(call)
    return context.change(rule, call, lambda: change_method(source, "to", lambda old: _to_arguments(old, context)))


def _is_flag(context: Context, node: ast.Attribute, parent: ast.AST) -> bool:
    """``args.cuda`` and ``self.cuda`` as a truth value are not the method."""
    base = node.value
    name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
    if "cuda" in context.stored or name in FLAGS:
        return True
    return (
        isinstance(parent, ast.If | ast.While | ast.BoolOp | ast.Assert)
        or (isinstance(parent, ast.IfExp) and parent.test is node)
        or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))
    )


def _own_class(context: Context, node: ast.Attribute) -> bool:
    """``self.cuda()`` in a class that inherits from nothing and defines the method."""
    around = next((n for n in context.tree.ancestors(node) if isinstance(n, ast.ClassDef)), None)
    called_on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    return (
        called_on_self
        and around is not None
        and not around.bases
        and any(isinstance(s, ast.FunctionDef) and s.name == "cuda" for s in around.body)
    )


def _not_ours(context: Context, node: ast.Attribute) -> str:
    receiver = node.value
    if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super":
        return "a `cuda` method that calls the one it overrides; give the class a `to` method as well"
    if isinstance(receiver, ast.Name) and receiver.id == "self":
        around = next((n for n in context.tree.ancestors(node) if isinstance(n, ast.ClassDef)), None)
        if around is not None and any(isinstance(s, ast.FunctionDef) and s.name == "cuda" for s in around.body):
            return "it calls the `cuda` method that this class defines"
    outside = context.tree.ancestors(node)
    lambdas = [n for n in outside if isinstance(n, ast.Lambda)]
    loads = [
        n for n in outside if isinstance(n, ast.Call) and context.named(n.func, "torch.load", "torchport.shim.load")
    ]
    if any(isinstance(n, ast.keyword) and n.arg == "map_location" for n in outside) or (lambdas and loads):
        return LOADED
    if reason := why_storage(context, receiver):
        return reason
    if own := own_class(context, node):
        return f"class {own} of this project has a `cuda` method and no `to` method, and this may be one"
    return ""


def _to_arguments(old: list[cst.Arg], context: Context) -> list[cst.Arg]:
    """``(device, non_blocking, memory_format)`` of ``.cuda`` as arguments of ``.to``."""
    names = ("device", "non_blocking", "memory_format")
    given = {arg.keyword.value if arg.keyword else names[position]: arg for position, arg in enumerate(old)}
    device = given.pop("device", None)
    place = _device_source(source_of(device), context) if device is not None else context.spell.place()
    rest = [arg if arg.keyword else with_keyword(arg, name) for name, arg in given.items()]
    return [argument(place), *rest]


def _is_current_call(node: ast.AST) -> bool:
    """``torch.cuda.current_device()``, by its name: the device without a number is the same one."""
    return isinstance(node, ast.Call) and last_name(node.func) == "current_device" and not node.args


def _device_source(source: str, context: Context) -> str:
    node = ast.parse(f"({source})", mode="eval").body
    text = device_text(node)
    if text is not None:
        return context.spell.place(text.index or "", source)
    if (isinstance(node, ast.Constant) and node.value is None) or _is_current_call(node):
        return context.spell.place()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "device":
        return source
    return context.spell.place(source)
