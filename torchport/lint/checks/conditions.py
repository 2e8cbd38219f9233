"""Python decides by the value of a tensor: the device has to compute it before the next line can run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.hot import is_float16
from torchport.analysis.names import chain
from torchport.analysis.operations import HOST_BOOLS
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import FUNCTIONS, walk
from torchport.analysis.values import Value
from torchport.lint.checks.clips import clipping
from torchport.lint.checks.facts import Facts, facts, report
from torchport.lint.checks.reads import is_dtype, wanted
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

NUMBERS = ("int", "float", "bool", "complex", "Number", "Integral", "Real")


def tensor_conditions(rule: Rule, context: Context) -> Iterator[Finding]:
    """``if loss > 1``, ``while err > tol``, ``assert x.min() >= 0``, ``if torch.isnan(loss).any()``."""
    known = facts(context)
    for node, test in _tests(context, known):
        parts = [part for part in _decisive(test) if not _plain(part)]
        if any(isinstance(part, ast.Compare) for part in parts):
            numbers = _known_numbers(known, test)
            parts = [part for part in parts if not _compares(part, numbers)]
        heat = known.heat(node) if parts else ""
        if not heat and not isinstance(node, ast.While):
            continue
        for part in parts:
            if decides(known, part):
                looping = isinstance(node, ast.While) and known.value(part).where == "device"
                if heat or looping:
                    yield report(rule, context, part)


def comparisons_in_python(rule: Rule, context: Context) -> Iterator[Finding]:
    """``max(a, b)`` of tensors, and ``any(...)``, ``sorted(...)`` over them: Python compares one by one."""
    known = facts(context)
    for call in known.named("max", "min", "any", "all", "sorted"):
        if not isinstance(call.func, ast.Name) or context.tree.scopes[call].find(call.func.id) is not None:
            continue
        values = [known.value(a) for a in call.args]
        listed = call.args[0] if len(call.args) == 1 else None
        if call.func.id in ("any", "all") and isinstance(listed, ast.GeneratorExp | ast.ListComp):
            if known.heat(call) and any(decides(known, part) for part in _decisive(listed.elt)):
                yield report(rule, context, call)
            continue
        if len(values) == 1 and values[0].kind == "list" and not values[0].fixed:
            values = list(values[0].items)
        if any(wanted(v) and (v.scalar or len(call.args) > 1) for v in values) and known.heat(call):
            yield report(rule, context, call)


def _tests(context: Context, known: Facts) -> Iterator[tuple[ast.AST, ast.expr]]:
    tree = context.tree
    for branch in tree.every(ast.If):
        if clipping(known, branch) is None:
            yield branch.test, branch.test
    for choice in tree.every(ast.IfExp):
        yield choice.test, choice.test
    for loop in tree.loops:
        if isinstance(loop, ast.While):
            yield loop, loop.test
    for check in tree.every(ast.Assert):
        yield check.test, check.test
    for part in tree.every(ast.comprehension):
        for test in part.ifs:
            yield test, test
    for call in known.named("bool"):
        if isinstance(call.func, ast.Name) and call.args:
            yield call, call.args[0]


def _decisive(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a test that Python asks for true or false."""
    match test:
        case ast.BoolOp():
            numbers: set[str] = set()
            for value in test.values:
                yield from (part for part in _decisive(value) if not _compares(part, numbers))
                if isinstance(test.op, ast.And) and is_float16(value):
                    return
                asked = value.operand if isinstance(value, ast.UnaryOp) else value
                if isinstance(test.op, ast.Or) == (asked is not value):
                    numbers |= _number(asked)
        case ast.UnaryOp(op=ast.Not()):
            yield from _decisive(test.operand)
        case _:
            yield test


def _number(test: ast.expr) -> set[str]:
    """What ``isinstance(x, (int, float))`` shows to be a Python number."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[thing, kinds]):
            named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            if all((chain(kind) or [""])[-1] in NUMBERS for kind in named):
                return {ast.unparse(thing)}
    return set()


def _known_numbers(known: Facts, test: ast.expr) -> set[str]:
    """What an ``if isinstance(x, int):`` around ``test`` shows to be a Python number there."""
    found: set[str] = set()
    child: ast.AST = test
    for parent in known.tree.ancestors(test):
        if isinstance(parent, FUNCTIONS):
            break
        if isinstance(parent, ast.If) and child in parent.body:
            asked = parent.test.values if isinstance(parent.test, ast.BoolOp) else [parent.test]
            either = isinstance(parent.test, ast.BoolOp) and isinstance(parent.test.op, ast.Or)
            if numbers := set() if either else {name for part in asked for name in _number(part)}:
                before = parent.body[: parent.body.index(child)]
                names = [n for statement in before for n in walk(statement) if isinstance(n, ast.Name)]
                found |= numbers - {name.id for name in names if isinstance(name.ctx, ast.Store)}
        child = parent
    return found


def _compares(test: ast.expr, numbers: set[str]) -> bool:
    """Whether a test compares one of ``numbers``."""
    if not numbers or not isinstance(test, ast.Compare):
        return False
    return not numbers.isdisjoint(map(ast.unparse, (test.left, *test.comparators)))


def decides(known: Facts, node: ast.expr) -> bool:
    """Whether ``node`` is a tensor that gives one truth value, or a call that asks the device for one."""
    if isinstance(node, ast.Call) and known.flow.name_of(node.func).removeprefix("torch.") in HOST_BOOLS:
        return any(wanted(known.value(a)) for a in node.args) and not any(_moved_later(known, a) for a in node.args)
    if _plain(node):
        return False
    value = known.value(node)
    return wanted(value) and (value.scalar or isinstance(node, ast.Compare) or _reduces(node, value))


def _moved_later(known: Facts, node: ast.expr) -> bool:
    """Whether ``node`` is a name that is not on the device yet: ``ids.to(device)`` is handed on elsewhere."""
    if not isinstance(node, ast.Name):
        return False
    for use in known.flow.uses(scope_of(known.tree, node).find(node.id), node.id):
        call = known.tree.parents[use]
        if not isinstance(call, ast.Call) or call.func is not use or not isinstance(use, ast.Attribute):
            continue
        moves = use.attr == "to" and bool(call.args) and not is_dtype(call.args[0])
        if moves and not isinstance(known.tree.parents[call], ast.Assign):
            return True
    return False


def _plain(node: ast.expr) -> bool:
    """A look at the form alone: most tests of a program ask for None, for a setting, or for a text."""
    match node:
        case ast.Compare(ops=[op, *_]):
            if isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                return True
            sides = [node.left, *node.comparators]
            return any(isinstance(s, ast.Constant) and not isinstance(s.value, int | float) for s in sides)
        case ast.Call(func=ast.Name() as function):
            return function.id in ("isinstance", "hasattr", "len", "callable", "issubclass", "bool", "getattr")
        case ast.Attribute() | ast.Constant():
            return True
    return False


def _reduces(node: ast.expr, value: Value) -> bool:
    return isinstance(node, ast.Call) and value.dtype == "bool"
