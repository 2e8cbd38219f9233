"""Libraries of CUDA: reported where they are imported; what of Apex has an equal in PyTorch is rewritten."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from torchport.analysis.names import chain
from torchport.analysis.scopes import FUNCTIONS, dotted
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of
from torchport.rewrite.own_modules import is_own_module
from torchport.rewrite.precision import starred

if TYPE_CHECKING:
    import libcst as cst

GUARDED = "its import is guarded: where the library is missing the program already does without"
IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
BY_NAME = ("importlib.import_module", "importlib.util.find_spec", "pytest.importorskip")
EQUALS = {
    "apex.normalization.FusedLayerNorm": ("torch.nn.LayerNorm", 3, ()),
    "apex.normalization.FusedRMSNorm": ("torch.nn.RMSNorm", 3, (("eps", "1e-05"),)),
    "apex.optimizers.FusedAdam": ("torch.optim.AdamW", 2, (("weight_decay", "0.0"),)),
    "apex.optimizers.FusedSGD": ("torch.optim.SGD", 6, ()),
    "apex.optimizers.FusedAdagrad": ("torch.optim.Adagrad", 2, ()),
}
"""What is equal in PyTorch, how many arguments they have in the same places, and defaults in which they differ."""
WITHOUT_EFFECT = ("set_grad_none", "materialize_master_grads", "memory_efficient")
NO_EQUAL = {"bias_correction": True, "capturable": False, "master_weights": False, "amsgrad": False}
NO_EQUAL |= {"wd_after_momentum": False, "adagrad_w_mode": False}
"""Keywords that PyTorch has not got, with the value for which it is equal."""
NORM_PLACES = ("normalized_shape", "eps", "elementwise_affine")
KEPT = {"params", "lr", "betas", "eps", "weight_decay", "momentum", "dampening", "nesterov", *NORM_PLACES}


def library_import(rule: Rule, context: Context) -> Iterator[Finding]:
    """A library of CUDA, once where it is imported, with the number of its uses; a guarded import is a note."""
    modules = tuple(name.removesuffix(".*") for name in rule.match)
    uses: Counter[str] = Counter()
    for name, places in context.resolved.items():
        if module := _module(name, modules):
            own = [node for node, _ in places if node not in context.claimed]
            context.claimed.update(own)
            uses[module] += len(own)
    for node in context.tree.imports:
        named = {a: a.name if isinstance(node, ast.Import) else _from(node, a) for a in node.names}
        mine = {
            a: module
            for a, name in named.items()
            if a not in context.claimed and (module := _module(name, modules)) and not _is_own(context, node, name)
        }
        context.claimed.update(mine)  # a rule for a part of a library comes before that for the whole
        if hits := sorted({*mine.values()}):
            if _guarded(context, node):
                yield context.leave(rule, node, GUARDED, effect="none")
            else:
                count = sum(uses[hit] for hit in hits)
                times = "not used" if not count else "used once" if count == 1 else f"used {count} times"
                yield context.leave(rule, node, f"{rule.reason} ({times} in this file)")
    for call in context.calls(*BY_NAME):
        asked = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if isinstance(asked, str) and _module(asked, modules):
            asks = context.named(call.func, "importlib.util.find_spec") or _guarded(context, call)
            yield context.leave(rule, call, GUARDED if asks else rule.reason, effect="none" if asks else None)


def _from(node: ast.ImportFrom, alias: ast.alias) -> str:
    return "." if node.level else f"{node.module}.{alias.name}"


def _is_own(context: Context, node: ast.Import | ast.ImportFrom, name: str) -> bool:
    """``from triton.runner import core``, where the project has a folder ``triton/runner``."""
    return is_own_module(context.path, node.module or "" if isinstance(node, ast.ImportFrom) else name)


def _module(name: str, modules: tuple[str, ...]) -> str:
    """The one of ``modules`` that ``name`` is, or is a part of."""
    if not name.startswith(modules):
        return ""
    return next((module for module in modules if name == module or name.startswith(f"{module}.")), "")


def _guarded(context: Context, node: ast.AST) -> bool:
    """``try: import apex`` with a handler: without the library the program goes another way already."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body:
            handler = next((h for h in parent.handlers if _takes_import_errors(h)), None)
            if handler is not None:
                return not _gives_up(context, handler.body[-1])
        if isinstance(parent, (*FUNCTIONS, ast.Lambda)):
            return False
        child = parent
    return False


