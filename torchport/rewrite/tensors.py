"""Tensor types of CUDA: by name, as texts and as constructors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import line_mark
from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.cst import argument, change_call, change_method
from torchport.rewrite.kept_types import kept_types, names_of_types, types_of_others
from torchport.rewrite.statements import replacement

TYPE = pattern(r"torch\.cuda\.(\w+)Tensor")
CPU_TYPE = pattern(r"torch\.(\w+)Tensor")
FLOATING = ("Float", "Double", "Half", "BFloat16")
DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8",
    "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool",
}  # fmt: skip
HALF_DEFAULT = "float16 is not for TPUs: torch.cuda.BFloat16Tensor makes new tensors bfloat16"
DEFAULT_TYPE = "torch.set_default_tensor_type"
TYPE_UNSEEN = (
    "the type is not seen here, or has no counterpart; call torch.set_default_dtype, and torch.set_default_device with "
    '"{}" for a type of CUDA and "cpu" for one of the CPU'
)
TOGETHER = "another call of it stays, on {}, and would not take the device back; the two change together"
CLASSES = {f"torch.cuda.{name}Tensor": dtype for name, dtype in DTYPES.items()}


def type_string(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.type("torch.cuda.FloatTensor")`` becomes ``x.to(shim.device(), torch.float32)``; also the class itself."""
    yield from _classes(rule, context)
    yield from types_of_others(rule, context)
    yield from names_of_types(rule, context)
    for node in context.tree.strings:
        text = str(node.value) if isinstance(node, ast.Constant) else ""
        match = TYPE.fullmatch(text) if text.startswith("torch.cuda.") else None
        if match is None:
            continue
        call = context.tree.parents[node]
        func = call.func if isinstance(call, ast.Call) else None
        if not (
            isinstance(call, ast.Call)
            and isinstance(func, ast.Attribute)
            and func.attr == "type"
            and len(call.args) == 1
            and not call.keywords
        ):
            if not _default_type(context, call):
                yield context.leave(
                    rule, node, "a tensor type in a text has no name on a TPU; test `.dtype` and `.device.type`"
                )
        elif match[1] not in DTYPES or context.tree.scope.find("torch") is None:
            yield context.leave(
                rule, call, f"no dtype is known for {match[0]}, or the file does not import torch by its name"
            )
        else:
            yield _typed(rule, context, call, f"torch.{DTYPES[match[1]]}")


