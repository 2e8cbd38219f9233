"""Tests that decide between devices: availability, and branches that only a CUDA kernel can take."""

from __future__ import annotations

import ast
import re

from torchport.analysis.flows import scope_around
from torchport.analysis.kernels import called_name, is_launch, launching
from torchport.analysis.names import chain
from torchport.analysis.scopes import dotted, walk
from torchport.lazy import pattern, words
from torchport.project.paths import folder_of
from torchport.rewrite.context import Context
from torchport.rewrite.own_modules import is_own_module

COUNTS = ("torch.cuda.device_count", "torchport.shim.device_count", "torch_xla.device_count")
AVAILABLE = ("torch.cuda.is_available", "torch.accelerator.is_available", "torchport.shim.is_available")
CPU_AND_CUDA = "torch_(scatter|sparse|cluster|spline_conv)|pyg_lib|pylibcugraph"
LIBRARIES = f"triton|helion|flash_attn|xformers|apex|cupy|bitsandbytes|{CPU_AND_CUDA}"
LIBRARY = words(LIBRARIES)
"""Names that say it of the kernel even where the name of the test is CUDA's: ``if available: to_cuda(model)`` moves."""
KERNEL = words(rf"cuda|_kernel|{LIBRARIES}")
COMPILED = words(r"(^|\.)(_c|_ext|\w+_ext)(\.|$)|(^|\.)\w+_cuda\.")
"""Modules that are compiled for a project, ``_C`` and ``fused_act_ext``, where they are imported."""
EXTENSION = pattern(r"\w_cuda$|^cuda_\w|_cuda_\w")
"""Modules and functions that a project builds for CUDA: ``fused_adam_cuda``."""
HAS_ONE = words(r"^_?(has|have|with|is)_\w*cuda_(ext|kernel|op|plugin|hash|lib|impl)")
KERNELS = pattern(r"(^|[._])(kernels?|helion|triton\w*)(\.|$)|\w_cuda$")
OF_CUDNN = ("torch.cudnn_", "torch._C._cudnn")
"""Operators of PyTorch itself that exist for CUDA alone."""
NO_KERNELS = ("gpytorch", "botorch", "sklearn", "GPy")
"""Libraries whose kernels are functions of statistics."""
GIVES_ITEMS = ("__getitem__", "__getitems__", "__iter__")
PARTS = (ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Attribute)
ANSWERS = words(r"^_?(should_|can_)?(use|has|is|supports?)_\w*(kernel|custom|fused|triton|flash|xformers|plugin)")
"""Functions that answer whether a kernel can be used."""
WORKER = (
    "it runs in a worker process of the loader, which cannot open a TPU; hand on CPU tensors and move the batch in the "
    "training loop"
)
ASKED_FOR_CUDA = ("cuda", "gpu", "use_gpu", "use_cuda", "gpus", "n_gpu")
"""Arguments by which libraries ask for GPUs of NVIDIA."""
GPU_KEYWORDS = (b"cuda=", b"gpu=", b"gpus=")
LIBRARY_ASKS = "it tells another library whether there are GPUs of NVIDIA, and on a TPU there are none"
SPOKEN = words(rf"megatron|transformer.?engine|tensorrt|deepspeed|{LIBRARIES}")
ASSERTED = "its message says that a library needs CUDA, which a TPU does not have"
PACKAGE = pattern(r"CUDA\w*Provider|-gpu\b|cu1\d\d|[Tt]ensor[Rr][Tt]|nvidia")
PACKAGE_REASON = "it chooses a package or a provider that exists for CUDA alone"
KERNEL_REASON = "it guards a kernel that exists for CUDA alone: on a TPU the other branch has to run"


