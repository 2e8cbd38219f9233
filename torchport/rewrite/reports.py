"""What is seen and, for the most part, left for a person: dynamic access, star imports, code in texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.analysis.devices import stripped
from torchport.analysis.parameters import last_name
from torchport.analysis.scopes import dotted, walk
from torchport.lazy import pattern, words
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.imports import unresolved

VARIABLE = pattern(
    r"(?:.*\s)?((CUDA|NCCL|TORCH_NCCL|TORCH_CUDA|PYTORCH_CUDA|CUBLAS_WORKSPACE)_[A-Z0-9_]+)(?:=.*)?|.*\s(CUDA_VISIBLE_DEVICES)=.*",
    re.DOTALL,
)
OLD_XLA = {
    "XRT_TPU_CONFIG": "the runtime that read it is gone: set PJRT_DEVICE=TPU before torch_xla is imported",
    "XLA_USE_SPMD": "call torch_xla.runtime.use_spmd()",
}
OPTION = words(r"--?[\w-]*(gpu|cuda|nccl)[\w-]*")

INNER = """
amp amp.autocast_mode amp.common amp.grad_scaler comm gds graphs green_contexts jiterator memory nccl nvtx profiler
random sparse streams tunable"""
MODULES = (
    *("torch.cuda", "torch.backends.cuda", "torch.backends.cudnn"),
    *(f"torch.cuda.{name}" for name in INNER.split()),
)
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
BY_DEVICE = ("torch.get_device_module", "torch._utils._get_device_module")
NO_MODULE = "PyTorch/XLA has no device module; call what is needed of the shim"
ASKS_TORCH = "it asks what this PyTorch has, and the answer is the same on every device"
PROPERTIES = ("name", "total_memory", "multi_processor_count", "major", "minor")
BUILDS_PACKAGE = "cuda-build-script"
BUILDERS = ("setuptools", "distutils", "skbuild")
OTHER_ERROR = "errors of a TPU have other words; decide what the program should do then"
CUDA_SAYS = ("CUDA", "CUBLAS", "cuDNN")
ERROR_WORDS = words(r"error|fail|invalid|illegal|_status_|not supported|no kernel|assert")
SEARCHES = ("search", "match", "find", "startswith", "fullmatch")
OTHER_VENDOR = "written-for-another-accelerator"
VENDORS = (
    "intel_extension_for_pytorch", "oneccl_bindings_for_pytorch", "torch_ccl", "torch_npu", "torch_mlu", "torch_musa",
    "habana_frameworks", "torch_directml",
)  # fmt: skip
OTHER_BACKEND = "already-on-xla"
OLD_ENVIRONMENT = "old-xla-environment"
CODE = pattern(r"torch\.(backends\.)?cuda\b(?!\.\w+Tensor$)|\.cuda\(")
LAUNCHER = pattern(
    r"(^|[\s/])torchrun(\s|$)|(^|-m\s+)torch\.distributed\.(launch|run)(\s|$)|(^|\s)accelerate launch(\s|$)"
)
RUNS = frozenset(
    (
        *("eval", "exec", "_eval", "compile", "run", "Popen", "call", "check_call", "check_output", "system"),
        *("patch", "object", "setattr"),
    )
)
"""Functions that run a text, or name what they replace by one."""


def current_accelerator(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.accelerator.current_accelerator()`` knows nothing of PyTorch/XLA."""
    for node, _ in context.uses("torch.accelerator.current_accelerator"):
        context.claimed.add(node)
        if context.target == "tpu":
            continue
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node):
            yield context.leave(rule, node, "it is handed on without a call")
        elif isinstance(context.tree.parents[call], ast.Compare) or _asked_for_none(context, call):
            yield context.leave(
                rule, call, "it is tested for None, which the shim never gives; ask shim.is_available()"
            )
        else:
            yield context.rewrite(rule, call, New(call, context.spell.device()))


