"""For one target: ``torch.compile`` with its compiler, and activation checkpoints of torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.names import chain
from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of
from torchport.rewrite.precision import starred

if TYPE_CHECKING:
    import libcst as cst

COMPILE = "torch.compile"
CHECKPOINT = "torch.utils.checkpoint.checkpoint"
DROPPED = {"xla": ("mode", "options", "dynamic"), "tpu": ("mode", "options")}
GIVEN = 'its backend is not seen here; PyTorch/XLA compiles with backend="openxla"'
REFUSED = 'TorchTPU refuses mode=, options=, dynamic=True and backend="inductor": leave them out'
STARRED = (
    'its arguments are handed on with a star; TorchTPU refuses mode=, dynamic=True and backend="inductor" among them'
)
OPTIONS = {"fullgraph", "dynamic", "backend", "mode", "options", "disable"}
MODULE = pattern(r"model|net$|module|encoder|decoder|transformer|layer|block|vae|self")
BACKENDS = ("inductor", "openxla", "eager", "aot_eager")
OPENXLA = '"openxla"'
REENTRANT = (
    "PyTorch/XLA has the reentrant form alone, in which one of the inputs has to need a gradient: see that one does, "
    "then write torch_xla.utils.checkpoint.checkpoint(..., use_reentrant=True)"
)
KNOWN = ("use_reentrant", "preserve_rng_state")


def compile_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.compile(model, mode=...)`` for a target that has no shim."""
    for node, found in context.uses(COMPILE) if not context.spell.portable else ():
        context.claimed.add(node)
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            yield from _compiled(rule, context, call, found.doubt)
        elif context.target == "xla":
            if isinstance(call, ast.FunctionDef | ast.AsyncFunctionDef) and node in call.decorator_list:
                text = f"{context.source(node)}(backend={OPENXLA})"
                yield context.rewrite(rule, node, New(node, text), doubt=found.doubt)
            else:
                yield context.leave(rule, node, GIVEN)


def _compiled(rule: Rule, context: Context, call: ast.Call, doubt: str) -> Iterator[Finding]:
    values = {k.arg: k.value for k in call.keywords}
    backend = values.get("backend")
    xla = context.target == "xla"
    known = backend is None or (isinstance(backend, ast.Constant) and backend.value in BACKENDS)
    if starred(call) or (xla and not known):
        yield context.leave(rule, call, GIVEN if xla else STARRED)
        return
    dropped = {name for name in DROPPED[context.target] if name in values}
    dynamic, named = values.get("dynamic"), backend.value if isinstance(backend, ast.Constant) else None
    if not xla and dynamic is not None and not (isinstance(dynamic, ast.Constant) and not dynamic.value):
        dropped.add("dynamic")  # TorchTPU refuses dynamic=True
    if named == "inductor":
        dropped.add("backend")
    new = [argument(OPENXLA, "backend")] if xla and named in (None, "inductor") else []
    if not dropped and not new:
        return

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        return [*(a for a in old if keyword_of(a) not in dropped), *new]

    source = context.source(call)
    yield context.change(rule, call, lambda: change_call(source, None, arguments), accelerator=xla, doubt=doubt)


def module_compile(rule: Rule, context: Context) -> Iterator[Finding]:
    """``model.compile(mode=...)`` compiles a module in its place, with the default compiler unless one is given."""
    own = any(definition.name == "compile" for definition in context.tree.definitions)
    for call, func in context.methods("compile") if not own else ():
        given = {k.arg: k.value for k in call.keywords}
        values = {name: v.value if isinstance(v, ast.Constant) else ... for name, v in given.items()}
        named = MODULE.search((chain(func.value) or [""])[-1].lower()) is not None
        if call.args or not given.keys() <= OPTIONS or not (given or named) or values.get("disable") is True:
            continue
        refused = "mode" in given or "options" in given or values.get("dynamic") not in (None, False)
        default = values.get("backend") in (None, "inductor", ...)
        if context.target == "tpu" and (refused or values.get("backend") == "inductor"):
            yield context.leave(rule, call, REFUSED)
        elif context.target != "tpu" and default:
            yield context.leave(rule, call, rule.reason)


def checkpoint_alone(rule: Rule, context: Context) -> Iterator[Finding]:
    """``checkpoint(f, x, use_reentrant=True)`` of torch_xla; the other form is left for a person."""
    for node, found in context.uses(CHECKPOINT) if context.target == "xla" else ():
        context.claimed.add(node)
        call = context.tree.parents[node]
        if not (isinstance(call, ast.Call) and call.func is node) or any(k.arg is None for k in call.keywords):
            yield context.leave(rule, node, REENTRANT)
            continue
        values = {k.arg: k.value for k in call.keywords}
        form = values.get("use_reentrant")
        reentrant = form is None or (isinstance(form, ast.Constant) and form.value is True)
        if not reentrant or any(name not in KNOWN for name in values):
            yield context.leave(rule, call, REENTRANT)
        else:
            yield context.rewrite(rule, node, New(node, "torch_xla.utils.checkpoint.checkpoint"), doubt=found.doubt)
