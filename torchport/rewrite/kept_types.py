"""Tensor types of CUDA that are kept: ``Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor``.

The shim has a type for each, which makes tensors of the device. ``x.type(Tensor)`` does not take it: a function of the
shim stands in its place, wherever the file uses a name that holds such a type.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchport.analysis.names import line_mark
from torchport.model import Edit, Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.spelling import SHIM

GROUP = "kept tensor types"
BLANKS = b" \t\r\n\\"
PASSING = (ast.IfExp, ast.BoolOp, ast.Tuple, ast.List)
"""What has the value of one of its parts, or holds it."""
HALF = "torch.cuda.HalfTensor"
STAYS = "a `.type(...)` that is given what holds it is left to a person, {}; the two change together"
OWN_NAMES = "PyTorch/XLA does not take the names of its own types: write tensor.to(other)"
BESIDE = "write shim.as_type(tensor, kind): something stands inside this call that would be lost"


def kept_types(rule: Rule, context: Context, classes: Iterable[str]) -> Iterator[Finding]:
    """Each class of CUDA that is called or kept, together with the places where ``.type`` is given what holds one."""
    held: set[str] = set()
    kept: list[tuple[ast.expr, str]] = []
    for name in classes:
        ours = f"{SHIM}.{name.rpartition('.')[2]}"
        for node, found in context.uses(name, ours) if name != HALF else ():
            taken = node not in context.claimed and not found.doubt and _is_taken(context, node, held)
            if taken and found.name == name:
                kept.append((node, ours))
    for call in context.tree.called().get("type", ()):
        if _asks(call):
            _is_kept(context, call, held)
    _spread(context, held)
    casts = [*_casts(rule, context, held)]
    stays = next((cast for cast in casts if not cast.edits), None)
    for cuda, ours in kept:
        context.claimed.add(cuda)
        if stays is not None:
            yield context.leave(rule, cuda, STAYS.format(line_mark(context.text.line(stays.start))))
        else:
            yield context.rewrite(rule, cuda, New(cuda, ours.removeprefix("torchport.")), group=GROUP)
    yield from casts if stays is None else [cast for cast in casts if not cast.edits]


def _asks(node: ast.AST) -> bool:
    """``x.type()``: the name of its type, with the device in it."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "type"
        and not (node.args or node.keywords)
    )


def names_of_types(rule: Rule, context: Context) -> Iterator[Finding]:
    """``dtype = x.type()`` and then ``y.type(dtype)``, for PyTorch/XLA alone: nothing there takes such a name."""
    held: set[str] = set()
    for call in context.tree.called().get("type", ()) if context.target == "xla" else ():
        if _asks(call):
            _is_kept(context, call, held)
    _spread(context, held)
    for cast in _casts(rule, context, held):
        yield context.at(rule, cast.start, cast.end, OWN_NAMES)


def types_of_others(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.type(y.type())`` becomes ``x.to(y)``: PyTorch/XLA does not take the names of its own types."""
    for call in context.tree.called().get("type", ()) if context.target != "tpu" else ():
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "type" and len(call.args) == 1):
            continue
        asked = call.args[0]
        if not (isinstance(asked, ast.Call) and _asks(asked) and isinstance(asked.func, ast.Attribute)):
            continue
        other, text = asked.func.value, context.text
        end, last, after = (text.span(node)[1] for node in (call.func, asked, other))
        if text.bytes[after:last].translate(None, BLANKS) != b".type()" or text.bytes[end - 4 : end] != b"type":
            yield context.leave(rule, call, OWN_NAMES)
            continue
        edits = [Edit(end - 4, end, "to"), Edit(after, last, "")]
        yield context.edited(rule, call, edits, f"....to({context.source(other)})")


def _is_taken(context: Context, node: ast.expr, held: set[str]) -> bool:
    call = context.tree.parents[node]
    if isinstance(call, ast.Call) and call.func is node:
        return not call.keywords  # the shim's type decides on the device by itself
    return _is_kept(context, node, held)


def _is_kept(context: Context, node: ast.expr, held: set[str]) -> bool:
    """Whether the type is assigned, a default, handed on or returned; the names that then hold it go to ``held``."""
    inner: ast.AST = node
    parent = context.tree.parents[inner]
    while isinstance(parent, PASSING) and inner is not getattr(parent, "test", None):
        inner, parent = parent, context.tree.parents[parent]
    if isinstance(parent, ast.Assign):
        held |= {name for target in parent.targets for name in _names(target)}
        return True
    if isinstance(parent, ast.AnnAssign | ast.NamedExpr):
        held |= set(_names(parent.target))
        return parent.value is inner
    if isinstance(parent, ast.keyword) and parent.arg:
        held.add(parent.arg)
    if isinstance(parent, ast.arguments):
        held |= {a.arg for a in (*parent.posonlyargs, *parent.args, *parent.kwonlyargs) if _default(parent, a) is inner}
    return isinstance(parent, ast.keyword | ast.arguments | ast.Return) or (
        isinstance(parent, ast.Call) and inner in parent.args
    )


def _default(given: ast.arguments, argument: ast.arg) -> ast.expr | None:
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(positional), reversed(given.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
    return next((default for known, default in pairs if known is argument), None)


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _names(element)


def _spread(context: Context, held: set[str]) -> None:
    """Names to which what holds a type is assigned, or handed as an argument, hold one as well."""
    before = 0
    while before != len(held):
        before = len(held)
        for assign in context.tree.every(ast.Assign):
            if _holds(assign.value, held):
                held |= {name for target in assign.targets for name in _names(target)}
        for call in context.tree.calls:
            held |= {k.arg for k in call.keywords if k.arg and _holds(k.value, held)}
            taken = [(number, a) for number, a in enumerate(call.args) if _holds(a, held)]
            name = next(_names(call.func), "") if taken else ""
            for definition in context.tree.definitions if taken else ():
                if definition.name == name:
                    arguments = [*definition.args.posonlyargs, *definition.args.args]
                    shift = int(bool(arguments) and arguments[0].arg in ("self", "cls"))
                    held |= {arguments[n + shift].arg for n, _ in taken if n + shift < len(arguments)}


def _holds(node: ast.expr, held: set[str]) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and next(_names(node), "") in held


def _casts(rule: Rule, context: Context, held: set[str]) -> Iterator[Finding]:
    """``x.type(Tensor)`` becomes ``shim.as_type(x, Tensor)``."""
    for call in context.tree.calls if held else ():
        func = call.func
        if not (isinstance(func, ast.Attribute) and func.attr == "type"):
            continue
        kind = next(iter(call.args), None) or next((k.value for k in call.keywords if k.arg == "dtype"), None)
        if kind is None or not _holds(kind, held):
            continue
        start, after, given = context.text.span(call)[0], context.text.span(func)[1], context.text.span(kind)[0]
        dot = context.text.bytes.rfind(b".", start, after)
        if context.text.bytes[dot:given].translate(None, BLANKS) not in (b".type(", b".type(dtype="):
            yield context.leave(rule, call, BESIDE)
            continue
        edits = [Edit(start, start, f"{context.shim}.as_type("), Edit(dot, given, ", ")]
        needs = context.spell.needs("shim.as_type")
        yield context.edited(rule, call, edits, f"{context.shim}.as_type(...)", needs=needs, group=GROUP)
