"""Gradient scalers for one target: bfloat16 needs none, so a scaler goes with all its calls, or is made disabled.

A disabled scaler hands losses and steps through, has the scale 1 and an empty state, and takes any saved state: what it
is asked for elsewhere stays right. So nothing is ever half taken out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.literals import device_text
from torchport.analysis.names import chain
from torchport.model import Edit, Finding, Rule
from torchport.project.paths import stem_of
from torchport.rewrite.context import Context, New
from torchport.rewrite.cst import argument, change_call, keyword_of
from torchport.rewrite.precision import STARRED, VALUE, starred
from torchport.rewrite.statements import removal

if TYPE_CHECKING:
    import libcst as cst

CUDA = "torch.cuda.amp.GradScaler"
ANY = "torch.amp.GradScaler"
SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
CLASS_TESTS = ("isinstance", "issubclass")


def scaler_alone(rule: Rule, context: Context, name: str) -> Iterator[Finding]:
    """Every scaler that the file makes with the class ``name``."""
    for node, found in context.uses(name):
        context.claimed.add(node)
        call = context.tree.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            if name == CUDA or _is_for_cuda(call):
                yield _made(rule, context, call, name, found.doubt)
        elif name == CUDA:
            tested = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CLASS_TESTS
            if tested:
                yield context.rewrite(rule, node, New(node, f"{context.spell.torch}.amp.GradScaler"), doubt=found.doubt)
            else:
                context.claimed.discard(node)  # an annotation, or handed on: the names of the catalogue say which
                if not _annotates(context, node):
                    context.claimed.add(node)
                    yield context.leave(rule, node, VALUE)


def _annotates(context: Context, node: ast.AST) -> bool:
    from torchport.rewrite.rename import in_annotation

    return in_annotation(context, node)


def _is_for_cuda(call: ast.Call) -> bool:
    """``GradScaler("cuda")``, ``GradScaler()``, or one for a device that is computed, unless it is off already."""
    values = {k.arg: k.value for k in call.keywords}
    off = values.get("enabled")
    device = call.args[0] if call.args else values.get("device")
    if isinstance(off, ast.Constant) and off.value is False and device is not None and device_text(device) is None:
        return False
    return device is None or device_text(device) is not None or not isinstance(device, ast.Constant)


def _made(rule: Rule, context: Context, call: ast.Call, name: str, doubt: str) -> Finding:
    if starred(call):
        return context.leave(rule, call, STARRED)
    edits = _taken_out(context, call)
    if edits:
        return context.edited(rule, context.tree.statement(call), edits, "", review="read", doubt=doubt)
    return _disabled(rule, context, call, name, doubt)


def _disabled(rule: Rule, context: Context, call: ast.Call, name: str, doubt: str) -> Finding:
    """``torch.amp.GradScaler("xla", enabled=False)``, the other arguments as they were."""
    last = 4 if name == CUDA else 5
    computed = name == ANY and _computed_device(call)

    def arguments(old: list[cst.Arg]) -> list[cst.Arg]:
        rest = [a for i, a in enumerate(old) if keyword_of(a) != "enabled" and (a.keyword or i != last)]
        if name == ANY and not computed:
            rest = [a for i, a in enumerate(rest) if keyword_of(a) != "device" and not (i == 0 and not a.keyword)]
        first = [] if computed else [argument(context.spell.text())]
        return [*first, *rest, argument("False", "enabled")]

    source = context.source(call)
    function = f"{context.spell.torch}.amp.GradScaler" if name == CUDA else None
    return context.change(rule, call, lambda: change_call(source, function, arguments), doubt=doubt)


def _computed_device(call: ast.Call) -> bool:
    device = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    return device is not None and device_text(device) is None


def _taken_out(context: Context, call: ast.Call) -> list[Edit]:
    """The edits that take the scaler out with all its calls; none where one of them asks for more than that."""
    assign = context.tree.parents[call]
    target = assign.targets[0] if isinstance(assign, ast.Assign) and len(assign.targets) == 1 else None
    if not isinstance(assign, ast.Assign) or not isinstance(target, ast.Name):
        return []
    home = context.tree.scopes[call].find(target.id)
    if home is None or len(home.names[target.id]) != 1 or home.kind == "class":
        return []
    if home.kind == "module" and _exported(context, target.id):
        return []
    gone: list[ast.stmt] = [assign]
    edits: list[Edit] = []
    for node in context.tree.names:
        parts = chain(node)
        if parts[:1] != [target.id] or node is target:
            continue
        if (context.tree.scopes.get(node) or context.tree.scope).find(target.id) is not home:
            continue
        found = _use(context, node, parts, gone)
        if found is None:
            return []
        edits += found
    taken = tuple(gone)
    return [*edits, *(removal(context.tree, context.text, statement, gone=taken) for statement in gone)]


def _exported(context: Context, name: str) -> bool:
    """Whether the file says that other files may use the name, or some import the file."""
    return stem_of(context.path) in context.project.imported or any(
        isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__all__" for t in n.targets)
        and name in ast.unparse(n.value)
        for n in context.tree.module.body
    )


def _use(context: Context, node: ast.expr, parts: list[str], gone: list[ast.stmt]) -> list[Edit] | None:
    """The edits for one call of the scaler, statements that go whole in ``gone``; None where it has to stay."""
    call = context.tree.parents[node]
    if len(parts) != 2 or not (isinstance(call, ast.Call) and call.func is node) or starred(call):
        return None
    statement = context.tree.parents[call]
    wanted = {"unscale_": 1, "update": 0}.get(parts[1])
    if isinstance(statement, ast.Expr) and wanted == len(call.args) and not call.keywords:
        gone.append(statement)
        return []
    if parts[1] == "scale" and len(call.args) == 1 and not call.keywords:
        return _unwrapped(context, call, call.args[0])
    if parts[1] == "step" and call.args and not isinstance(call.args[0], ast.Starred):
        return _stepped(context, call)
    return None


def _unwrapped(context: Context, call: ast.Call, inner: ast.expr) -> list[Edit] | None:
    """``scaler.scale(loss)`` becomes ``loss``."""
    text = context.text
    (start, end), (first, last) = text.span(call), text.span(inner)
    if b"#" in text.bytes[start:first] + text.bytes[last:end]:
        return None
    left, right = ("", "") if isinstance(inner, SIMPLE) else ("(", ")")
    return [Edit(start, first, left), Edit(last, end, right)]


def _stepped(context: Context, call: ast.Call) -> list[Edit] | None:
    """``scaler.step(optimizer, closure)`` becomes ``optimizer.step(closure)``."""
    text = context.text
    optimizer = call.args[0]
    rest = [*call.args[1:], *(k.value for k in call.keywords)]
    start, end = text.span(call)
    if b"#" in text.bytes[start:end] or not isinstance(optimizer, SIMPLE):
        return None
    if not rest:
        return [Edit(start, end, f"{context.source(optimizer)}.step()")]
    last = text.span(optimizer)[1]
    tail = text.bytes[last:end].decode().lstrip().removeprefix(",").lstrip()
    return [Edit(start, end, f"{context.source(optimizer)}.step({tail}")]


def grad_scaler(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda.amp.GradScaler`` for a target that has no shim."""
    if not context.spell.portable:
        yield from scaler_alone(rule, context, CUDA)
