"""``torch.cuda.current_device()`` that stands where a device is asked for: a number is read as that of a GPU there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.devices import NAMED
from torchport.analysis.parameters import last_name
from torchport.lazy import words
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

CURRENT = ("torch.cuda.current_device", "torch.accelerator.current_device_index")
MOVES = words(r"(^|_)(to|on|onto)_?(device|gpu|cuda)$|^(move|send|transfer)_")
"""Functions that move what they are given."""
INDICES = ("rank", "local_rank", "gpu_id", "local_process_index", "process_index")
HANDED_OVER = (
    "it is the number of the device, and what the function makes of it is not seen here; where that is a device, hand "
    "over shim.device()"
)
LIBRARY = "the library that reads a device map is not PyTorch, and takes this number for that of a GPU"


def handed_current(rule: Rule, context: Context) -> Iterator[Finding]:
    """``send_to_device(x, torch.cuda.current_device())`` and ``device_map={"": torch.cuda.current_device()}``."""
    yield from _device_maps(rule, context)
    for call in context.calls(*CURRENT):
        around = context.tree.parents[call]
        if isinstance(around, ast.Dict):
            if _is_device_map(context, around):
                yield _as_device(rule, context, call)
            continue
        keyword = around.arg or "" if isinstance(around, ast.keyword) else ""
        taker = context.tree.parents[around] if keyword else around
        if not isinstance(taker, ast.Call) or taker.func is call or _of_torch(context, taker.func):
            continue
        names = [name for _, name in context.signatures.takers(taker, call)]
        if names and all(NAMED.search(name) for name in names):
            yield _as_device(rule, context, call)
        elif not names and context.target != "tpu" and (NAMED.search(keyword) or _moves(context, taker)):
            yield _as_device(rule, context, call, HANDED_OVER)


def _as_device(rule: Rule, context: Context, call: ast.Call, doubt: str = "") -> Finding:
    context.claimed.add(call.func)
    return context.rewrite(rule, call, New(call, context.spell.place()), doubt=doubt)


def _device_maps(rule: Rule, context: Context) -> Iterator[Finding]:
    """``device_map={"": 0}``: the whole model on one device, as Accelerate and Transformers read it."""
    if b"device_map" not in context.text.bytes or context.target == "tpu":
        return
    for node in context.tree.every(ast.Dict):
        if len(node.keys) == 1 and isinstance(node.keys[0], ast.Constant) and node.keys[0].value == "":
            value = node.values[0]
            number = isinstance(value, ast.Constant) and type(value.value) is int
            if (number or last_name(value) in INDICES) and _is_device_map(context, node):
                place = context.spell.place(context.source(value))
                yield context.rewrite(rule, value, New(value, place), doubt=LIBRARY)


def _is_device_map(context: Context, node: ast.Dict) -> bool:
    """Whether a dictionary is given or kept under the name of a device map."""
    taker = context.tree.parents[node]
    targets = taker.targets if isinstance(taker, ast.Assign) else []
    names = [taker.arg or "" if isinstance(taker, ast.keyword) else "", *(last_name(target) for target in targets)]
    return any(name.endswith("device_map") for name in names)


def _of_torch(context: Context, func: ast.expr) -> bool:
    """PyTorch's functions and methods have rules of their own, or take the number for what it is."""
    found = context.qualify(func) if isinstance(func, ast.Name | ast.Attribute) else None
    if found is not None:
        return found.name.startswith(("torch.", "torchport.", "builtins."))
    return isinstance(func, ast.Attribute) and func.attr in ("to", "cuda", "set_device")


def _moves(context: Context, call: ast.Call) -> bool:
    found = context.qualify(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    return bool(MOVES.search(found.name.rpartition(".")[2] if found is not None else last_name(call.func)))
