"""Distributed training: the process group, how processes start, and the device arguments of DistributedDataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.names import qualify
from torchport.analysis.parts import word_of
from torchport.analysis.scopes import FUNCTIONS, dotted
from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import change_call, keyword_of, with_value
from torchport.rewrite.precision import starred
from torchport.rewrite.processes import (
    TPU_SPAWN,
    counts_before_launch,
    group_alone,
    ids_alone,
    spawn_alone,
    touched_before_launch,
)
from torchport.rewrite.spread import GROUPS

if TYPE_CHECKING:
    import libcst as cst

RPC = "it starts processes of torch.distributed.rpc, not one for each device"
GLOO = "its processes talk over gloo, on the CPU; whether there is one for each device is not seen here"
POSITION = "device_ids is given by position; name it, so that it can be told from the others"
UNSEEN = "whether it is a list or None is not seen here; write shim.device_ids(number)"
OTHER = "it is not seen whether this reaches DistributedDataParallel; if so, write shim.device_ids(number)"
DOCKER = "it asks Docker for GPUs, and a machine with TPUs has none to give: leave it out there"
OF_THE_CPU = "neither what is started nor what starts it speaks of a device: these are processes of the CPU"
DDP = "torch.nn.parallel.DistributedDataParallel"
ONE_BY_ONE = (
    "it starts a process for a device by itself: each then sees the whole of the machine, or one device alone; start "
    "them together, with shim.launch(function, args=...)"
)
OF_A_DEVICE = (*GROUPS, "torch.cuda.set_device", "torchport.shim.set_device", DDP)
"""What a process calls that has a device of its own."""
DEEP = 2
"""Calls that are followed from the function that a process runs."""
VENDORS = ("cncl", "hccl", "mccl", "eccl", "bccl", "xccl", "flagcx")
VENDOR = "its backend is that of another vendor's accelerator, which this branch serves"
GPUS = pattern(r"gpu|device|cuda")
DEVICE_WORDS = pattern(r"cuda|gpu|device|nccl|xla|tpu|accelerat|distributed|shim")
OWN_SHARES = "this class shares the work out by itself, with self.{}: a TPU process has one device, and no list of them"
SHARES_OUT = {"device_ids", "output_device", "src_device_obj", "scatter", "replicate", "parallel_apply", "gather"}
TAKE_IDS = (DDP, "torch.distributed.barrier", "torch.nn.DataParallel", "torchport.shim.DataParallel")


def device_ids(rule: Rule, context: Context) -> Iterator[Finding]:
    """``DDP(m, device_ids=[rank], output_device=rank)`` becomes ``DDP(m, device_ids=shim.device_ids(rank))``."""
    yield from _other_ids(rule, context)
    if not context.spell.portable:
        yield from ids_alone(rule, context)
        return
    for call in context.calls(DDP, "torch.distributed.barrier"):
        ids = next((k.value for k in call.keywords if k.arg == "device_ids"), None)
        output = next((k.value for k in call.keywords if k.arg == "output_device"), None)
        if len(call.args) > 1 and context.named(call.func, DDP):
            if not _migrated(context, call.args[1]):
                yield _by_position(rule, context, call)
            continue
        if ids is None or (isinstance(ids, ast.Constant) and ids.value is None) or _migrated(context, ids):
            if output is not None and not isinstance(output, ast.Constant):
                yield context.leave(rule, output, "output_device without device_ids")
            continue
        if starred(call) and output is None and not isinstance(ids, ast.List):
            yield context.leave(rule, call, "device_ids may be given twice, here and by the star")
            continue
        if isinstance(ids, ast.IfExp) and output is None:
            yield from _chosen(rule, context, ids)
            continue
        if not isinstance(ids, ast.List | ast.Call):
            yield context.leave(rule, ids, UNSEEN)
            continue
        inner = ", ".join(map(context.source, ids.elts)) if isinstance(ids, ast.List) else f"*{context.source(ids)}"
        if output is not None and not (
            isinstance(ids, ast.List) and len(ids.elts) == 1 and ast.dump(ids.elts[0]) == ast.dump(output)
        ):
            yield context.leave(
                rule, call, "output_device differs from device_ids[0]; on a TPU there is one device in a process"
            )
        elif output is None:
            yield context.rewrite(rule, ids, New(ids, f"shim.device_ids({inner})"))
        else:
            yield context.change(rule, call, lambda c=call, i=inner: _without_output(context, c, i))  # type: ignore[misc]


def _by_position(rule: Rule, context: Context, call: ast.Call) -> Finding:
    """``DDP(model, [rank], rank)``: the second argument is ``device_ids``, the third ``output_device``."""
    ids, rest = call.args[1], call.args[2:]
    same = not rest or (isinstance(ids, ast.List) and len(ids.elts) == 1 and ast.dump(ids.elts[0]) == ast.dump(rest[0]))
    if not isinstance(ids, ast.List) or len(rest) > 1 or not same:
        return context.leave(rule, call, POSITION)
    source, inner = context.source(call), ", ".join(map(context.source, ids.elts))

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [old[0], with_value(old[1], f"{context.shim}.device_ids({inner})"), *old[2 + len(rest) :]]

    return context.change(rule, call, lambda: change_call(source, None, arguments))


def _other_ids(rule: Rule, context: Context) -> Iterator[Finding]:
    """``device_ids`` for a function that is not known: a wrapper, or a class chosen while the program runs."""
    for call in context.tree.calls:
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg != "device_ids" or (isinstance(value, ast.Constant) and value.value is None):
                continue
            if not context.named(call.func, *TAKE_IDS) and not _migrated(context, value):
                yield context.leave(rule, value, DOCKER if _is_of_docker(context, call) else OTHER)


def _is_of_docker(context: Context, call: ast.Call) -> bool:
    found = context.qualify(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    return found is not None and found.name.startswith("docker.")


def _chosen(rule: Rule, context: Context, ids: ast.IfExp) -> Iterator[Finding]:
    """``[rank] if distributed else None``: the branches that are lists."""
    branches = [ids.body, ids.orelse]
    if not all(isinstance(b, ast.List) or (isinstance(b, ast.Constant) and b.value is None) for b in branches):
        if not any(_migrated(context, b) for b in branches):
            yield context.leave(rule, ids, UNSEEN)
        return
    for branch in branches:
        if isinstance(branch, ast.List):
            inner = ", ".join(map(context.source, branch.elts))
            yield context.rewrite(rule, branch, New(branch, f"shim.device_ids({inner})"))


def _without_output(context: Context, call: ast.Call, inner: str) -> str:
    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        kept = [a for a in old if keyword_of(a) != "output_device"]
        return [
            with_value(a, f"{context.shim}.device_ids({inner})") if keyword_of(a) == "device_ids" else a for a in kept
        ]

    return change_call(context.source(call), None, arguments)


def _migrated(context: Context, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and context.named(node.func, "torchport.shim.device_ids")


def data_parallel(rule: Rule, context: Context) -> Iterator[Finding]:
    """A class made of DataParallel that shares the work out by itself: with one device a process there is no list."""
    for node, _ in context.uses("torch.nn.DataParallel"):
        around = context.tree.parents[node]
        if not isinstance(around, ast.ClassDef) or node not in around.bases:
            continue
        used = {
            a.attr for a in context.tree.attributes if context.tree.owner(a) is around and dotted(a.value) == "self"
        }
        if used & SHARES_OUT:
            context.claimed.add(node)
            yield context.leave(rule, node, OWN_SHARES.format(min(used & SHARES_OUT)))


def group_backend(rule: Rule, context: Context) -> Iterator[Finding]:
    """``"nccl" if dist.is_nccl_available() else "gloo"`` would ask the shim for "gloo" on a TPU."""
    yield from _of_other_vendors(rule, context)
    for node in context.tree.every(ast.IfExp):
        test, body = node.test, node.body
        asks = isinstance(test, ast.Call) and context.named(test.func, "torch.distributed.is_nccl_available")
        if asks and isinstance(body, ast.Constant) and body.value == "nccl" and _reaches_group(context, node):
            context.claimed.add(test.func)  # type: ignore[attr-defined]
            yield context.rewrite(rule, node, New(node, context.source(body), accelerator=False))
    if not context.spell.portable:
        yield from group_alone(rule, context)


def _of_other_vendors(rule: Rule, context: Context) -> Iterator[Finding]:
    """``init_process_group(backend="hccl")``, as in a branch for the accelerator of another vendor."""
    if not any(name.encode() in context.text.bytes for name in VENDORS):
        return
    for call in context.calls(GROUPS[0]):
        backend = next((k.value for k in call.keywords if k.arg == "backend"), call.args[0] if call.args else None)
        if isinstance(backend, ast.Constant) and str(backend.value).lower() in VENDORS:
            context.claimed.add(call.func)
            yield context.leave(rule, call, VENDOR, effect="none")


def _reaches_group(context: Context, node: ast.expr) -> bool:
    """Whether a choice goes to init_process_group and nowhere else, at once or through a variable."""
    around = context.tree.ancestors(node)[:2]
    if any(isinstance(n, ast.Call) and context.named(n.func, *GROUPS) for n in around):
        return True
    assign = around[0]
    if not isinstance(assign, ast.Assign) or len(assign.targets) != 1 or not dotted(assign.targets[0]):
        return False
    reads = [context.tree.ancestors(read)[:2] for read in context.tree.reads(dotted(assign.targets[0]))]
    return bool(reads) and all(
        any(isinstance(n, ast.Call) and context.named(n.func, *GROUPS) for n in up) for up in reads
    )


def spawn(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mp.spawn`` of processes that each drive a device; those of torch.distributed.rpc are something else."""
    yield from counts_before_launch(rule, context)
    if _is_of_the_cpu(context):
        for node, _ in context.uses("torch.multiprocessing.spawn"):
            context.claimed.add(node)
            yield context.leave(rule, node, OF_THE_CPU, effect="none")
        return
    rpc = any(name.startswith("torch.distributed.rpc") for name in context.resolved)
    gloo = _only_gloo(context)
    if not (rpc or gloo):
        yield from touched_before_launch(rule, context)
        yield from _one_by_one(rule, context)
    for node, found in context.uses("torch.multiprocessing.spawn"):
        if rpc or gloo:
            context.claimed.add(node)
            yield context.leave(rule, node, RPC if rpc else GLOO)
        elif context.spell.portable:
            yield context.rewrite(rule, node, New(node, "shim.launch"), doubt=found.doubt)
    if not (rpc or gloo or context.spell.portable):
        yield from spawn_alone(rule, context)


