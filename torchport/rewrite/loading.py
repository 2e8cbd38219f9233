"""Loaders and checkpoints: pinned memory, torch.load, fused optimizers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.index import default_of
from torchport.analysis.names import Qualified
from torchport.analysis.reaching import scope_of
from torchport.model import Finding, Review, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of, with_keyword
from torchport.rewrite.guards import workers
from torchport.rewrite.precision import starred

if TYPE_CHECKING:
    import libcst as cst

SAVED = {"obj": "data", "f": "file_or_path"}
"""The arguments of torch.save by their names in torch_xla."""
UNSEEN = "it is handed on without its arguments, of which PyTorch/XLA takes only the object and the file"
PINNED = "shim.is_pin_memory_supported()"
HANDED_ON = (
    "it is handed on to a function that is not seen here; a loader without an accelerator warns and does not pin"
)
SAFETENSORS = {"safetensors.torch.load_file": 1, "safetensors.torch.load_model": 3, "safetensors.safe_open": 2}
"""Where each takes its device, which on TorchTPU is "cpu"."""
NO_TPU = (
    'safetensors refuses the device of TorchTPU: give it device="cpu", then move; load_state_dict copies to the device'
)
FILLS = 'safetensors fills no model on PyTorch/XLA: write model.load_state_dict(load_file(path, device="cpu"))'
OPTIMIZERS = ("torch.optim.", "torch.distributed.optim.")
FUSED = "shim.is_fused_optimizer_supported()"


def save(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.save`` for PyTorch/XLA alone: through torch_xla, which writes CPU tensors, as the shim does."""
    context.claimed.update(node for node, _ in context.uses("torch.save") if _in_worker(context, node))
    for node, found in context.uses("torch.save") if context.target == "xla" else ():
        if node in context.claimed:
            continue
        context.claimed.add(node)
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node and not starred(call)):
            yield context.leave(rule, node, UNSEEN)
        elif len(call.args) > 2 or any(keyword.arg not in SAVED for keyword in call.keywords):
            yield context.leave(rule, call, "torch_xla.core.xla_model.save takes the object and the file alone")
        else:
            yield _saved(rule, context, call, found.doubt)