def is_available(context: Context, node: ast.expr) -> bool:
    """Whether ``node`` asks for an accelerator and nothing else."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords and context.named(node.func, *AVAILABLE)


def guards_kernel(context: Context, node: ast.AST, deep: int = 3) -> bool:
    """Whether ``node`` decides on a kernel of CUDA: by itself, or through the functions that answer with it."""
    if _decides_on(context, node, KERNEL):
        return True
    name = getattr(context.tree.function(node), "name", "")
    if ANSWERS.search(name):
        return True
    if not name or not deep or not _is_returned(context, node):
        return False
    asked = [call for call in context.tree.calls_of(name) if called_name(call).rpartition(".")[2] == name]
    return _imports_kernels(context) or any(guards_kernel(context, call, deep - 1) for call in asked)


def _is_returned(context: Context, node: ast.AST) -> bool:
    """Whether a test is the answer of its function."""
    parents = context.tree.ancestors(node)
    return isinstance(next((p for p in parents if not isinstance(p, PARTS)), None), ast.Return)


def _imports_kernels(context: Context) -> bool:
    """``import kernels``, ``from .triton_ops import matmul``: what such a file asks of a tensor it asks for these."""
    names: list[str] = []
    for statement in context.tree.imports:
        names += [alias.name for alias in statement.names]
        names += [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
    return any(KERNELS.search(name) for name in names)


def _decides_on(context: Context, node: ast.AST, names: re.Pattern[str]) -> bool:
    """Whether a kernel runs only where the test around ``node`` is true, or the test itself asks for one."""
    if _asks_for_library(context, node):
        return True
    parts = [*decided(context, node), *(part for read in flag_reads(context, node) for part in decided(context, read))]
    asserted = isinstance(context.tree.statement(node), ast.Assert)
    return any(
        _kernel_call(context, n, names, asserted) or _library_import(n) or _takes_kernel(context, n, names)
        for part in parts
        for n in walk(part)
    )


def flag_reads(context: Context, node: ast.AST) -> list[ast.expr]:
    """Where the flag is read that takes the test around ``node``, if it is read in one place alone.

    A flag with other readers decides on more than a kernel: were it held back, they would stay on the CPU unseen.
    """
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            found = readers(context, parent.targets[0])
            return [*found] if len(found) == 1 else []
        if not isinstance(parent, ast.BoolOp | ast.Compare | ast.UnaryOp | ast.Call | ast.Attribute):
            return []
        if isinstance(parent, ast.Call) and child is not parent.func:
            return []
        child = parent
    return []


def readers(context: Context, target: ast.expr) -> list[ast.Name | ast.Attribute]:
    """Where the file reads a variable, of its own scope and not of another by its name, or an attribute."""
    found = context.tree.reads(dotted(target))
    if not isinstance(target, ast.Name) or len(found) < 2:
        return found
    home = scope_around(context.tree, target).find(target.id)
    return [read for read in found if scope_around(context.tree, read).find(target.id) is home]


def _asks_for_library(context: Context, node: ast.AST) -> bool:
    """``x.is_cuda and HAS_TRITON``: the other half of the test asks for a library of CUDA."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
            others = [n for value in parent.values if value is not child for n in ast.walk(value)]
            names = [(chain(n) or [""])[-1] for n in others if isinstance(n, ast.Name | ast.Attribute)]
            there = [
                ast.unparse(n.left) for n in others if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.IsNot)
            ]
            return any(LIBRARY.search(n) or HAS_ONE.search(n) for n in names) or any(EXTENSION.search(n) for n in there)
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def _library_import(node: ast.AST) -> bool:
    """``import fused_adam_cuda`` and ``from nms_gpu import nms``, as they stand in a branch."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
    module = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    named = (*names, *module)
    return any(LIBRARY.search(n) or EXTENSION.search(n) or COMPILED.search(n) for n in named) or any(
        n.endswith("_gpu") for n in module
    )


def decided(context: Context, node: ast.AST) -> list[ast.AST]:
    """What runs only where the test that ``node`` is a part of is true of CUDA.

    The body of an ``if``; for a negative test its ``else``, or what follows where its body leaves the block; what
    follows an ``assert``.
    """
    child: ast.AST = node
    negative = False
    for parent in context.tree.ancestors(node):
        if (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)) or (
            isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.NotEq | ast.NotIn | ast.IsNot)
        ):
            negative = not negative
        elif isinstance(parent, ast.IfExp):
            return [parent.orelse if negative else parent.body] if child is parent.test else []
        elif isinstance(parent, ast.If):
            if child is not parent.test:
                return []
            if not negative:
                return [*parent.body]
            leaves = isinstance(parent.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            return [*parent.orelse, *(following(context, parent) if leaves else [])]
        elif isinstance(parent, ast.Assert):
            return following(context, parent) if child is parent.test else []
        elif isinstance(parent, ast.stmt):
            return []
        child = parent
    return []


def leaf(test: ast.expr) -> ast.expr:
    """A node inside a test from which its sign can be seen on the way out."""
    if isinstance(test, ast.UnaryOp):
        return test.operand
    return test.left if isinstance(test, ast.Compare) else test


def following(context: Context, statement: ast.stmt) -> list[ast.AST]:
    """The statements after ``statement`` in its block."""
    parent = context.tree.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block[block.index(statement) + 1 :]
    return []


def chooses_cuda(context: Context, node: ast.expr) -> str:
    """Why a test stays that chooses a package, a provider or a kernel which exists for CUDA alone."""
    found = context.qualify(node)
    places = (node, *flag_reads(context, node))
    if any(_chooses_package(context, place) for place in places):
        return PACKAGE_REASON
    if any(word in context.text.bytes for word in GPU_KEYWORDS) and any(_answers_library(context, p) for p in places):
        return LIBRARY_ASKS
    available = found is not None and found.name in AVAILABLE
    if available and _speaks_for_library(context, node):
        return ASSERTED
    return KERNEL_REASON if available and _decides_on(context, node, LIBRARY) else ""


def _chooses_package(context: Context, node: ast.AST) -> bool:
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.IfExp) and child is parent.test:
            texts = [n.value for n in ast.walk(parent) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            return any(PACKAGE.search(text) for text in texts)
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def _speaks_for_library(context: Context, node: ast.AST) -> bool:
    """``assert torch.cuda.is_available(), "Megatron requires CUDA."``: not what the program itself needs."""
    statement = context.tree.statement(node)
    said = statement.msg if isinstance(statement, ast.Assert) else None
    return isinstance(said, ast.Constant) and SPOKEN.search(str(said.value)) is not None


def _answers_library(context: Context, node: ast.AST) -> bool:
    """``easyocr.Reader(["en"], gpu=torch.cuda.is_available())``: neither PyTorch nor the project asks."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.keyword):
            call = context.tree.parents[parent]
            found = context.qualify(call.func) if isinstance(call, ast.Call) else None
            return parent.arg in ASKED_FOR_CUDA and found is not None and _is_library(context, found.name)
        if not isinstance(parent, ast.BoolOp | ast.UnaryOp | ast.IfExp) and not (
            isinstance(parent, ast.Call) and parent.func is child
        ):
            return False
        child = parent
    return False