def _is_of_the_cpu(context: Context) -> bool:
    """Whether what is started stands in this file, and neither it nor what starts it has a word of a device."""
    starts = [*context.calls("torch.multiprocessing.spawn")]
    started = {call.args[0].id for call in starts if call.args and isinstance(call.args[0], ast.Name)}
    functions = [definition for definition in context.tree.definitions if definition.name in started]
    counted = [next((k.value for k in call.keywords if k.arg == "nprocs"), None) for call in starts]
    if not starts or len(functions) != len(starts) or not all(isinstance(count, ast.Constant) for count in counted):
        return False
    around = [context.tree.function(call) or context.tree.module for call in starts]
    if any(DEVICE_WORDS.search(ast.unparse(part).lower()) for part in (*functions, *around)):
        return False
    return not any(_is_foreign(context, n.func) for f in functions for n in ast.walk(f) if isinstance(n, ast.Call))


def _one_by_one(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mp.Process(target=run, args=(rank,))``: a process for a device that no launcher starts."""
    for call in context.tree.calls_of("Process"):
        target = next((k.value for k in call.keywords if k.arg == "target"), None)
        if word_of(call.func) != "Process" or target is None:
            continue
        if _has_a_device(context, word_of(target)) or _turns_over_gpus(context, call):
            yield context.leave(rule, call, TPU_SPAWN if context.target == "tpu" else ONE_BY_ONE)


def _has_a_device(context: Context, name: str) -> bool:
    """Whether a function of the file, as it was before the run, makes a process group or chooses its device."""
    tree, started, inside = context.original, {name}, list[ast.AST]()
    for _ in range(DEEP):
        inside = [n for d in tree.definitions if d.name in started for n in ast.walk(d)]
        started |= {word_of(n.func) for n in inside if isinstance(n, ast.Call)}
    calls = [n.func for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Name | ast.Attribute)]
    return any(found is not None and found.name in OF_A_DEVICE for found in (qualify(tree, func) for func in calls))


def _turns_over_gpus(context: Context, call: ast.Call) -> bool:
    """``for rank in range(torch.cuda.device_count())`` around the start of a process."""
    for around in context.tree.ancestors(call):
        parts = around.generators if isinstance(around, ast.ListComp | ast.GeneratorExp) else [around]
        if any(GPUS.search(ast.unparse(p.iter).lower()) for p in parts if isinstance(p, ast.For | ast.comprehension)):
            return True
        if isinstance(around, FUNCTIONS):
            return False
    return False


def _is_foreign(context: Context, func: ast.expr) -> bool:
    """Whether a function stands elsewhere, where it may do whatever it likes with a device."""
    if isinstance(func, ast.Name) and any(
        d.name == func.id for d in (*context.tree.definitions, *context.tree.classes)
    ):
        return True
    found = context.qualify(func) if isinstance(func, ast.Name | ast.Attribute) else None
    return found is not None and not found.name.startswith("torch.")


def _only_gloo(context: Context) -> bool:
    """Whether every process group of the file is one of the CPU, by a name that is written there."""
    backends = []
    for call in context.calls(*GROUPS):
        named = next((k.value for k in call.keywords if k.arg == "backend"), None)
        first = call.args[0] if call.args else named
        backends.append(first.value if isinstance(first, ast.Constant) else None)
    return bool(backends) and set(backends) <= {"gloo", "mpi"}
