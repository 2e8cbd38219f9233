"""Operators that a back end does not have, or that it hands to the host. Which they are is data of the rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from torchport.analysis.index import keyword
from torchport.analysis.loops import without_gradients
from torchport.analysis.scopes import walk
from torchport.lint.checks.facts import Facts, facts, moved_after, report
from torchport.lint.checks.selections import INSTEAD, repeats_by_tensor
from torchport.model import Finding, Rule, Target
from torchport.rewrite.context import Context, New
from torchport.rewrite.sparse import going_to_device

HOST_MODES = ("bicubic", "nearest-exact", "linear")
MISSING_MODES = ("trilinear",)
RESIZES = ("interpolate", "upsample", "Upsample")
RESIZERS = ("Resize", "RandomResizedCrop", "resize", "resized_crop")
"""Of torchvision; those in capitals make a layer."""
POOLS = ("adaptive_avg_pool2d", "adaptive_max_pool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d")
EMBEDDINGS = (
    "torch.nn.Embedding",
    "torch.nn.EmbeddingBag",
    "torch.nn.Embedding.from_pretrained",
    "torch.nn.functional.embedding",
    "torch.nn.functional.embedding_bag",
)
OF_WEIGHTS = {
    "parametrizations.spectral_norm": "the older torch.nn.utils.spectral_norm computes on the device",
    ".weight_norm": "write it out (g * v / v.norm(dim=dim, keepdim=True)), and take it off for inference",
}
"""What to do about an operator on the weights of a layer, which no loader can compute."""
SHARED = frozenset(
    ("median", "mode", "angle", "cross", "det", "poisson", "multinomial", "stft", "trace", "fft", "inverse", "isin",
     "searchsorted", "renorm", "cholesky", "copysign", "gcd", "binomial")
)  # fmt: skip
"""Methods that arrays, frames and what programs define have as well."""
CREATES = ("tril_indices", "triu_indices")
INFERENCE = ("torch.inference_mode", "torch.autograd.grad_mode.inference_mode", "torch.autograd.inference_mode")
DOUBLE = ("torch.float64", "torch.double", "torch.complex128", "torch.cdouble")
DOUBLE_ARRAYS = frozenset(("rand", "randn", "linspace", "random", "zeros", "ones", "normal", "uniform"))


def host_operators(rule: Rule, context: Context) -> Iterator[Finding]:
    """Operators that PyTorch/XLA runs on the host."""
    yield from _operators(rule, context, other="tpu")


def missing_operators(rule: Rule, context: Context) -> Iterator[Finding]:
    """Operators that TorchTPU does not have."""
    yield from _operators(rule, context, other="xla")
    if context.target != "xla":
        yield from _smooth_resizes(rule, context)


def _smooth_resizes(rule: Rule, context: Context) -> Iterator[Finding]:
    """``v2.Resize(32)(x)`` and ``resize(x, 32)`` of torchvision on a tensor that is certainly on the device."""
    known = facts(context)
    for made in known.named(*RESIZERS):
        name = known.flow.name_of(made.func)
        call = context.tree.parents[made] if name.rpartition(".")[2].startswith("R") else made
        if not name.startswith("torchvision.transforms.") or not isinstance(call, ast.Call) or not call.args:
            continue
        smooth, mode = keyword(made, "antialias"), keyword(made, "interpolation")
        plain = isinstance(smooth, ast.Constant) and smooth.value is False
        nearest = isinstance(mode, ast.Attribute) and mode.attr.startswith("NEAREST")
        value = known.value(call.args[0])
        if value.is_tensor and value.where == "device" and not plain and not nearest:
            yield report(rule, context, call)


def _claim(rule: Rule, context: Context) -> None:
    """Not every use of these names is a finding: which are is decided here."""
    context.claimed.update(node for node, _ in context.uses(*rule.match))


def _operators(rule: Rule, context: Context, other: Target) -> Iterator[Finding]:
    """What the rule names, unless the file is for the ``other`` back end alone."""
    _claim(rule, context)
    if context.target == other:
        return
    known = facts(context)
    error = rule.effect == "error"
    modes = MISSING_MODES if error else HOST_MODES
    functions, methods = _named_by(rule.match)
    for call in context.calls(*functions):
        if _functional(known, call, error) and _chosen(call, modes):
            divides = "adaptive_avg" in ast.unparse(call.func).lower().replace("adaptiveavg", "adaptive_avg")
            reason = next(
                (said for name, said in OF_WEIGHTS.items() if known.flow.name_of(call.func).endswith(name)), ""
            )
            yield report(rule, context, call, reason, perhaps=divides)
    if not error:
        yield from _repeated(rule, context, known)
    for call in known.named(*methods):
        func = call.func
        if not isinstance(func, ast.Attribute) or context.qualify(func) is not None:
            continue
        value = known.value(func.value)
        proper = (value.kind == "tensor" and value.on_device) or (value.kind == "unknown" and func.attr not in SHARED)
        if proper and known.heat(call) and _chosen(call, modes):
            yield report(rule, context, call)


@cache
def _named_by(match: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The functions that a rule names, and the methods, by their last part."""
    functions = tuple(name for name in match if not name.startswith("torch.Tensor."))
    methods = {name.rpartition(".")[2] for name in match if name.count(".") == 1 or "Tensor." in name}
    return functions, tuple(sorted(methods))