def _asked_for_none(context: Context, call: ast.Call) -> bool:
    """Whether the variable that takes the accelerator is tested for being there."""
    parent = context.tree.parents[call]
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    for node in [read for target in targets for read in context.tree.reads(dotted(target))]:
        around = context.tree.parents[node]
        tested = isinstance(around, ast.If | ast.IfExp | ast.While) and around.test is node
        none = isinstance(around, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in around.ops)
        if tested or none or isinstance(around, ast.BoolOp | ast.UnaryOp):
            return True
    return False


def device_properties(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda.get_device_properties(0).warp_size``: only some properties exist for every device."""
    for call in context.calls("torch.cuda.get_device_properties"):
        parent = context.tree.parents[call]
        if isinstance(parent, ast.Attribute) and parent.attr not in PROPERTIES:
            context.claimed.add(call.func)
            yield context.leave(rule, parent, f"`{parent.attr}` is a property of NVIDIA GPUs alone")


def builds_package(rule: Rule, context: Context) -> Iterator[Finding]:
    """A ``setup.py``: what it asks of CUDA it asks of the tool chain."""
    for node in context.tree.imports:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if any(name.partition(".")[0] in BUILDERS or name == "torch.utils.ffi" for name in names):
            yield context.leave(rule, node, rule.reason, effect="none")


def star_import(rule: Rule, context: Context) -> Iterator[Finding]:
    """``from torch.cuda import *``: where its names are used cannot be told from those of other places."""
    for scope in {context.tree.scope, *context.tree.scopes.values()}:
        for module, node in scope.stars:
            if module.startswith("torch.cuda"):
                used = sorted(unresolved(context.tree))
                yield context.leave(rule, node, f"{rule.reason}: {', '.join(used) or 'none seen'}")


def dynamic_access(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda`` as a value: what is asked of it later is not seen."""
    for node, _ in context.uses(*MODULES):
        context.claimed.add(node)
        if isinstance(node.ctx, ast.Load) and not _truth(context, node):
            asked = _asks_what_there_is(context, node)
            yield context.leave(rule, node, ASKS_TORCH if asked else rule.reason, effect="none" if asked else None)
    may = {*context.calls(*BY_DEVICE), *(call for name in BY_NAME for call in context.tree.called().get(name, ()))}
    for call in context.tree.calls if may else ():
        if call not in may:
            continue
        if reaches_module(context, call):
            yield context.leave(rule, call, rule.reason)
        elif context.target != "tpu" and _module_by_device(context, call):
            yield context.leave(rule, call, NO_MODULE, effect="error")


def _asks_what_there_is(context: Context, node: ast.expr) -> bool:
    """``hasattr(torch.cuda, "is_bf16_supported")``, and ``getattr`` of a literal whose value is only tested."""
    call = context.tree.parents[node]
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args[:1] == [node]):
        return False
    named = len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
    return named and (call.func.id == "hasattr" or (call.func.id == "getattr" and _truth(context, call)))


def _module_by_device(context: Context, call: ast.Call) -> bool:
    """``getattr(torch, device.type)`` and ``torch.get_device_module(device)``; a plain text is for another rule."""
    if context.named(call.func, *BY_DEVICE):
        return not any(isinstance(n, ast.Constant) for n in (*call.args, *(k.value for k in call.keywords)))
    named = isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) == 2
    if not (named and context.named(call.args[0], "torch")):
        return False
    asked = call.args[1]
    if isinstance(asked, ast.Constant) or not (stripped(asked)[1] or _is_type(context, asked)):
        return False
    tests = [n.test for n in context.tree.ancestors(call) if isinstance(n, ast.If | ast.IfExp)]
    return not any("hasattr(torch," in context.source(test) for test in tests)


