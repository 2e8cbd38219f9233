"""Process groups in use: tests for NCCL, groups of some processes, and collectives that a back end lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.names import chain, qualify
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import Tree, dotted
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import change_call, keyword_of, with_keyword
from torchport.rewrite.guards import decided
from torchport.rewrite.precision import starred
from torchport.rewrite.spread import GROUPS
from torchport.rewrite.statements import replacement

if TYPE_CHECKING:
    import libcst as cst

GET_BACKEND = "torch.distributed.get_backend"
NEW_GROUP = "torch.distributed.new_group"
MESHES = (
    "torch.distributed.init_device_mesh",
    "torch.distributed.device_mesh.init_device_mesh",
    "torch.distributed.tensor.init_device_mesh",
    "torch.distributed._tensor.init_device_mesh",
    "torch.distributed._tensor.device_mesh.init_device_mesh",
    "torch.distributed.DeviceMesh",
    "torch.distributed.device_mesh.DeviceMesh",
    "torch.distributed.tensor.DeviceMesh",
    "torch.distributed._tensor.DeviceMesh",
)
NCCL_NAMES = ("torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL")
CALLED = {"xla": ("xla", "cpu:gloo,xla:xla"), "tpu": ("tpu_dist", "cpu:gloo,tpu:tpu_dist")}
"""What get_backend() answers for the groups that a target makes."""
REDUCED = ("tensor", "dst", "op", "group", "async_op", "group_dst")
SETTING = "it asks what the program was told to use; the migrated init_process_group takes it for the device's group"
OF_NCCL = "what it decides on is NCCL's own; decide what a TPU does there"
LEAVE_OUT = "leave backend out, so that the group has the one of the process group"
NOT_SEEN = "its backend is not seen here; a group for tensors on the device is called {!r} on this target"
WITHIN = "wait with an all_reduce within the group: PyTorch/XLA's barrier does not wait, and its rendezvous joins all"
AVERAGED = "PyTorch/XLA refuses averages: reduce with ReduceOp.SUM, then divide by torch.distributed.get_world_size()"


def nccl(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dist.get_backend() == "nccl"`` asks for the group of the device; other tests are a question for a person."""
    yield from _groups(rule, context)
    settings = _settings(context)
    for node in context.tree.every(ast.Compare):
        sides = [node.left, *node.comparators]
        named = [e for side in sides for e in _elements(side) if _is_nccl(context, e)]
        if not named:
            continue
        context.claimed.update(named)
        if isinstance(around := context.tree.parents[node], ast.IfExp) and _translates(around):
            continue
        others = [side for side in sides if side not in named]
        if any(_is_backend(context, side) for side in others) and len(sides) == 2:
            yield _asks_group(rule, context, node, named)
        elif any(ast.unparse(_plain(side)) in settings for side in others):
            yield context.leave(rule, node, SETTING, effect="none")
        else:
            yield context.leave(rule, node, rule.reason)


def _translates(node: ast.IfExp) -> bool:
    """``"cpu:gloo,tpu:tpu_dist" if backend == "nccl" else backend``, as the target tpu writes it."""
    return (
        isinstance(node.body, ast.Constant) and node.body.value in CALLED["tpu"] and isinstance(node.test, ast.Compare)
    )


def _elements(side: ast.expr) -> list[ast.expr]:
    return side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def _is_nccl(context: Context, node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value == "nccl") or context.named(node, *NCCL_NAMES)


def _plain(node: ast.expr) -> ast.expr:
    """``backend`` of ``backend.lower()`` and ``str(backend)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "lower" and not node.args:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    return node


def _is_backend(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` is what get_backend() answers, also where a variable holds it."""
    node = _plain(node)
    if isinstance(node, ast.NamedExpr):
        return _is_backend(context, node.value)
    if isinstance(node, ast.Call):
        return context.named(node.func, GET_BACKEND)
    stores: list[ast.AST] = []
    if isinstance(node, ast.Name):
        home = scope_of(context.tree, node).find(node.id)
        stores = [b.node for b in home.names[node.id]] if home is not None else []
    elif isinstance(node, ast.Attribute) and chain(node)[:1] == ["self"]:
        stores = [a for a in context.tree.attributes if a.attr == node.attr and not isinstance(a.ctx, ast.Load)]
    values = [getattr(context.tree.parents.get(store), "value", None) for store in stores]
    return bool(values) and all(_calls_get_backend(context, value) for value in values)