def _repeated(rule: Rule, context: Context, known: Facts) -> Iterator[Finding]:
    """``x.repeat_interleave(counts, output_size=n)``: of a known size, and still done on the host."""
    for call in known.named("repeat_interleave"):
        if keyword(call, "output_size") is None or not repeats_by_tensor(known, call) or not known.heat(call):
            continue
        name = known.flow.name_of(call.func)
        base = call.args[0] if name and call.args else getattr(call.func, "value", None)
        if name in ("", "torch.repeat_interleave") and known.value(base).where != "host":
            yield report(rule, context, call, INSTEAD["repeat_interleave"])


def _functional(known: Facts, call: ast.Call, error: bool) -> bool:
    """A layer that is made, or a function that is called in a step on what may be on the device.

    What is an error is one out of a step as well, where the device is certain.
    """
    name = known.flow.name_of(call.func).rpartition(".")[2]
    if name[:1].isupper() or name.endswith("_norm"):
        return True
    if not known.heat(call):
        return error and bool(call.args) and known.value(call.args[0]).where == "device"
    if name in CREATES:
        return keyword(call, "device") is not None and known.value(call).where != "host"
    return not any(known.value(a).where == "host" and known.value(a).is_tensor for a in call.args[:1])


def _chosen(call: ast.Call, modes: tuple[str, ...]) -> bool:
    """Whether the arguments choose the form that is not there."""
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name in RESIZES:
        mode, smooth = keyword(call, "mode"), keyword(call, "antialias")
        if isinstance(smooth, ast.Constant) and smooth.value is True:
            return True
        return isinstance(mode, ast.Constant) and mode.value in modes
    if name in POOLS:
        size = call.args[-1] if call.args else keyword(call, "output_size")
        return isinstance(size, ast.Constant) and isinstance(size.value, int) and size.value % 2 == 1 and size.value > 1
    if name == "multinomial":
        count = call.args[1] if len(call.args) == 2 else keyword(call, "num_samples")
        replacing = keyword(call, "replacement")
        many = isinstance(count, ast.Constant) and count.value != 1
        return many and not (isinstance(replacing, ast.Constant) and replacing.value is True)
    return True


