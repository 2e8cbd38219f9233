"""What a name or a dotted chain means: a qualified name, and whether that is certain."""

from __future__ import annotations

import ast
from functools import lru_cache

from torchport.analysis.scopes import Binding, Scope, Tree, dotted
from torchport.lazy import NamedTuple

OPTIMIZERS = (
    *("adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam", "radam", "rmsprop", "rprop", "sgd"),
    "sparse_adam",
)
MODULES = (
    *("activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout", "flatten"),
    *(
        "fold",
        "instancenorm",
        "lazy",
        "linear",
        "loss",
        "module",
        "normalization",
        "padding",
        "pixelshuffle",
        "pooling",
    ),
    *("rnn", "sparse", "transformer", "upsampling"),
)
SAME_MODULE = (
    ("torch.cuda.memory.", "torch.cuda."),
    ("torch.cuda.random.", "torch.cuda."),
    ("torch.cuda.streams.", "torch.cuda."),
    ("torch.cuda.graphs.", "torch.cuda."),
    ("torch.cuda.green_contexts.GreenContext", "torch.cuda.GreenContext"),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
    ("torch.cuda.amp.grad_scaler.", "torch.cuda.amp."),
    ("torch.cuda.amp.common.", "torch.cuda.amp."),
    ("torch.amp.autocast_mode.", "torch.amp."),
    ("torch.amp.grad_scaler.", "torch.amp."),
    ("torch.random.manual_seed", "torch.manual_seed"),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.nn.parallel.data_parallel.DataParallel", "torch.nn.DataParallel"),
    ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
    ("torch.multiprocessing.spawn.spawn", "torch.multiprocessing.spawn"),
    ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
    *((f"torch.optim.{module}.", "torch.optim.") for module in OPTIMIZERS),
    ("torch.serialization.", "torch."),
    ("torch.functional.", "torch."),
    ("torch.GradScaler", "torch.amp.GradScaler"),
    *((f"torch.nn.modules.{module}.", "torch.nn.") for module in MODULES),
    ("torch.nn.modules.", "torch.nn."),
    ("torch.nn.parallel.scatter_gather.", "torch.nn.parallel."),
    ("torch.nn.parallel.replicate.replicate", "torch.nn.parallel.replicate"),
    ("torch.nn.parallel.parallel_apply.parallel_apply", "torch.nn.parallel.parallel_apply"),
    ("torch.nn.parallel.data_parallel.data_parallel", "torch.nn.parallel.data_parallel"),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.nn.utils.spectral_norm.spectral_norm", "torch.nn.utils.spectral_norm"),
    ("torch.nn.utils.weight_norm.weight_norm", "torch.nn.utils.weight_norm"),
    ("torch.multiprocessing.spawn.start_processes", "torch.multiprocessing.start_processes"),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.profiler.profiler.", "torch.profiler."),
    ("torch.accelerator.memory.", "torch.accelerator."),
    ("torch.distributed.tensor.device_mesh.", "torch.distributed.device_mesh."),
)
"""The same object under two names: PyTorch re-exports what its submodules define. Longer beginnings come first."""
_LONG = tuple(long for long, _ in SAME_MODULE)
Attribute, Name = ast.Attribute, ast.Name


class Qualified(NamedTuple):
    """``name`` is what the chain stands for; ``doubt`` says why that is not certain, or is empty."""

    name: str
    doubt: str = ""


def line_mark(line: int) -> str:
    """A line of the text that is looked at, within a reason; the engine turns it into a line of the file."""
    return f"line @{line}@"


def canonical(name: str) -> str:
    """One spelling for names that PyTorch exports twice."""
    if not name.startswith(_LONG):
        return name
    for long, short in SAME_MODULE:
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def chain(node: ast.expr) -> list[str]:
    """``a.b.c`` as a list of parts; empty where it does not start at a name."""
    parts: list[str] = []
    while node.__class__ is Attribute:
        parts.append(node.attr)
        node = node.value
    if node.__class__ is not Name:
        return []
    parts.append(node.id)
    parts.reverse()
    return parts


def qualify(tree: Tree, node: ast.expr, scope: Scope | None = None) -> Qualified | None:
    """The qualified name of a name or a dotted chain, or None where it is local or unknown."""
    known = tree.qualified
    found: Qualified | None = None
    if scope is None and node in known:
        found = known[node]
        return found
    base = node
    while base.__class__ is Attribute:
        base = base.value
    if isinstance(base, ast.Name) and (base.id in tree.imported or base.id == "torch"):
        found = _found(tree, node, base, scope or tree.scopes.get(node) or tree.scopes.get(base) or tree.scope)
    if scope is None:
        known[node] = found
    return found


def _found(tree: Tree, node: ast.expr, base: ast.Name, scope: Scope) -> Qualified | None:
    home = scope.find(base.id)
    if home is None:
        return _from_star(tree, chain(node)) if base.id == "torch" else None
    bindings = home.names[base.id]
    if len(bindings) == 1 and bindings[0].kind != "import":
        return _loaded(tree, bindings[0], node) if base.id == "torch" else None
    if len(bindings) == 1:
        return _certain(bindings[0].target + dotted(node)[len(base.id) :])
    parts = chain(node)
    imports = {canonical(b.target) for b in bindings if b.kind == "import"}
    if not imports:
        return None
    others = [b for b in bindings if b.kind not in ("import", "none")]
    origin = min(imports)
    if any(name.startswith("torch") for name in imports):
        origin = min(name for name in imports if name.startswith("torch"))
    doubt = ""
    if len(imports) > 1:
        doubt = f"{parts[0]!r} is imported from different places: {', '.join(sorted(imports))}"
    elif others:
        line = getattr(others[0].node, "lineno", 0)
        doubt = f"{parts[0]!r} is also bound in another way, on {line_mark(line)}"
    return Qualified(canonical(".".join([origin, *parts[1:]])), doubt)


@lru_cache(8192)
def _certain(name: str) -> Qualified:
    return Qualified(canonical(name))


def _loaded(tree: Tree, binding: Binding, node: ast.expr) -> Qualified | None:
    """``torch = pytest.importorskip("torch")``: PyTorch all the same, most likely."""
    parent = tree.parents.get(binding.node)
    value = parent.value if isinstance(parent, ast.Assign) else None
    names = [a.value for a in value.args if isinstance(a, ast.Constant)] if isinstance(value, ast.Call) else []
    if value is None or "torch" not in names:
        return None
    doubt = f"'torch' is loaded in another way, on {line_mark(value.lineno)}"
    return Qualified(canonical(".".join(chain(node))), doubt)


def _from_star(tree: Tree, parts: list[str]) -> Qualified | None:
    """``torch`` that no statement of the file binds, in a file with star imports, most likely is PyTorch."""
    if parts[0] == "torch" and tree.scope.stars:
        return Qualified(canonical(".".join(parts)), f"'torch' comes from `from {tree.scope.stars[0][0]} import *`")
    return None
