"""Several processes, for one target: the process group, DistributedDataParallel, and how processes start."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.names import chain
from torchport.analysis.reaching import scope_of
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of, with_keyword, with_value
from torchport.rewrite.group_names import Names, choices_by_nccl, names_of, serves_groups_alone
from torchport.rewrite.precision import starred
from torchport.rewrite.seeds import EARLY as EARLY_SEED
from torchport.rewrite.seeds import SEEDS, before_launch

if TYPE_CHECKING:
    import libcst as cst

GROUP = "torch.distributed.init_process_group"
DDP = "torch.nn.parallel.DistributedDataParallel"
BARRIER = "torch.distributed.barrier"
SPAWN = "torch.multiprocessing.spawn"
COUNT = "torch.cuda.device_count"
KEPT = {
    "xla": ("timeout", "group_name"),
    "tpu": ("init_method", "timeout", "world_size", "rank", "store", "group_name"),
}
"""Arguments of a process group: on PyTorch/XLA the launcher knows the others."""
FULL = {"xla": '"cpu:gloo,xla:xla", init_method="xla://"', "tpu": '"cpu:gloo,tpu:tpu_dist"'}
GONE = ("device_id", "pg_options")
"""Arguments that name a GPU, or are NCCL's own."""
HOSTS = frozenset(("gloo", "mpi"))
HOST = "a group for tensors on the CPU, which leaves those on a TPU unreduced; if it is to serve them, give {}"
OTHER = "it asks for {!r}, which is not NCCL and stays; if it is to serve tensors on a TPU, give {}"
UNSEEN = "by which name it asks for its group is not seen here; for tensors on a TPU give {}"
OPTIONS = "it gives {}, of which it is not known what it does on a TPU; leave it out, or write the call by hand"
STARRED = "its arguments are handed on with a star, so that the backend among them is not seen"
POSITIONAL = "its arguments are given by position; name them, so that they can be told apart"
TPU_SPAWN = (
    "processes that share TPUs need torch.tpu.distributed.set_tpu_launch_env(nnodes=..., nproc_per_node=...) before "
    "they are started, one for each chip"
)
COUNTED = (
    "it hands on the number of GPUs, which is not known before the launch; take torch_xla.runtime.world_size() in the "
    "function that is launched"
)
LAUNCHES = (SPAWN, "torch_xla.launch", "torchport.shim.launch", "accelerate.notebook_launcher")
TOUCHED = (
    "it touches the device before the processes are started, each of which needs its device for itself; do it inside "
    "the function that is launched"
)
MAKERS = ("torch.device", "torchport.shim.device", "torch_xla.device")
EARLY = "it starts the runtime, after which torch_xla.launch refuses to run; take torch_xla.runtime.world_size() inside"