def _is_type(context: Context, node: ast.expr) -> bool:
    """``kind`` of ``kind = torch.accelerator.current_accelerator().type``, or by its name ``accelerator_type``."""
    if "accelerator" in last_name(node):
        return True
    values = [a.value for a in context.tree.every(ast.Assign) if any(dotted(t) == dotted(node) for t in a.targets)]
    return bool(dotted(node)) and any(
        (isinstance(value, ast.Attribute) and value.attr == "type" and isinstance(value.value, ast.Call))
        or (isinstance(value, ast.Constant) and value.value == "xla")
        for value in values
    )


def reaches_module(context: Context, call: ast.Call) -> bool:
    """``getattr(torch, "cuda")`` and its like."""
    named = isinstance(call.func, ast.Name) and call.func.id in BY_NAME
    asked = call.args[1] if len(call.args) > 1 else None
    if not (named and isinstance(asked, ast.Constant) and asked.value in ("cuda", "cudnn")):
        return False
    return context.named(call.args[0], "torch", "torch.backends", "torch.Tensor", "torch.nn.Module")


def _truth(context: Context, node: ast.AST) -> bool:
    """``if cuda and cuda.is_available()``: only whether the import worked is asked."""
    parent = context.tree.parents[node]
    return isinstance(parent, ast.BoolOp | ast.If) or (isinstance(parent, ast.Compare) and len(parent.ops) == 1)


