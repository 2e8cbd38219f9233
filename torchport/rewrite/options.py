"""Options of argparse and click that choose a device: what a user types is no text of the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.flows import option
from torchport.analysis.literals import device_text
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of

if TYPE_CHECKING:
    import libcst as cst

TYPED = 'what a user types for this option is not in the source: where scripts give "cuda", they have to give "{}" now'
ADDS = ("add_argument", "option")


def options(rule: Rule, context: Context) -> Iterator[Finding]:
    """An option with a device as its default or among its choices: what a user types is read as a device as well."""
    if context.spell.portable and f"{context.shim}.".encode() not in context.text.bytes:
        return
    for call in context.once(_added):
        kind = _given(call, "type")
        if not context.spell.portable:
            if _names_target(context, call):
                yield context.leave(rule, call, TYPED.format(context.target))
        elif not _is_plain(call) or (place := _place(context, call)) is None:
            continue
        elif kind is None:
            yield _typed(rule, context, call, place)
        else:
            yield context.rewrite(rule, kind, New(kind, "shim.device_string"))


def converted(context: Context) -> set[str]:
    """Names of settings that their option converts, or will where its text has moved: nobody else has to."""
    if not context.spell.portable:
        return set()
    return {key[1] for call in context.once(_added) if _is_converted(context, call) for key in option(call)}


def _is_converted(context: Context, call: ast.Call) -> bool:
    kind = _given(call, "type")
    if kind is not None and context.named(kind, "torchport.shim.device_string"):
        return True
    return _is_plain(call) and (_place(context, call) is not None or any(map(device_text, _texts(call))))


def _added(context: Context) -> list[ast.Call]:
    if context.tree.called().keys().isdisjoint(ADDS):
        return []
    return [call for call in context.tree.calls if isinstance(call.func, ast.Attribute) and call.func.attr in ADDS]


def _given(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is_plain(call: ast.Call) -> bool:
    """Whether what is typed is kept as the text that it is."""
    kind = _given(call, "type")
    return (kind is None or (isinstance(kind, ast.Name) and kind.id == "str")) and _given(call, "action") is None


def _texts(call: ast.Call) -> list[ast.expr]:
    """What stands in the default and among the choices."""
    places = [node for node in (_given(call, "default"), _given(call, "choices")) if node is not None]
    return [node for place in places for node in ast.walk(place) if isinstance(node, ast.expr)]


def _names_target(context: Context, call: ast.Call) -> bool:
    """Whether the option has a device that this run has written, in a program that spoke of CUDA."""
    ours = (context.target, f"{context.target}:0")
    named = any(isinstance(node, ast.Constant) and node.value in ours for node in _texts(call))
    return named and any(device_text(node) is not None for node in context.original.strings)


def _place(context: Context, call: ast.Call) -> str | None:
    """The keyword behind which the type goes: the one whose value speaks of the shim's device."""
    default, choices = _given(call, "default"), _given(call, "choices")
    ours = (f"{context.shim}.device(", f"str({context.shim}.")
    if isinstance(default, ast.Call | ast.Attribute) and context.source(default).startswith(ours):
        return "default"
    accelerator = f"{context.shim}.accelerator_type()"
    return "choices" if isinstance(choices, ast.List | ast.Tuple) and accelerator in context.source(choices) else None


def _typed(rule: Rule, context: Context, call: ast.Call, behind: str) -> Finding:
    source = context.source(call)
    new = argument(f"{context.shim}.device_string", "type")

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        place = next(i for i, arg in enumerate(old) if keyword_of(arg) == behind)
        return [*old[: place + 1], new, *old[place + 1 :]]

    return context.change(rule, call, lambda: change_call(source, None, arguments))
