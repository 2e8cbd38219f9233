"""Functions that launch a kernel for CUDA, by the names under which a program calls them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator

from torchport.analysis.names import chain
from torchport.analysis.scopes import FUNCTIONS, dotted, walk
from torchport.project.paths import folders_of, stem_of

LIBRARIES = ("triton", "helion")
MAKERS = ("jit", "kernel", "autotune", "heuristics")
"""Functions of these that make a kernel; so does ``numba.cuda.jit``."""
LAUNCH = "[grid]"
"""Stands for the name of what is launched."""
RUN_WITH_THE_CLASS = ("forward", "__init__", "__call__")
"""Methods that who calls ``Class.apply(x)`` or ``Class()(x)`` runs, without a word of them."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef


def kernel_names(text: str, path: str) -> set[tuple[str, str]]:
    """Functions and classes of a file that launch kernels, each with every module through which it may be imported.

    None where the text is not Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = launching(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    places = (stem_of(path), *(folders_of(path) or ("",)))
    return {(name, part) for name in found if "." not in name for part in places}


def launching(module: ast.Module, known: Iterable[str] = ()) -> set[str]:
    """What launches a kernel and does not ask for CUDA itself: ``function``, ``Class``, ``self.method``.

    ``known`` are names of the file that stand for such functions of other files.
    """
    nodes = walk(module)
    decorators = _decorators(nodes)
    definitions = list(_definitions(nodes))
    found = {*known, *(n.name for _, n in definitions if any(_makes_kernel(d, decorators) for d in n.decorator_list))}
    assigned = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call | ast.Attribute)]
    for assign in assigned:
        if isinstance(assign.value, ast.Call) and _makes_kernel(assign.value, decorators):
            found |= {dotted(target) for target in assign.targets}
    waiting = [(owner, n, {*_called(n)}) for owner, n in definitions if not _asks_for_cuda(n)]
    size = -1
    while size != len(found):
        size = len(found)
        for owner, definition, called in waiting:
            if not called.isdisjoint(found | {LAUNCH}):
                found |= {definition.name} if owner is None else {f"self.{definition.name}"}
                found |= {owner.name} if owner is not None and definition.name in RUN_WITH_THE_CLASS else set()
        for assign in assigned:
            if _hands_on(assign.value) in found:
                found |= {dotted(target) for target in assign.targets}
    return found - {""}


def _hands_on(value: ast.expr) -> str:
    """``Fused`` of ``Fused()`` and ``Fused.apply``, which can be called later; ``fused(x)`` is a result."""
    name = dotted(value.func if isinstance(value, ast.Call) else value)
    if isinstance(value, ast.Attribute):
        return name.removesuffix(".apply") if name.endswith(".apply") else "-"
    return name if name[:1].isupper() or name.lstrip("_")[:1].isupper() else "-"


def is_launch(call: ast.Call) -> bool:
    """``kernel[grid](x)`` of Triton or Numba, ``kernel(grid=.., block=.., args=..)``; ``layers[i](x)`` is none."""
    if not isinstance(call.func, ast.Subscript):
        return {"grid", "block"} <= {keyword.arg for keyword in call.keywords}
    index = call.func.slice
    return "grid" in (chain(index) or [""])[-1].lower() or isinstance(index, ast.Lambda | ast.Tuple)


def called_name(call: ast.Call) -> str:
    """``f`` of ``f(x)`` and ``f[grid](x)``, ``Class`` of ``Class.apply(x)``, ``self.method`` of its call."""
    func = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return dotted(func).removesuffix(".apply")


def _decorators(nodes: list[ast.AST]) -> set[str]:
    """Names of the file that stand for a library of kernels or for something out of it."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name for a in node.names if a.name.partition(".")[0] in LIBRARIES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES:
            found |= {a.asname or a.name for a in node.names}
    return found


def _definitions(nodes: list[ast.AST]) -> Iterator[tuple[ast.ClassDef | None, Definition]]:
    """Functions and methods, the latter with their class."""
    methods = {n: owner for owner in nodes if isinstance(owner, ast.ClassDef) for n in owner.body}
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            yield methods.get(node), node


def _makes_kernel(node: ast.expr, decorators: set[str]) -> bool:
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    made = name.partition(".")[0] in decorators and name.rpartition(".")[2] in MAKERS
    return made or name.endswith("cuda.jit")


def _called(definition: Definition) -> Iterator[str]:
    """What a function calls."""
    for node in walk(definition):
        if isinstance(node, ast.Call):
            yield LAUNCH if is_launch(node) else called_name(node)


def _asks_for_cuda(definition: Definition) -> bool:
    """Whether a function chooses between devices by itself; to raise on any other is no choice."""
    for node in walk(definition):
        if isinstance(node, ast.If | ast.IfExp) and any(_is_question(n) for n in walk(node.test)):
            return not (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise))
    return False


def _is_question(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("is_cuda", "is_available")
    return isinstance(node, ast.Constant) and node.value == "cuda"