def cdist(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cdist`` in a step that computes gradients: its backward pass runs on the host."""
    known = facts(context)
    for call in context.calls("torch.cdist"):
        values = [known.value(a) for a in call.args[:2]]
        if context.target == "tpu" or known.heat(call) != "step" or without_gradients(context.tree, call):
            continue
        if all(v.on_device or v.kind == "unknown" for v in values):
            yield report(rule, context, call, perhaps=True)


def inference_mode(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.inference_mode()``, under which PyTorch/XLA cannot compute; ``no_grad`` gives the same numbers."""
    for node, _ in context.uses(*INFERENCE):
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            given = [*call.args, *(k.value for k in call.keywords)]
            if any(isinstance(a, ast.Constant) and a.value is False for a in given):
                continue
            plain = all(isinstance(a, ast.Constant) and a.value is True for a in given)
            place: ast.expr = call
        else:
            plain, place = True, node
        source = context.source(node)
        if not plain or not source.endswith(".inference_mode") or source.count(".") != 1:
            yield report(rule, context, place)
        else:
            text = source.removesuffix("inference_mode") + "no_grad" + ("()" if place is call else "")
            yield context.rewrite(rule, place, New(place, text, False))


def sparse(rule: Rule, context: Context) -> Iterator[Finding]:
    """Sparse tensors, and layers and optimizers that make them."""
    known = facts(context)
    _claim(rule, context)
    modules = tuple(name for name in context.resolved if name.startswith("torch.sparse."))
    said = [] if context.target == "tpu" else going_to_device(context)
    for call in context.calls(*rule.match, *EMBEDDINGS, *modules):
        name = known.flow.name_of(call.func)
        if call in said:
            continue  # by TP123
        given = keyword(call, "sparse")
        if name.endswith(("Embedding", "EmbeddingBag", "from_pretrained", "embedding", "embedding_bag")):
            if isinstance(given, ast.Constant) and given.value is True:
                yield report(rule, context, call)
        elif name.startswith("torch.optim."):
            yield report(rule, context, call)
        else:
            given_values = [known.value(a) for a in call.args]
            moved = keyword(call, "device") is not None or moved_after(context.tree, call)
            on_device = any(v.is_tensor and v.where != "host" for v in given_values)
            yield report(rule, context, call, perhaps=not (moved or on_device))
    for call in known.named("to_sparse", "to_sparse_csr"):
        value = known.value(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if value is not None and value.on_device and call not in said:
            yield report(rule, context, call, perhaps=value.where != "device" and not known.heat(call))


def double(rule: Rule, context: Context) -> Iterator[Finding]:
    """float64 and complex128 on the device."""
    known = facts(context)
    for call in known.named("double"):
        if isinstance(call.func, ast.Attribute) and context.qualify(call.func) is None and not call.args:
            value = known.value(call.func.value)
            if value.on_device and (known.heat(call) or value.where == "device"):
                yield report(rule, context, call)
    for node, _ in context.uses(*DOUBLE):
        around = context.tree.parents[node]
        if isinstance(around, ast.keyword):
            around = context.tree.parents[around]
        if not isinstance(around, ast.Call):
            continue
        value = known.value(around)
        if context.named(around.func, "torch.set_default_dtype") or (
            value.kind == "tensor" and value.where == "device"
        ):
            yield report(rule, context, around)
    for call in known.named("from_numpy", "tensor", "as_tensor"):
        if not call.args or keyword(call, "dtype") is not None or not isinstance(call.args[0], ast.Call):
            continue
        made = known.flow.name_of(call.args[0].func)
        if made.startswith("numpy.") and made.rpartition(".")[2] in DOUBLE_ARRAYS and not call.args[0].keywords:
            parent = context.tree.parents[call]
            moved = isinstance(parent, ast.Attribute) and parent.attr == "cuda"
            if moved or keyword(call, "device") is not None:
                yield report(rule, context, call)


ACTS = (ast.Call, ast.Continue, ast.Break, ast.Return)


def random_graph(rule: Rule, context: Context) -> Iterator[Finding]:
    """``if random.random() < p`` in a step: each way through is a program of its own."""
    known = facts(context)
    for branch in context.tree.every(ast.If):
        if not any(isinstance(n, ast.Call) and _draws(known, n) for n in ast.walk(branch.test)):
            continue
        if not any(isinstance(n, ACTS) for part in (*branch.body, *branch.orelse) for n in walk(part)):
            continue  # it draws a number, which matters where a tensor's size depends on it
        loops = [n for n in context.tree.ancestors(branch) if isinstance(n, ast.For) and n not in known.heats.loops]
        if known.heat(branch.test) == "step" and loops:
            yield report(rule, context, branch.test)
        elif known.heat(branch.test) == "step":
            yield report(rule, context, branch.test, perhaps=True)


def _draws(known: Facts, call: ast.Call) -> bool:
    name = known.flow.name_of(call.func)
    return name.startswith(("random.", "numpy.random.")) and name.rpartition(".")[2] in (
        "random", "rand", "uniform", "randint", "choice",
    )  # fmt: skip