def _in_worker(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` runs in a worker process of a loader, which has no device: its files hold tensors of the CPU."""
    inside = workers(context)
    return bool(inside) and any(parent in inside for parent in context.tree.ancestors(node))


def _saved(rule: Rule, context: Context, call: ast.Call, doubt: str) -> Finding:
    """Every process writes what it is told to, as with torch.save: the default writes in the first one only."""
    source = context.source(call)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        named = [with_keyword(a, SAVED[keyword_of(a)]) if a.keyword else a for a in old]
        return [*named, argument("False", "master_only")]

    new = "torch_xla.core.xla_model.save"
    return context.change(rule, call, lambda: change_call(source, new, arguments), doubt=doubt)


def load(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.load`` to anything but the CPU goes through the shim, which can place tensors on every back end.

    For PyTorch/XLA alone it loads to the CPU: ``load_state_dict`` copies to wherever the model is.
    """
    for node, found in context.uses("torch.load"):
        call = context.tree.parents[node]
        called = isinstance(call, ast.Call) and call.func is node
        if isinstance(call, ast.Call) and called and _to_cpu(context, call):
            continue
        if isinstance(call, ast.Call) and called and _location(call, 1) is None and _in_worker(context, node):
            context.claimed.add(node)
            continue
        if context.spell.portable:
            yield context.rewrite(rule, node, New(node, "shim.load"), doubt=found.doubt)
        elif not (isinstance(call, ast.Call) and called and _shows_location(call)):
            yield context.leave(rule, node, 'whether it is given map_location is not seen here; it has to be "cpu"')
        else:
            review: Review | None = None if _fills_a_model(context, call) else "read"
            yield _to_the_cpu(rule, context, call, found.doubt)._replace(review=review or rule.review)


def load_elsewhere(rule: Rule, context: Context) -> Iterator[Finding]:
    """Loads by URL, to the CPU where the values go into ``load_state_dict``, which copies to wherever the model is."""
    for node, found in context.uses(*rule.match):
        call = context.tree.parents[node]
        if found.name in SAFETENSORS:
            context.claimed.add(node)
            yield from _safetensors(rule, context, call, found) if isinstance(call, ast.Call) else ()
            continue
        position = 1 if found.name == "torch.jit.load" else 2
        called = isinstance(call, ast.Call) and call.func is node and _shows_location(call, position)
        place = _location(call, position) if isinstance(call, ast.Call) and called else None
        if place is not None and (context.target == "tpu" or _is_cpu(context, place)):
            context.claimed.add(node)  # TorchTPU places what a file holds on whatever device it is given
        elif isinstance(call, ast.Call) and called and position == 2 and _fills_a_model(context, call):
            context.claimed.add(node)
            yield _to_the_cpu(rule, context, call, found.doubt, position)


def _safetensors(rule: Rule, context: Context, call: ast.Call, found: Qualified) -> Iterator[Finding]:
    """What safetensors loads: to the CPU, or it is reported. On PyTorch/XLA it knows the device, and fills no model."""
    place = _location(call, SAFETENSORS[found.name], "device")
    if place is None or _is_cpu(context, place) or _is_cpu_by_default(context, call, place):
        return
    if found.name.endswith("load_model"):
        yield context.leave(rule, place, NO_TPU if context.target == "tpu" else FILLS)
    elif found.name.endswith("load_file") and _fills_a_model(context, call):
        yield context.rewrite(rule, place, New(place, '"cpu"', accelerator=False), doubt=found.doubt)
    elif context.target != "xla":
        yield context.leave(rule, place, NO_TPU)
    elif isinstance(place, ast.Constant) and str(place.value).startswith("cuda"):
        yield context.rewrite(rule, place, New(place, '"xla"'), doubt=found.doubt)


def _is_cpu_by_default(context: Context, call: ast.Call, place: ast.expr) -> bool:
    """Whether the device is a parameter that is the CPU unless a caller wants another."""
    function = context.tree.function(call)
    if not isinstance(function, ast.FunctionDef) or not isinstance(place, ast.Name):
        return False
    default = default_of(function.args, place.id)
    return default is not None and _is_cpu(context, default)


def _fills_a_model(context: Context, call: ast.Call) -> bool:
    """Whether what is loaded is handed to ``load_state_dict``, as it is, by its name or by what is made of it."""
    for whole in context.tree.ancestors(call):
        if (
            isinstance(whole, ast.Call)
            and isinstance(whole.func, ast.Attribute)
            and whole.func.attr == "load_state_dict"
        ):
            return True
        if isinstance(whole, ast.stmt):
            break
    names = {n.id for target in getattr(whole, "targets", ()) for n in ast.walk(target) if isinstance(n, ast.Name)}
    function, before = context.tree.function(call), 0
    assigns = [a for a in context.tree.every(ast.Assign) if context.tree.function(a) is function] if names else []
    while before != len(names):
        before = len(names)
        for assign in assigns:
            if not names.isdisjoint(_read_in(assign.value)):
                names |= {n.id for target in assign.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return any(
        context.tree.function(filled) is function and any(not names.isdisjoint(_read_in(a)) for a in filled.args)
        for filled in context.tree.calls_of("load_state_dict")
    )


def _read_in(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _to_the_cpu(rule: Rule, context: Context, call: ast.Call, doubt: str, position: int = 1) -> Finding:
    place = _location(call, position)
    if isinstance(place, ast.Lambda | ast.Dict):
        return context.leave(rule, place, 'PyTorch/XLA cannot place what a file holds; give "cpu", then move')
    if place is not None:
        return context.rewrite(rule, place, New(place, '"cpu"', accelerator=False), doubt=doubt)
    source = context.source(call)
    new = argument('"cpu"', "map_location")
    return context.change(
        rule, call, lambda: change_call(source, None, lambda old: [*old, new]), accelerator=False, doubt=doubt
    )


def _location(call: ast.Call, position: int = 1, name: str = "map_location") -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg == name), None)
    return named if named is not None or len(call.args) <= position else call.args[position]


def _shows_location(call: ast.Call, position: int = 1) -> bool:
    """Whether the call shows what map_location it is given, or that it is given none; a keyword is given only once."""
    if not starred(call) or any(keyword.arg == "map_location" for keyword in call.keywords):
        return True
    seen = call.args[: position + 1]
    return len(seen) > position and not any(isinstance(argument, ast.Starred) for argument in seen)


def _to_cpu(context: Context, call: ast.Call) -> bool:
    place = _location(call)
    return _is_cpu(context, place) and not (context.spell.portable and isinstance(place, ast.Lambda))


def _is_cpu(context: Context, place: ast.expr | None) -> bool:
    if isinstance(place, ast.Lambda) and isinstance(place.body, ast.Name) and place.args.args:
        return place.body.id == place.args.args[0].arg  # each storage stays where it is
    if isinstance(place, ast.Call) and context.named(place.func, "torch.device") and place.args:
        place = place.args[0]
    return isinstance(place, ast.Constant) and place.value == "cpu"


def pin_memory(rule: Rule, context: Context) -> Iterator[Finding]:
    """``pin_memory=True`` and ``tensor.pin_memory()``: only some back ends have pinned memory."""
    for call in context.tree.calls:
        yield from _pin_keywords(rule, context, call)
    own = any(definition.name == "pin_memory" for definition in context.tree.definitions)
    for call, func in context.methods("pin_memory"):
        inherited = isinstance(func.value, ast.Call) and context.source(func.value.func) == "super"
        dropped = isinstance(context.tree.parents[call], ast.Expr)
        if dropped or inherited or (own and isinstance(func.value, ast.Name)):
            yield context.leave(rule, call, "this may be a method of an object of the program, not of a tensor")
        elif not call.args and not call.keywords:
            inner = context.source(func.value)
            new = New(call, f"shim.pin_memory({inner})") if context.spell.portable else New(call, inner, False)
            yield context.rewrite(rule, call, new)
    yield from _truths(rule, context, "pin_memory", PINNED)


def _pin_keywords(rule: Rule, context: Context, call: ast.Call) -> Iterator[Finding]:
    pins = [keyword for keyword in call.keywords if keyword.arg in ("pin_memory", "pin_memory_device")]
    found = context.qualify(call.func) if pins else None
    name = found.name if found else ""
    for keyword in pins:
        value = keyword.value
        if keyword.arg == "pin_memory":
            if name.startswith("torch.") or (isinstance(value, ast.Constant) and value.value is True):
                yield from _only_if(rule, context, value, PINNED)
            elif not isinstance(value, ast.Constant) and PINNED not in context.source(value):
                yield context.leave(rule, value, HANDED_ON, effect="none")
        elif keyword.arg == "pin_memory_device" and not (
            isinstance(value, ast.Constant) and value.value in ("", "cpu")
        ):
            source = context.source(call)
            yield context.change(
                rule,
                call,
                lambda s=source: change_call(  # type: ignore[misc]
                    s, None, lambda old: [a for a in old if keyword_of(a) != "pin_memory_device"]
                ),
                accelerator=False,
            )


def _only_if(rule: Rule, context: Context, value: ast.expr, supported: str) -> Iterator[Finding]:
    """What is asked for, where the back end has it."""
    text = context.source(value)
    if not context.spell.portable:
        if not (isinstance(value, ast.Constant) and not value.value):
            yield context.rewrite(rule, value, New(value, "False", accelerator=False))
    elif isinstance(value, ast.Constant):
        if value.value is True:
            yield context.rewrite(rule, value, New(value, supported))
    elif supported.removeprefix("shim.") not in text:
        simple = isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        yield context.rewrite(rule, value, New(value, f"{supported} and {text if simple else f'({text})'}"))


def fused(rule: Rule, context: Context) -> Iterator[Finding]:
    """``fused=True`` of an optimizer is refused by PyTorch/XLA."""
    for call in context.tree.calls:
        for keyword in call.keywords:
            if keyword.arg == "fused" and _makes_optimizer(context, call):
                yield from _only_if(rule, context, keyword.value, FUSED)
    if any(name.startswith(("torch.optim", *OPTIMIZERS)) for name in context.resolved):
        yield from _truths(rule, context, "fused", FUSED)


def _makes_optimizer(context: Context, call: ast.Call) -> bool:
    """Whether a call is of an optimizer of PyTorch, or is handed its class: ``partial(torch.optim.AdamW, ...)``."""
    values = [call.func, *call.args, *(k.value for k in call.keywords)]
    return any(_is_optimizer(context, value) for value in values)


def _is_optimizer(context: Context, node: ast.expr, known: bool = True) -> bool:
    """Whether a value is a class of an optimizer, also by its variable or by a choice."""
    if isinstance(node, ast.IfExp):
        return _is_optimizer(context, node.body, known) or _is_optimizer(context, node.orelse, known)
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    if found := context.qualify(node):
        return found.name.startswith(OPTIMIZERS)
    if not known or not isinstance(node, ast.Name):
        return False
    home = scope_of(context.tree, node).find(node.id)
    bound = home.names[node.id] if home is not None else []
    around = [context.tree.parents[b.node] for b in bound if b.kind == "assign"]
    return any(isinstance(a, ast.Assign) and _is_optimizer(context, a.value, known=False) for a in around)


def _truths(rule: Rule, context: Context, key: str, new: str) -> Iterator[Finding]:
    """``True`` for ``key`` among keyword arguments that are kept in a dictionary, however it is written."""
    pairs: list[tuple[object, ast.expr]] = []
    for node in context.tree.every(ast.Dict):
        pairs += [(k.value, v) for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)]
    for call in context.tree.calls:
        if isinstance(call.func, ast.Name) and call.func.id == "dict" and key != "pin_memory":
            pairs += [(k.arg, k.value) for k in call.keywords]
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "setdefault" and len(call.args) == 2:
            pairs += [(call.args[0].value, call.args[1])] if isinstance(call.args[0], ast.Constant) else []
    for assign in context.tree.every(ast.Assign):
        target = assign.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            pairs.append((target.slice.value, assign.value))
    for name, value in pairs:
        if name == key and isinstance(value, ast.Constant) and value.value is True:
            yield context.rewrite(
                rule, value, New(value, new) if context.spell.portable else New(value, "False", False)
            )