def cuda_in_text(rule: Rule, context: Context) -> Iterator[Finding]:
    """CUDA code in a text that is run, or whose name is patched; elsewhere it is only a note."""
    evaluated = {
        a.id
        for name in ("exec", "eval")
        for c in context.tree.called().get(name, ())
        if isinstance(c.func, ast.Name)
        for a in c.args
        if isinstance(a, ast.Name)
    }
    for node in context.tree.strings:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        if not any(isinstance(p, ast.Constant) and isinstance(p.value, str) and CODE.search(p.value) for p in parts):
            continue
        around = context.tree.ancestors(node)
        if isinstance(around[0], ast.Expr):
            continue
        calls = [n for n in around if isinstance(n, ast.Call)]
        targets = {t.id for n in around if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        runs = bool(targets & evaluated) or any(last_name(c.func) in RUNS for c in calls)
        yield context.leave(rule, node, rule.reason, effect=None if runs else "none")


def memory_text(rule: Rule, context: Context) -> Iterator[Finding]:
    """``"out of memory" in str(error)``: the words of CUDA, which no other back end uses."""
    for node in context.tree.strings:
        parent = context.tree.parents[node]
        text = str(node.value) if isinstance(node, ast.Constant) else ""
        if "out of memory" not in text and not (text.startswith(CUDA_SAYS) and _tells_an_error(context, node, text)):
            continue
        if isinstance(parent, ast.Compare) or (
            isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in SEARCHES
        ):
            yield context.leave(rule, parent, rule.reason if "out of memory" in text else OTHER_ERROR)


def _tells_an_error(context: Context, node: ast.expr, text: str) -> bool:
    """Whether a text stands for an error: by its words, or held against one; ``"CUDA Version"`` is of nvidia-smi."""
    if ERROR_WORDS.search(text):
        return True
    around = context.tree.ancestors(node)
    return any(isinstance(n, ast.ExceptHandler) for n in around) or "str(" in context.source(around[0])  # type: ignore[arg-type]


def other_backend(rule: Rule, context: Context) -> Iterator[Finding]:
    """A file that imports torch_xla or torch_tpu itself."""
    for node in context.tree.imports if context.tree is context.original else ():
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if any(name.partition(".")[0] in ("torch_xla", "torch_tpu") for name in names):
            yield context.leave(rule, node, rule.reason, effect="none")


def other_vendor(rule: Rule, context: Context) -> Iterator[Finding]:
    """A file that imports what another accelerator needs, and in which no word is of CUDA."""
    text = context.text.bytes.lower()
    if b"cuda" in text or b"nccl" in text:
        return
    for node in context.tree.imports if context.tree is context.original else ():
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if any(name.partition(".")[0] in VENDORS for name in names):
            yield context.leave(rule, node, rule.reason, effect="none")


def environment(rule: Rule, context: Context) -> Iterator[Finding]:
    """Environment variables of CUDA and NCCL: which devices a program sees is a decision, the others are notes."""
    for node in context.tree.strings:
        match = None if _is_documentation(context, node) else VARIABLE.fullmatch(shown(node))
        if match and (match[1] == shown(node) or any(isinstance(n, ast.Call) for n in context.tree.ancestors(node))):
            visible = "CUDA_VISIBLE_DEVICES" in match.groups()
            yield context.leave(rule, node, rule.reason, effect=None if visible else "none")
    for call in context.tree.calls:
        for keyword in call.keywords:
            if keyword.arg and VARIABLE.fullmatch(keyword.arg):
                visible = keyword.arg == "CUDA_VISIBLE_DEVICES"
                yield context.leave(rule, keyword.value, rule.reason, effect=None if visible else "none")


def old_xla_environment(rule: Rule, context: Context) -> Iterator[Finding]:
    """``os.environ["XLA_USE_BF16"] = "1"``, and what older programs for TPUs set."""
    asked = [node.slice for node in context.tree.every(ast.Subscript)]
    asked += [argument for call in context.tree.calls for argument in call.args[:1]]
    for node in asked:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in rule.triggers:
            yield context.leave(rule, node, OLD_XLA.get(node.value, rule.reason))


def shown(node: ast.Constant | ast.JoinedStr) -> str:
    """The text, with a placeholder for what an f-string computes."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(v.value) if isinstance(v, ast.Constant) else "_" for v in node.values)


def gpu_options(rule: Rule, context: Context) -> Iterator[Finding]:
    """``parser.add_argument("--gpu")``: what a user types goes on being read; a note."""
    adds = ("add_argument", "add_option", "option")
    for call in context.tree.calls if not context.tree.called().keys().isdisjoint(adds) else ():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in adds and any(isinstance(a, ast.Constant) and OPTION.fullmatch(str(a.value)) for a in call.args):
            yield context.leave(rule, call, rule.reason, effect="none")


def nvidia_smi(rule: Rule, context: Context) -> Iterator[Finding]:
    """``nvidia-smi`` as a command."""
    for node in context.tree.strings:
        command = isinstance(node, ast.Constant) and re.fullmatch(r"nvidia-smi(\s+-.*)?", str(node.value))
        if command and any(isinstance(n, ast.Call) for n in context.tree.ancestors(node)):
            yield context.leave(rule, node, rule.reason)


def launch_command(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torchrun`` in a command that the program runs; a note, but for TorchTPU, which wants its environment first."""
    for call in context.tree.calls:
        if last_name(call.func) not in RUNS:
            continue
        for node in walk(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and LAUNCHER.search(node.value):
                yield context.leave(rule, node, rule.reason, effect="error" if context.target == "tpu" else None)
    for assign in context.tree.every(ast.Assign):
        value = assign.value
        parts = (
            value.elts if isinstance(value, ast.List) else value.values if isinstance(value, ast.JoinedStr) else [value]
        )
        texts = [n.value for n in parts if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if any(map(LAUNCHER.search, texts)):
            yield context.leave(rule, assign.value, rule.reason)


def _is_documentation(context: Context, node: ast.AST) -> bool:
    return isinstance(context.tree.parents[node], ast.Expr)


def generator(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.Generator(device="cuda")``."""
    for call in context.calls("torch.Generator"):
        device = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
        if device is None or (isinstance(device, ast.Constant) and device.value == "cpu"):
            continue
        if context.spell.portable and len(call.args) + len(call.keywords) == 1:
            yield context.rewrite(rule, call.func, New(call.func, "shim.Generator"))
        else:
            yield context.leave(rule, call, rule.reason)