def _calls_get_backend(context: Context, value: object) -> bool:
    call = _plain(value) if isinstance(value, ast.expr) else None
    return isinstance(call, ast.Call) and context.named(call.func, GET_BACKEND)


def _settings(context: Context) -> set[str]:
    """What the file as it was hands to init_process_group as its backend, as it is written."""
    found = set()
    for call in _group_calls(context.original):
        backend = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
        if isinstance(backend, ast.IfExp) and _translates(backend):
            backend = backend.orelse
        if isinstance(backend, ast.Name | ast.Attribute | ast.Subscript):
            found.add(ast.unparse(backend))
    return found


def _group_calls(tree: Tree) -> list[ast.Call]:
    return [call for call in tree.calls if (name := qualify(tree, call.func)) is not None and name.name in GROUPS]


def _asks_group(rule: Rule, context: Context, node: ast.Compare, named: list[ast.expr]) -> Finding:
    if _decides_on_nccl(context, node):
        return context.leave(rule, node, OF_NCCL)
    if context.spell.portable:
        return context.rewrite(rule, node, *(New(e, "shim.accelerator_backend()") for e in named))
    if isinstance(node.ops[0], ast.Eq | ast.NotEq):
        asked = node.comparators[0] if node.left in named else node.left
        word = "in" if isinstance(node.ops[0], ast.Eq) else "not in"
        text = f"({context.source(asked)})" if isinstance(asked, ast.NamedExpr) else context.source(asked)
        return context.rewrite(rule, node, New(node, f'"{context.target}" {word} {text}', False))
    if node.left in named:
        return context.rewrite(rule, node, New(node.left, f'"{context.target}"', False))
    words = ", ".join(f'"{name}"' for name in CALLED[context.target])
    return context.rewrite(rule, node, *(New(e, words, False) for e in named))


def _decides_on_nccl(context: Context, node: ast.Compare) -> bool:
    """Whether what runs only then speaks of NCCL itself."""
    for part in decided(context, node):
        for n in ast.walk(part):
            found = context.qualify(n) if isinstance(n, ast.Name | ast.Attribute) else None
            if found is not None and ("NCCL" in found.name or ".nccl" in found.name) and found.name not in NCCL_NAMES:
                return True
    return False