def group_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``init_process_group("xla", init_method="xla://")``, or ``("cpu:gloo,tpu:tpu_dist", ...)``."""
    for node, found in context.uses(GROUP):
        context.claimed.add(node)
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node) or starred(call):
            yield context.leave(rule, node, STARRED)
        elif len(call.args) > 2:
            yield context.leave(rule, call, POSITIONAL)
        elif unknown := {k.arg or "" for k in call.keywords} - {"backend", *KEPT["tpu"], *GONE}:
            yield context.leave(rule, call, OPTIONS.format(min(unknown)))
        else:
            backend = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
            yield from _group(rule, context, call, backend, found.doubt)


def _group(rule: Rule, context: Context, call: ast.Call, backend: ast.expr | None, doubt: str) -> Iterator[Finding]:
    """The group of the device where NCCL, or none, is asked for; any other is what the program wants."""
    names = names_of(context, backend) if backend is not None else Names()
    if any(text in ("xla", "tpu_dist") or f"{context.target}:" in text for text in names.every):
        return  # it knows this target already
    by_nccl = choices_by_nccl(context, names)
    if not context.claimed.isdisjoint(by_nccl):
        return  # in the next pass, when that choice is taken
    other = sorted(names.every - HOSTS - {""} - {text for text in names.every if "nccl" in text})
    if other and not (names.nccl and context.target == "tpu"):
        yield context.leave(rule, call, OTHER.format(other[0], FULL[context.target]))
    elif names.whole and names.every & HOSTS and not names.nccl:
        yield context.leave(rule, call, HOST.format(FULL[context.target]))
    elif backend is None or (names.whole and names.every <= {""}):
        yield _whole_group(rule, context, call, names, doubt)
    elif context.target == "xla":
        known = bool(names.nccl)
        yield _whole_group(rule, context, call, names, doubt) if known else _not_seen(rule, context, call)
    elif isinstance(backend, ast.Constant) or by_nccl:
        yield _whole_group(rule, context, call, names, doubt)
    else:
        yield _chosen_group(rule, context, call, backend, names, doubt)


def _not_seen(rule: Rule, context: Context, call: ast.Call) -> Finding:
    return context.leave(rule, call, UNSEEN.format(FULL[context.target]))


def _whole_group(rule: Rule, context: Context, call: ast.Call, names: Names, doubt: str) -> Finding:
    mixed = any("gloo" in text and "nccl" in text for text in names.every)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        named = [a if a.keyword else with_keyword(a, ("backend", "init_method")[i]) for i, a in enumerate(old)]
        kept = [a for a in named if keyword_of(a) in KEPT[context.target]]
        if context.target == "xla":
            name = '"cpu:gloo,xla:xla"' if mixed else '"xla"'
            return [argument(name), argument('"xla://"', "init_method"), *kept]
        return [argument(FULL["tpu"]), *kept]

    source = context.source(call)
    return context.change(rule, call, lambda: change_call(source, None, arguments), doubt=doubt)


def _chosen_group(rule: Rule, context: Context, call: ast.Call, backend: ast.expr, names: Names, doubt: str) -> Finding:
    """TorchTPU's in the place of "nccl" alone: the run on the CPU that a program has keeps its gloo."""
    tpu, source, written = FULL["tpu"], context.source(call), context.source(backend)
    local = isinstance(backend, ast.Name) and serves_groups_alone(context, backend, (GROUP,))
    within = not isinstance(backend, ast.Name | ast.Attribute | ast.Subscript)
    news: list[New] = []
    if names.whole and names.nccl and (local or within):
        news = [New(node, tpu, accelerator=False) for node in names.nccl]
        inside = [node for node in names.nccl if backend in context.tree.ancestors(node)]
        if within and len(inside) != len(news):
            return _not_seen(rule, context, call)
        start = context.text.span(backend)[0]
        for node in reversed(inside):
            a, b = (place - start for place in context.text.span(node))
            written = (written.encode()[:a] + tpu.encode() + written.encode()[b:]).decode()
        news = [] if within else news
    elif within or any("nccl" in text and text != "nccl" for text in names.every):
        return _not_seen(rule, context, call)
    else:
        written = f'{tpu} if {written} == "nccl" else {written}'

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        at = next(i for i, a in enumerate(old) if keyword_of(a) == "backend" or (not i and not a.keyword))
        kept = [with_value(a, written) if i == at else a for i, a in enumerate(old)]
        return [a for a in kept if keyword_of(a) not in GONE]

    if doubt or not any(k.arg in GONE for k in call.keywords):
        whole = [] if written == context.source(backend) else [New(backend, written, accelerator=False)]
        return context.rewrite(rule, call, *news, *whole, doubt=doubt)
    new = source if context.draft else change_call(source, None, arguments)
    return context.rewrite(rule, call, *news, New(call, new))


def ids_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``device_ids`` and ``output_device`` go: a process has one device."""
    gone = ("device_ids", "output_device")
    for call in context.calls(DDP, BARRIER):
        if len(call.args) > 1:
            yield context.leave(rule, call, POSITIONAL)
        elif any(k.arg in gone and not _is_none(k.value) for k in call.keywords):
            yield _without(rule, context, call, gone)


def _without(rule: Rule, context: Context, call: ast.Call, gone: tuple[str, ...]) -> Finding:
    source = context.source(call)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [a for a in old if keyword_of(a) not in gone]

    return context.change(rule, call, lambda: change_call(source, None, arguments), accelerator=False)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def spawn_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``mp.spawn(worker, args=..., nprocs=...)`` becomes ``torch_xla.launch(worker, args=...)``."""
    for node, found in context.uses(SPAWN):
        context.claimed.add(node)
        call = context.tree.parents[node]
        if context.target == "tpu":
            yield context.leave(rule, node, TPU_SPAWN)
        elif not (isinstance(call, ast.Call) and call.func is node) or starred(call) or len(call.args) > 2:
            yield context.leave(rule, node, POSITIONAL)
        elif _hands_on_count(context, call):
            yield context.leave(rule, call, COUNTED)
        else:
            yield _launch(rule, context, call, found.doubt)


