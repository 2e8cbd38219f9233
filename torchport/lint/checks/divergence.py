"""Processes that part: one leaves a loop, or does not enter a branch, and the others wait for it for ever."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import chain
from torchport.analysis.reaching import LOOPS
from torchport.analysis.scopes import FUNCTIONS
from torchport.lint.checks.agreement import Agreement, Verdict
from torchport.lint.checks.collectives import Collectives
from torchport.lint.checks.facts import facts, report, statements
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

UNSEEN = "{}, unless `{}` is the same in all of them already, which is not seen here"
LEAVES = ("sys.exit", "os._exit", "exit", "quit", "SystemExit")


def parted(rule: Rule, context: Context) -> Iterator[Finding]:
    """``if val >= best: break`` in a loop in which processes wait for each other."""
    collectives = Collectives(context)
    agreement = Agreement(facts(context), collectives)
    seen: set[ast.AST] = set()
    for loop, waits in collectives.loops().items():
        for tests in _tests(context, loop, waits):
            found = ((test, verdict) for test in tests if (verdict := agreement.test(test)))
            test, verdict = next(found, (None, ""))
            if test is not None and test not in seen:
                seen.add(test)
                yield _finding(rule, context, agreement, test, verdict)


def _finding(rule: Rule, context: Context, agreement: Agreement, test: ast.expr, verdict: Verdict) -> Finding:
    if verdict != "best":
        return report(rule, context, test)
    unseen = agreement.unseen
    what = context.source(unseen) if unseen is not None else "it"
    return report(rule, context, test, UNSEEN.format(rule.reason, what))


def _tests(context: Context, loop: ast.AST, waits: list[ast.Call]) -> Iterator[list[ast.expr]]:
    """The tests under which a process leaves a loop, or a turn of it, from the inside; the test of the loop itself."""
    if isinstance(loop, ast.While):
        yield [loop.test]
    for statement in statements(loop):
        if not _leaves(context, statement, loop, waits):
            continue
        around = context.tree.ancestors(statement)
        yield [parent.test for parent in around[: around.index(loop)] if isinstance(parent, ast.If)]


def _leaves(context: Context, statement: ast.stmt, loop: ast.AST, waits: list[ast.Call]) -> bool:
    match statement:
        case ast.Break():
            return _loop_of(context, statement) is loop
        case ast.Continue():
            later = any(call.lineno > statement.lineno for call in waits)
            return later and _loop_of(context, statement) is loop
        case ast.Return():
            return True
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            return ".".join(chain(call.func)) in LEAVES and _ends_well(call)
        case ast.Raise(exc=ast.Name(id="SystemExit")):
            return True
    return False


def _ends_well(call: ast.Call) -> bool:
    """A process that ends with an error ends the others as well: what started them sees to that."""
    return not call.args or (isinstance(call.args[0], ast.Constant) and call.args[0].value in (0, None))


def _loop_of(context: Context, node: ast.AST) -> ast.AST | None:
    return next((p for p in context.tree.ancestors(node) if isinstance(p, LOOPS)), None)


def under_rank(rule: Rule, context: Context) -> Iterator[Finding]:
    """``if rank == 0: dist.barrier()``, and ``if rank != 0: return`` before one."""
    collectives = Collectives(context)
    for call in collectives.whole:
        guard = collectives.guard(call)
        if guard is not None:
            if not _has_counterpart(context, collectives, call, guard):
                yield report(rule, context, call)
        elif _is_passed_by(context, collectives, call):
            yield report(rule, context, call)


def _has_counterpart(context: Context, collectives: Collectives, call: ast.Call, guard: ast.If) -> bool:
    """Whether the other processes wait as well: in the other branch, or under another test of the rank."""
    function = context.tree.function(call)
    name = (chain(call.func) or [""])[-1]
    for other in collectives.every:
        if other is call or context.tree.function(other) is not function:
            continue
        same = (chain(other.func) or [""])[-1] == name
        if (around := collectives.guard(other)) is None:
            if same and isinstance(guard.body[-1], ast.Return) and other.lineno > call.lineno:
                return True  # those that return have waited before
            continue
        if around is guard:
            sides = [
                any(c in b.body for c in [n, *context.tree.ancestors(n)]) for n, b in ((call, guard), (other, guard))
            ]
            if sides[0] != sides[1]:
                return True
        elif same:
            return True
    return False


def _is_passed_by(context: Context, collectives: Collectives, call: ast.Call) -> bool:
    """``if rank != 0: return`` before the call, in a block around it."""
    child: ast.AST = call
    for parent in context.tree.ancestors(call):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and child in block:
                before = block[: block.index(child)]
                if any(_turns_away(collectives, statement) for statement in before):
                    return True
        if isinstance(parent, FUNCTIONS):
            return False
        child = parent
    return False


def _turns_away(collectives: Collectives, statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.body[-1], ast.Return):
        return False
    inside = set(collectives.every)
    return collectives.names_rank(statement.test) and not any(n in inside for n in ast.walk(statement))