def _classes(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cuda.FloatTensor`` as the argument of ``.type`` and as a constructor."""
    for node, found in context.uses(*CLASSES):
        call, dtype = context.tree.parents[node], f"{context.spell.torch}.{CLASSES[found.name]}"
        if not isinstance(call, ast.Call) or call.keywords or found.doubt:
            continue
        if _default_type(context, call) and context.spell.portable:
            context.claimed.add(node)  # the shim takes the class as well as its name
        elif call.func is node and (maker := _maker(context, call)):
            context.claimed.add(node)
            yield _made(rule, context, call, f"{context.spell.torch}.{maker}", dtype)
        elif call.args == [node] and isinstance(call.func, ast.Attribute) and call.func.attr == "type":
            context.claimed.add(node)
            yield _typed(rule, context, call, dtype)
    if context.spell.portable:
        yield from kept_types(rule, context, CLASSES)


def _maker(context: Context, call: ast.Call) -> str:
    """``tensor`` for a constructor that is given numbers, ``empty`` for one that is given a size, or nothing."""
    if not call.args:
        return "empty"
    first = call.args[0]
    if len(call.args) == 1:
        if isinstance(first, ast.List | ast.Tuple | ast.ListComp):
            return "tensor"
        found = context.qualify(first.func) if isinstance(first, ast.Call) else None
        if found is not None and found.name.startswith("numpy."):
            return "tensor"
    return "empty" if all(map(_is_size, call.args)) else ""


def _is_size(node: ast.expr) -> bool:
    """A number that is written there, ``len(x)``, ``x.size(0)`` or ``x.shape[0]``."""
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) and _is_size(node.right)
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        func = node.func
        return (isinstance(func, ast.Attribute) and func.attr == "size") or ast.unparse(func) in ("len", "int")
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _made(rule: Rule, context: Context, call: ast.Call, maker: str, dtype: str) -> Finding:
    source = context.source(call)
    new = [argument("0")] if not call.args else []
    new += [argument(dtype, "dtype"), argument(context.spell.place(), "device")]
    return context.change(rule, call, lambda: change_call(source, maker, lambda old: [*old, *new]))


def _typed(rule: Rule, context: Context, call: ast.Call, dtype: str) -> Finding:
    source = context.source(call)
    new = [argument(context.spell.place()), argument(dtype)]
    return context.change(rule, call, lambda: change_method(source, "to", lambda _: new))


def _default_type(context: Context, call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and context.named(
        call.func, "torch.set_default_tensor_type", "torchport.shim.set_default_tensor_type"
    )


def default_tensor_type(rule: Rule, context: Context) -> Iterator[Finding]:
    """``set_default_tensor_type("torch.cuda.FloatTensor")`` says the dtype and the device; here two calls say them.

    One that sets a type of the CPU again has to take the device back as well, so all of a file change or none does.
    """
    if context.spell.portable:
        yield from _half_by_default(rule, context)
        return
    calls: list[tuple[ast.Call, ast.expr, str]] = []
    stay: list[ast.expr] = []
    for node, found in context.uses(DEFAULT_TYPE):
        context.claimed.add(node)
        call = context.tree.parents[node]
        given = call.args[0] if isinstance(call, ast.Call) and call.func is node and len(call.args) == 1 else None
        if given is None or not isinstance(call, ast.Call) or not _can_be_said(context, call, given):
            stay.append(call if given is not None and isinstance(call, ast.Call) else node)
        else:
            calls.append((call, given, found.doubt))
    for site in stay:
        yield context.leave(rule, site, TYPE_UNSEEN.format(context.target))
    on_device = [call for call, given, _ in calls if _cuda_type(context, given)]
    for call, given, doubt in calls:
        cuda = call in on_device
        if stay and cuda:
            yield context.leave(rule, call, TOGETHER.format(line_mark(stay[0].lineno)))
        elif cuda or not all(_apart(context, call, other) for other in on_device):
            yield _said_by_two(rule, context, call, given, doubt)


def _can_be_said(context: Context, call: ast.Call, given: ast.expr) -> bool:
    cuda = _cuda_type(context, given)
    if not isinstance(context.tree.parents[call], ast.Expr):
        return False
    return cuda in ("Float", "Double", "BFloat16") if cuda else _cpu_type(context, given) in FLOATING


def _said_by_two(rule: Rule, context: Context, call: ast.Call, given: ast.expr, doubt: str) -> Finding:
    context.claimed.add(given)
    torch, cuda = context.spell.torch, _cuda_type(context, given)
    place = context.spell.text() if cuda else '"cpu"'
    dtype = f"{torch}.{DTYPES[cuda or _cpu_type(context, given)]}"
    lines = [f"{torch}.set_default_dtype({dtype})", f"{torch}.set_default_device({place})"]
    statement = context.tree.statement(call)
    needs = {module for line in lines for module in context.spell.needs(line)} if cuda else set()
    edits = [replacement(context.text, statement, lines)]
    return context.edited(rule, statement, edits, "; ".join(lines), needs=needs, doubt=doubt, group=rule.name)


def _apart(context: Context, one: ast.AST, other: ast.AST) -> bool:
    """Whether two calls stand in the two branches of one test, of which a program takes one."""
    tree, around = context.tree, [other, *context.tree.ancestors(other)]
    child = one
    for parent in tree.ancestors(one):
        if isinstance(parent, ast.If) and parent in around:
            return (child in parent.body) != any(node in parent.body for node in around)
        child = parent
    return False


def _half_by_default(rule: Rule, context: Context) -> Iterator[Finding]:
    for call in context.calls(DEFAULT_TYPE, "torchport.shim.set_default_tensor_type"):
        for given in call.args[:1]:
            if _cuda_type(context, given) == "Half":
                yield context.leave(rule, given, HALF_DEFAULT)


def _cuda_type(context: Context, node: ast.expr) -> str | None:
    """``Float`` of a tensor type of CUDA, by name or as a text."""
    name = str(node.value) if isinstance(node, ast.Constant) else ""
    if isinstance(node, ast.Name | ast.Attribute) and (found := context.qualify(node)):
        name = found.name
    match = TYPE.fullmatch(name)
    return match[1] if match else None


def _cpu_type(context: Context, node: ast.expr) -> str:
    """``Float`` of a tensor type of the CPU, by name or as a text; empty for anything else."""
    name = str(node.value) if isinstance(node, ast.Constant) else ""
    if isinstance(node, ast.Name | ast.Attribute) and (found := context.qualify(node)):
        name = found.name
    match = CPU_TYPE.fullmatch(name)
    return match[1] if match else ""