def _launch(rule: Rule, context: Context, call: ast.Call, doubt: str) -> Finding:
    source = context.source(call)
    return context.change(rule, call, lambda: change_call(source, "torch_xla.launch", _launched), doubt=doubt)


def _launched(old: list[cst.Arg]) -> list[cst.Arg]:
    """The function and its arguments; torch_xla starts one process for each device, and waits for them."""
    return [a for a in old if not a.keyword or keyword_of(a) in ("fn", "args", "start_method")]


def _hands_on_count(context: Context, call: ast.Call) -> bool:
    """Whether the arguments of the function hold the number of devices or of processes."""
    values = {k.arg: k.value for k in call.keywords}
    handed = call.args[1] if len(call.args) > 1 else values.get("args")
    number = values.get("nprocs")
    if handed is None:
        return False
    names = {ast.unparse(n) for n in ast.walk(handed) if isinstance(n, ast.Name | ast.Attribute)}
    counts = {
        ast.unparse(t)
        for c in context.calls(COUNT)
        if isinstance(a := context.tree.parents[c], ast.Assign)
        for t in a.targets
    }
    if number is not None and not isinstance(number, ast.Constant) and chain(number):
        counts.add(ast.unparse(number))
    return bool(names & counts) or any(context.named(n, COUNT) for n in ast.walk(handed))


def counts_before_launch(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda.device_count()`` where processes are launched: counting would start the runtime too early."""
    launches = list(context.calls(SPAWN, "torch_xla.launch")) if context.target == "xla" else []
    if not launches:
        return
    functions = {context.tree.function(call) for call in launches} | {None}
    for call in context.calls(COUNT):
        if context.tree.function(call) in functions:
            context.claimed.add(call.func)
            around = context.tree.parents[call]
            if not (isinstance(around, ast.keyword) and around.arg == "nprocs"):
                yield context.leave(rule, call, EARLY)


def touched_before_launch(rule: Rule, context: Context) -> Iterator[Finding]:
    """``model.cuda()`` at module level, or above the launch in its function: the parent then holds the device."""
    launches = list(context.calls(*LAUNCHES))
    first = {context.tree.function(call): call.lineno for call in reversed(launches)}
    if not launches:
        return
    for call in context.calls(*SEEDS) if context.target == "xla" else ():
        if before_launch(context, call):
            context.claimed.add(call.func)
            yield context.leave(rule, call, EARLY_SEED)
    for call in context.tree.calls:
        function = context.tree.function(call)
        before = (function is None or function in first) and call.lineno < first.get(function, call.lineno + 1)
        if before and _touches(context, call):
            yield context.leave(rule, call, TOUCHED, effect="error")


def _touches(context: Context, call: ast.Call) -> bool:
    """Whether a call puts something on the device."""
    found = context.qualify(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    if found is not None:
        made = found.name.startswith("torch.") and found.name not in (*MAKERS, "torch.load", "torch.Generator")
        return made and any(k.arg == "device" and _is_device(context, k.value) for k in call.keywords)
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cuda":
        return chain(call.func)[:1] != ["self"]
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    return call.func.attr == "to" and any(_is_device(context, value) for value in given)


def _is_device(context: Context, node: ast.expr) -> bool:
    """Whether a value is the accelerator, as it is written or by what its variable was given."""
    if isinstance(node, ast.Constant):
        return str(node.value).startswith(("cuda", "xla", "tpu"))
    if isinstance(node, ast.Call):
        return context.named(node.func, *MAKERS) and all(_is_device(context, a) for a in node.args[:1])
    if not isinstance(node, ast.Name):
        return False
    home = scope_of(context.tree, node).find(node.id)
    values = [getattr(context.tree.parents.get(b.node), "value", None) for b in home.names[node.id]] if home else []
    return any(isinstance(v, ast.Call | ast.Constant) and _is_device(context, v) for v in values)