def _takes_import_errors(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (chain(kind) or [""])[-1] in IMPORT_ERRORS for kind in kinds)


def _gives_up(context: Context, last: ast.stmt) -> bool:
    """Whether a handler ends the program, or hands the error on."""
    if isinstance(last, ast.Raise):
        return True
    if isinstance(last, ast.Assert):
        return isinstance(last.test, ast.Constant) and not last.test.value
    call = last.value if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else None
    return call is not None and (
        dotted(call.func) in ("exit", "quit") or context.named(call.func, "sys.exit", "os._exit")
    )


def apex(rule: Rule, context: Context) -> Iterator[Finding]:
    """``FusedAdam(params)`` is ``torch.optim.AdamW(params, weight_decay=0.0)``; the rest of Apex is reported."""
    for node, found in context.uses(*EQUALS):
        if found.doubt or not _torch_is_there(context, node) or _import_guarded(context, found.name):
            continue
        new, places, defaults = EQUALS[found.name]
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            if arguments := _arguments(call, new, places, defaults):
                context.claimed.add(node)
                source = context.source(call)
                yield context.change(
                    rule,
                    call,
                    lambda s=source, a=arguments: change_call(s, a[0], lambda old: [*filter(a[1], old), *a[2]()]),  # type: ignore[misc]
                    accelerator=False,
                )
        elif not defaults and not new.startswith("torch.optim"):
            context.claimed.add(node)
            yield context.rewrite(rule, node, New(node, new, accelerator=False))
    yield from library_import(rule, context)


def _arguments(
    call: ast.Call, new: str, places: int, defaults: tuple[tuple[str, str], ...]
) -> tuple[str, Callable[[cst.Arg], bool], Callable[[], list[cst.Arg]]] | None:
    """The class, which arguments stay, and which are added; None where PyTorch has no equal of the call."""
    if starred(call) or len(call.args) > places:
        return None
    given = {k.arg: k.value for k in call.keywords}
    mode = given.pop("adam_w_mode", ast.Constant(True))
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, bool):
        return None
    for name, value in given.items():
        fixed = isinstance(value, ast.Constant) and name in NO_EQUAL and value.value is NO_EQUAL[name]
        if not fixed and name not in (*KEPT, *WITHOUT_EFFECT):
            return None
    if new.endswith("AdamW") and mode.value is False:
        new = "torch.optim.Adam"
    gone = {*WITHOUT_EFFECT, *NO_EQUAL, "adam_w_mode"}
    by_place = NORM_PLACES[: len(call.args)] if new.endswith("RMSNorm") else ()
    missing = [(key, value) for key, value in defaults if key not in given and key not in by_place]
    if new == "torch.optim.Adam":
        missing = []
    return new, lambda a: keyword_of(a) not in gone, lambda: [argument(value, key) for key, value in missing]


def _torch_is_there(context: Context, node: ast.Name | ast.Attribute) -> bool:
    """Whether the name ``torch`` is PyTorch where ``node`` stands."""
    base: ast.expr = node
    while isinstance(base, ast.Attribute):
        base = base.value
    scope = context.tree.scopes.get(node) or context.tree.scopes.get(base) or context.tree.scope
    home = scope.find("torch")
    return home is not None and all(b.kind == "import" and b.target == "torch" for b in home.names["torch"])


def _import_guarded(context: Context, name: str) -> bool:
    """Whether an import that the name may come from is inside a ``try``."""
    return any(
        _guarded(context, node)
        for node in context.tree.imports
        for alias in node.names
        if name.startswith(alias.name if isinstance(node, ast.Import) else _from(node, alias))
    )
