"""A Python number that changes from step to step and is a part of the graph: an index, a bound, a shift, a size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.reaching import scope_of
from torchport.analysis.values import Origin, Value
from torchport.lint.checks.facts import Facts, facts, moved_after, report
from torchport.lint.checks.spelling import torch_name
from torchport.lint.checks.varying import is_batches, loop_of, may_vary, varies
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

SIZES = ("zeros", "ones", "full", "empty", "arange", "eye", "linspace", "rand", "randn", "randperm", "tril_indices")
SHAPED = ("expand", "view", "reshape", "repeat", "narrow", "new_zeros", "new_ones", "new_full", "pad", "split", "chunk")
SHIFTS = {"roll": 1, "tril": 1, "triu": 1, "topk": 1, "diagonal": 1, "rot90": 1}
"""Functions whose second argument is a part of the graph; as methods their first."""


def python_index(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x[i]``, ``x[i : i + n]``, ``x.roll(i)``, ``torch.arange(i)``: every number is a graph of its own."""
    yield from _numbers(rule, context, ("loop", "random"))


def size_from_data(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x[:n]``, ``torch.zeros(n)`` where ``n`` was read from a tensor."""
    yield from _numbers(rule, context, ("data",))


def _numbers(rule: Rule, context: Context, origins: tuple[Origin, ...]) -> Iterator[Finding]:
    known = facts(context)
    if known.numbered is None:
        known.numbered = [*_subscripts(context, known), *_powers(context, known), *_calls(context, known)]
    sizes: dict[object, list[ast.expr]] = {}
    for node, parts in known.numbered:
        changing = [part for part in parts if varies(known, part) in origins]
        if not changing:
            continue
        if "data" in origins:
            sizes.setdefault(_names(known, changing) or node, []).append(node)
        elif isinstance(node, ast.Subscript):
            yield _selected(rule, context, known, node)
        else:
            yield report(rule, context, node)
    for places in sizes.values():
        first, *more = sorted(places, key=lambda place: (place.lineno, place.col_offset))
        lines = ", ".join(dict.fromkeys(str(place.lineno) for place in more))
        reason = f"{rule.reason}; the same size is used in line{'s' * (',' in lines)} {lines}" if lines else ""
        yield report(rule, context, first, reason)


def _names(known: Facts, parts: list[ast.expr]) -> frozenset[object]:
    """The variables that hold the numbers, each with its scope; nothing where there are others beside them."""
    if not all(isinstance(part, ast.Name) for part in parts):
        return frozenset()
    return frozenset(
        (scope_of(known.tree, part).find(part.id), part.id) for part in parts if isinstance(part, ast.Name)
    )


def _subscripts(context: Context, known: Facts) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Indices of tensors whose numbers may be others in each step, and these numbers."""
    for node in known.indexed:
        if _fixed(node.slice):
            continue
        parts = [*_bounds(node.slice)]
        if not any(may_vary(known, part) for part in parts):
            continue
        base = known.value(node.value)
        if (
            base.kind == "tensor"
            and base.where != "host"
            and not isinstance(node.ctx, ast.Del)
            and not moved_after(context.tree, node)
            and _graph(context, known, node, base)
        ):
            yield node, parts


def _powers(context: Context, known: Facts) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """``x ** n`` of a tensor."""
    parents, operation = context.tree.parents, ast.BinOp
    operands = context.tree.names if _has_power(context.text.bytes) else ()
    for name in [name for name in operands if parents[name].__class__ is operation]:
        power = parents[name]
        if not isinstance(power, ast.BinOp) or not isinstance(power.op, ast.Pow) or power.right is not name:
            continue
        if may_vary(known, name) and known.value(power.left).on_device and known.heat(power):
            yield power, [name]


def _has_power(blob: bytes) -> bool:
    """Whether a name may be the power somewhere: not ``x ** 2``, nor ``**options``, which nearly every file has."""
    at = blob.find(b"**")
    while at >= 0:
        before, after = blob[max(at - 9, 0) : at].rstrip()[-1:], blob[at + 2 : at + 11].lstrip()[:1]
        if (before.isalnum() or before in (b"_", b")", b"]")) and not (after.isdigit() or after in (b"-", b"+", b"=")):
            return True
        at = blob.find(b"**", at + 2)
    return False


def _calls(context: Context, known: Facts) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Calls with sizes, shapes and shifts, and these."""
    for call in known.named(*SIZES, *SHAPED, *SHIFTS):
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(may_vary(known, a) for a in given) and known.heat(call):
            yield call, _sizes(context, known, call)


def _fixed(index: ast.expr) -> bool:
    """A cheap look before values are asked for: whether nothing in an index can change."""
    match index:
        case ast.Constant():
            return True
        case ast.UnaryOp():
            return _fixed(index.operand)
        case ast.Tuple():
            return all(_fixed(part) for part in index.elts)
        case ast.Slice():
            return all(_fixed(part) for part in (index.lower, index.upper, index.step) if part is not None)
    return False


def _moves(part: ast.expr) -> bool:
    """Whether a part of an index can be another number in each step, by its form alone."""
    plain = part.operand if isinstance(part, ast.UnaryOp) else part
    return not isinstance(plain, ast.Constant)


def _graph(context: Context, known: Facts, node: ast.Subscript, base: Value) -> bool:
    """Whether the index becomes a part of what is compiled in each step."""
    if known.heat(node):
        return True
    loop = loop_of(known, node)
    return base.where == "device" and loop is not None and is_batches(known, loop)


def _bounds(index: ast.expr) -> Iterator[ast.expr]:
    """The Python numbers of an index."""
    match index:
        case ast.Tuple():
            for part in index.elts:
                yield from _bounds(part)
        case ast.Slice():
            yield from (part for part in (index.lower, index.upper, index.step) if part is not None)
        case ast.Constant():
            return
        case ast.BinOp() if any(
            isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple) for n in _operands(index)
        ):
            return  # x[0, keep] - start: a number beside a tensor is an operand
        case _:
            yield index


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    else:
        yield node


def _sizes(context: Context, known: Facts, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that are a part of the graph."""
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    qualified = known.flow.name_of(func)
    numbers = [
        k.value for k in call.keywords if k.arg in ("size", "shifts", "diagonal", "k", "end", "start", "pad", "length")
    ]
    if qualified.startswith("torch."):
        if name in SIZES:
            if known.value(call).where == "host":
                return []
            found = call.args[:1] if name in ("full",) else call.args
        elif known.value(call.args[0] if call.args else None).where == "host":
            return []
        else:
            found = call.args[1:]
        return _flat([*found, *numbers])
    if qualified or not isinstance(func, ast.Attribute) or name in SIZES or name == "pad":
        return []
    base = known.value(func.value)
    if not base.on_device:
        return []
    return _flat([*(call.args[:1] if name == "new_full" else call.args), *numbers])


def _flat(nodes: list[ast.expr]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in nodes:
        found += _flat(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]
    return found


def _selected(rule: Rule, context: Context, known: Facts, node: ast.Subscript) -> Finding:
    """``x[:, i]`` by index_select, where it is read as an operand; a column that is written by index_copy_."""
    place = _counted(known, node.slice)
    torch = torch_name(context)
    if place is None or not torch or not isinstance(node.value, ast.Name | ast.Attribute):
        return report(rule, context, node)
    dimension, index = place
    base, parent = context.source(node.value), context.tree.parents[node]
    at = f"{dimension}, {torch}.tensor([{context.source(index)}], device={base}.device)"
    operand = isinstance(parent, ast.BinOp) or (isinstance(parent, ast.Call) and node in parent.args)
    if isinstance(node.ctx, ast.Load) and operand and known.value(node.value).sure:
        return context.rewrite(rule, node, New(node, f"{base}.index_select({at}).squeeze({dimension})", False))
    if isinstance(parent, ast.Assign) and parent.targets == [node]:
        value = context.source(parent.value)
        value = value if isinstance(parent.value, ast.Name | ast.Call | ast.Attribute) else f"({value})"
        text = f"{base}.index_copy_({at}, {value}.unsqueeze({dimension}))"
        doubt = f"{rule.reason}; --unsafe writes it by index_copy_, right where shapes and dtypes are the same"
        return context.rewrite(rule, parent, New(parent, text, False), doubt=doubt)  # type: ignore[arg-type]
    return report(rule, context, node)


def _counted(known: Facts, index: ast.expr) -> tuple[int, ast.Name] | None:
    """The dimension and the name of an index that a loop counts from zero upwards."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    *before, last = parts
    if not isinstance(last, ast.Name) or not all(
        isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None for p in before
    ):
        return None
    home = scope_of(known.tree, last).find(last.id)
    bindings = home.names[last.id] if home is not None else []
    if len(bindings) != 1:
        return None
    target = known.tree.parents.get(bindings[0].node)
    loop = known.tree.parents.get(target) if isinstance(target, ast.Tuple) else target
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    counts = getattr(loop.iter.func, "id", "")
    if counts == "enumerate" and isinstance(target, ast.Tuple) and target.elts[0] is bindings[0].node:
        return (len(before), last) if len(loop.iter.args) == 1 and not loop.iter.keywords else None
    return (len(before), last) if counts == "range" and len(loop.iter.args) == 1 else None


def growing(rule: Rule, context: Context) -> Iterator[Finding]:
    """``ids = torch.cat([ids, new])`` in a loop of steps, and a cache that a ``forward`` makes longer."""
    known = facts(context)
    for call in known.named("cat", "concat", "concatenate", "hstack", "vstack"):
        if not known.flow.name_of(call.func).startswith("torch.") or not call.args:
            continue
        statement = context.tree.parents[call]
        if isinstance(statement, ast.IfExp):
            statement = context.tree.parents[statement]
        listed = call.args[0]
        if not isinstance(statement, ast.Assign) or not isinstance(listed, ast.Tuple | ast.List):
            continue
        if not any(_same(item, target) for item in listed.elts for target in statement.targets):
            continue
        if known.value(call).where == "host":
            continue
        if _grows(known, call, statement):
            yield report(rule, context, call)


def _same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are written alike, whatever is done with them."""
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return one.__class__ is other.__class__ and ast.unparse(one) == ast.unparse(other)


def _grows(known: Facts, call: ast.Call, statement: ast.Assign) -> bool:
    """Whether the tensor outlives the step that makes it longer."""
    target = statement.targets[0]
    if isinstance(target, ast.Attribute):
        owner = target.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if known.flow.class_of(owner) is not None:
            return bool(known.heat(call))
        target = owner  # what hangs on a variable lives as long as that
    loop = loop_of(known, call)
    return loop is not None and loop in known.heats.loops and not _made_inside(known, target, loop)


def _made_inside(known: Facts, target: ast.expr, loop: ast.AST) -> bool:
    """Whether each turn of the loop starts the tensor anew."""
    if not isinstance(target, ast.Name):
        return True
    home = scope_of(known.tree, target).find(target.id)
    for binding in home.names[target.id] if home is not None else ():
        statement = None if isinstance(binding.node, ast.arg) else known.tree.statement(binding.node)
        if statement is loop:
            return True
        if isinstance(statement, ast.Assign) and loop in known.tree.ancestors(statement):
            used = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
            if target.id not in used:
                return True
    return False