def _groups(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dist.new_group(ranks, backend="nccl")`` and its like; settings that name NCCL are a note of another rule."""
    for call in context.tree.calls:
        if context.named(call.func, *GROUPS, "torchport.shim.new_group"):
            continue
        backend = next((k.value for k in call.keywords if k.arg == "backend"), None)
        if context.named(call.func, NEW_GROUP):
            backend = call.args[2] if len(call.args) > 2 else backend
            yield from _new_group(rule, context, call, backend)
        elif backend is not None and "group" in dotted(call.func) and _is_nccl(context, backend):
            context.claimed.add(backend)
            yield context.leave(rule, call, LEAVE_OUT)


def _new_group(rule: Rule, context: Context, call: ast.Call, backend: ast.expr | None) -> Iterator[Finding]:
    if backend is None or _is_backend(context, backend):
        return
    constant = backend.value if isinstance(backend, ast.Constant) else ""
    if context.spell.portable:
        if not isinstance(backend, ast.Constant) or "nccl" in str(constant):
            context.claimed.add(backend)
            yield context.rewrite(rule, call, New(call.func, "shim.new_group"))
    elif "nccl" in str(constant) or _is_nccl(context, backend):
        context.claimed.add(backend)
        mixed = "gloo" in str(constant) or context.target == "tpu"
        yield context.rewrite(rule, call, New(backend, f'"{CALLED[context.target][mixed]}"', False))
    elif not isinstance(backend, ast.Constant):
        yield context.leave(rule, call, NOT_SEEN.format(CALLED[context.target][context.target == "tpu"]))


def reduce_to_one(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dist.reduce(t, dst=0)`` becomes ``dist.all_reduce(t)``, where it is missing or does not keep to its group."""
    for node, found in context.uses("torch.distributed.reduce"):
        context.claimed.add(node)
        call = context.tree.parents[node]
        if context.spell.portable:
            continue
        if not (isinstance(call, ast.Call) and call.func is node) or starred(call):
            yield context.leave(rule, node, rule.reason)
            continue
        given = {k.arg for k in call.keywords} | set(REDUCED[: len(call.args)])
        if context.target == "tpu" or given & {"group", "group_dst"}:
            source, func = context.source(call), f"{context.source(node).rpartition('.')[0]}.all_reduce".lstrip(".")
            if isinstance(node, ast.Name):
                yield context.leave(rule, node, rule.reason)
            else:
                yield context.change(
                    rule,
                    call,
                    lambda s=source, f=func: change_call(s, f, _reduced),  # type: ignore[misc]
                    accelerator=False,
                    doubt=found.doubt,
                )


def _reduced(old: list[cst.Arg]) -> list[cst.Arg]:
    named = [a if a.keyword or not i else with_keyword(a, REDUCED[i]) for i, a in enumerate(old)]
    return [a for a in named if keyword_of(a) not in ("dst", "group_dst")]


def average(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dist.all_reduce(t, op=dist.ReduceOp.AVG)`` becomes a sum that is divided."""
    for node, _ in context.uses("torch.distributed.ReduceOp.AVG"):
        if context.target != "xla":
            continue
        around = context.tree.parents[node]
        call = context.tree.parents[around] if isinstance(around, ast.keyword) else around
        statement = context.tree.parents.get(call)
        simple = isinstance(call, ast.Call) and isinstance(statement, ast.Expr) and not starred(call)
        if simple and (lines := _sum_then_divide(context, call, node)):  # type: ignore[arg-type]
            yield context.edited(
                rule,
                statement,  # type: ignore[arg-type]
                [replacement(context.text, statement, lines)],  # type: ignore[arg-type]
                "; ".join(lines),
            )
        else:
            yield context.leave(rule, node, AVERAGED)


def _sum_then_divide(context: Context, call: ast.Call, op: ast.expr) -> list[str]:
    """The two statements for ``all_reduce(tensor, op=AVG, group=...)``; none where it is called in another way."""
    if not context.named(call.func, "torch.distributed.all_reduce") or not isinstance(call.func, ast.Attribute):
        return []
    keywords = {k.arg: k.value for k in call.keywords}
    if not call.args or not dotted(call.args[0]) or len(call.args) > 2 or not set(keywords) <= {"op", "group"}:
        return []
    tensor, module = context.source(call.args[0]), context.source(call.func.value)
    group = context.source(keywords["group"]) if "group" in keywords else ""
    total = f"{module}.all_reduce({tensor}{f', group={group}' if group else ''})"
    return [total, f"{tensor}.div_({module}.get_world_size({group}))"]


def barrier(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dist.barrier()`` does nothing in PyTorch/XLA's process group."""
    for call in context.calls("torch.distributed.barrier"):
        if context.target != "xla" or any(k.arg in ("device_ids", "output_device") for k in call.keywords):
            continue
        if call.args or call.keywords:
            yield context.leave(rule, call, WITHIN)
        else:
            yield context.rewrite(rule, call, New(call, 'torch_xla.core.xla_model.rendezvous("barrier")'))


def device_mesh(rule: Rule, context: Context) -> Iterator[Finding]:
    """``init_device_mesh("cuda", ...)``: its name moves with the device strings, what a mesh needs is said."""
    if context.target == "tpu" and _group_calls(context.original):
        return
    for call in context.calls(*MESHES):
        kind = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device_type"), None)
        if not isinstance(kind, ast.Constant) or kind.value not in ("cpu", "meta"):
            yield context.leave(rule, call.func, rule.reason)