def _is_library(context: Context, name: str) -> bool:
    """Whether something that is imported is of a library that is not PyTorch, not Python's own, not the project."""
    import sys

    module, root = name.rpartition(".")[0], name.partition(".")[0]
    if not root or root in ("torch", "torchport", "builtins") or root in sys.stdlib_module_names:
        return False
    return not is_own_module(context.path, root) and not is_own_module(context.path, module)


def workers(context: Context) -> list[ast.AST]:
    """Functions that run in the worker processes of a loader, as far as the file shows it."""
    return context.once(_workers)


def _workers(context: Context) -> list[ast.AST]:
    text = context.text.bytes
    if not any(word in text for word in (b"Dataset", b"collate_fn", b"worker_init_fn", b"worker_id")):
        return []
    names: set[str] = set()
    found: list[ast.AST] = []
    for call in context.tree.calls:
        for keyword in call.keywords:
            if keyword.arg not in ("collate_fn", "worker_init_fn"):
                continue
            value = _first_argument(keyword.value)
            if isinstance(value, ast.Lambda):
                found.append(value)
            elif parts := chain(value):
                names.add(parts[-1])
    for assign in context.tree.every(ast.Assign) if names else ():
        if not names.isdisjoint(t.id for t in assign.targets if isinstance(t, ast.Name)):
            names.update(chain(_first_argument(assign.value))[-1:])
    for function in context.tree.definitions:
        first = [a.arg for a in function.args.args[:1]]
        if (
            function.name in names
            or first == ["worker_id"]
            or (function.name in GIVES_ITEMS and _is_of_dataset(context, function))
        ):
            found.append(function)
    return _with_callees(context, found)


