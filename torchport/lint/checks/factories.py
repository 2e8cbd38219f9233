"""Tensors that are made on the host and moved to the device at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.hot import STEPS
from torchport.analysis.index import keyword
from torchport.analysis.names import chain
from torchport.lazy import words
from torchport.lint.checks.facts import Facts, facts, report
from torchport.lint.checks.varying import loop_of
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

CONSTANT = frozenset(
    ("arange", "empty", "eye", "full", "linspace", "logspace", "ones", "tril_indices", "triu_indices", "zeros")
)
RANDOM = frozenset(("normal", "rand", "randint", "randn", "randperm"))
KEEPS = frozenset(
    ("bool", "double", "expand", "flatten", "float", "half", "int", "long", "repeat", "requires_grad_", "reshape", "t",
     "transpose", "type", "unsqueeze", "view")
)  # fmt: skip
"""Methods between the factory and the move that a tensor has on the device as well."""
PLACE = words(r"(^|_)(device|dev)\d?$")
DEFAULTS = ("set_default_device", "set_default_tensor_type")
SMALL = 256
"""Elements up to which a copy is not worth a word outside of a step."""
DRAWN = "give the factory device=; the numbers drawn on the device are others than those of the host"


def host_then_move(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.randn(n, n).cuda()``: a copy in each step, or a note where it runs once."""
    if any(word.encode() in context.text.bytes for word in DEFAULTS):
        return  # the factories make their tensors on the device then
    known = facts(context)
    for call in known.named("cuda", "to"):
        made = _made(context, call) if _moves(known, call) else None
        if made is None or _in_place_of_default(context, call):
            continue
        name = known.flow.name_of(made.func).removeprefix("torch.")
        each = _in_each_step(known, call)
        if each or not _is_small(made):
            reason = DRAWN if name in RANDOM else rule.reason
            yield report(rule, context, call, reason, effect=None if each else "none")


def _in_each_step(known: Facts, call: ast.Call) -> bool:
    """In a loop of steps, or a ``forward``: what these call may be called once."""
    if not known.heat(call):
        return False
    name = getattr(known.tree.function(call), "name", "")
    if name.startswith("test_"):
        return False
    loop = loop_of(known, call)
    tried = isinstance(loop, ast.For) and isinstance(loop.iter, ast.List | ast.Tuple)  # for size in (16, 32)
    return name in STEPS or (loop in known.heats.loops and not tried)


def _moves(known: Facts, call: ast.Call) -> bool:
    """``.cuda()`` and ``.to(device)``."""
    func = call.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Call):
        return False
    if func.attr == "cuda":
        return True
    place = call.args[0] if call.args else keyword(call, "device")
    match place:
        case ast.Constant(value=str() as text):
            return text.startswith(("cuda", "xla", "tpu"))
        case ast.Call():
            inner = place.args[0] if place.args else None
            host = isinstance(inner, ast.Constant) and str(inner.value).startswith(("cpu", "meta"))
            return known.flow.name_of(place.func) in ("torch.device", "torchport.shim.device") and not host
        case ast.Name() | ast.Attribute():
            last = chain(place)[-1:] or [getattr(place, "attr", "")]
            return bool(PLACE.search(last[0])) or known.value(place).kind == "device"
    return False


def _made(context: Context, call: ast.Call) -> ast.Call | None:
    """The factory whose tensor is moved."""
    node = call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(node, ast.Call):
        found = context.qualify(node.func)
        if found is not None and not found.doubt:
            name = found.name.removeprefix("torch.")
            wanted = name in CONSTANT | RANDOM and keyword(node, "device") is None and keyword(node, "out") is None
            drawn = keyword(node, "generator") is not None or keyword(node, "pin_memory") is not None
            return node if wanted and not drawn else None
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in KEEPS:
            return None
        node = node.func.value
    return None


def _in_place_of_default(context: Context, call: ast.Call) -> bool:
    """``with torch.device("cuda"):`` around the call makes the tensor there."""
    return any(
        isinstance(parent, ast.With)
        and any(isinstance(i.context_expr, ast.Call) and _is_device(context, i.context_expr) for i in parent.items)
        for parent in context.tree.ancestors(call)
    )


def _is_device(context: Context, call: ast.Call) -> bool:
    return context.named(call.func, "torch.device", "torchport.shim.device")


def _is_small(made: ast.Call) -> bool:
    """Whether the file shows a size of a few numbers."""
    sizes = [n for a in made.args for n in (a.elts if isinstance(a, ast.Tuple | ast.List) else [a])]
    count = 1
    for size in sizes:
        value = size.value if isinstance(size, ast.Constant) else None
        if not isinstance(value, int):
            return False
        count *= max(value, 1)
    return count <= SMALL