def _first_argument(value: ast.expr) -> ast.expr:
    """The function in ``partial(init, seed=0)``, and anything else as it is."""
    return value.args[0] if isinstance(value, ast.Call) and value.args else value


def _is_of_dataset(context: Context, function: ast.AST) -> bool:
    owner = context.tree.parents[function]
    return isinstance(owner, ast.ClassDef) and any("Dataset" in ast.unparse(base) for base in owner.bases)


def _with_callees(context: Context, nodes: list[ast.AST]) -> list[ast.AST]:
    """The functions, and those of the file and methods of their class that they call, however deep."""
    found = [*nodes]
    for node in found:
        owner = context.tree.parents[node]
        called = {dotted(n.func) for n in walk(node) if isinstance(n, ast.Call)}
        for function in context.tree.definitions:
            around = context.tree.parents[function]
            name = f"self.{function.name}" if isinstance(around, ast.ClassDef) else function.name
            reached = around is owner if isinstance(around, ast.ClassDef) else around is context.tree.module
            if name in called and reached and function not in found:
                found.append(function)
    return found


def _kernel_call(context: Context, node: ast.AST, names: re.Pattern[str], asserted: bool) -> bool:
    """Whether ``node`` calls a kernel. After an assertion, which has no other branch, it has to be certain."""
    if not isinstance(node, ast.Call):
        return False
    if is_launch(node) or called_name(node) in context.once(_launching):
        return True
    func = node.func
    found = context.qualify(func) if isinstance(func, ast.Name | ast.Attribute) else None
    if found is not None:
        in_torch = found.name.startswith("torch.ops.") and not asserted
        return in_torch or _is_kernel(context, found.name, func, names)
    if isinstance(func, ast.Attribute):
        return not asserted and func.attr not in ("cuda", "is_cuda") and bool(names.search(func.attr))
    return isinstance(func, ast.Name) and bool(names.search(func.id))


def _takes_kernel(context: Context, node: ast.AST, names: re.Pattern[str]) -> bool:
    """``multiply = multiply_cuda``: it is chosen here, and called elsewhere."""
    value = node.value if isinstance(node, ast.Assign | ast.Return) else None
    found = context.qualify(value) if isinstance(value, ast.Name | ast.Attribute) else None
    if found is not None and value is not None:
        return _is_kernel(context, found.name, value, names)
    return isinstance(value, ast.Name) and value.id in context.once(_launching)


def _is_kernel(context: Context, name: str, written: ast.expr, names: re.Pattern[str]) -> bool:
    """Whether something that is imported is a kernel, by its name, the one that it has here, or its module."""
    if name.startswith(("torch.", *NO_KERNELS)):
        return name.startswith(OF_CUDNN)
    here, module = chain(written)[-1], name.rpartition(".")[0]
    by_name = names.search(name) or names.search(here) or COMPILED.search(name) or KERNELS.search(module)
    return bool(by_name) or _is_kernel_of_project(context, name)


def _launching(context: Context) -> set[str]:
    """What in this file launches a kernel, as it is called here."""
    known = set()
    for statement in context.tree.imports if context.project.kernels else ():
        module = "." * statement.level + (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
        for alias in statement.names if module else ():
            if _is_kernel_of_project(context, f"{module}.{alias.name}"):
                known.add(alias.asname or alias.name)
    look = known or any(word in context.text.bytes for word in (b"triton", b"helion", b"cuda.jit"))
    return launching(context.tree.module, known) if look else known


def _is_kernel_of_project(context: Context, name: str) -> bool:
    """Whether a name that is imported launches a kernel in another file: ``kernels.fused``, ``Fused.apply``."""
    module, _, last = name.removesuffix(".apply").rpartition(".")
    part = module.rpartition(".")[2] or folder_of(context.path)
    return (last, part) in context.project.kernels
