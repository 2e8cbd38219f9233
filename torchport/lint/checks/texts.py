"""A tensor becomes a text, or a point of a curve, in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.scopes import FUNCTIONS
from torchport.analysis.values import Value
from torchport.lint.checks.conditions import decides
from torchport.lint.checks.facts import Facts, facts, report
from torchport.lint.checks.reads import wanted
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

SHOWS = frozenset(
    ("print", "pprint", "str", "repr", "format", "info", "warning", "error", "critical", "set_postfix",
     "set_postfix_str", "set_description", "add_scalar", "add_scalars", "add_histogram",
     "secho", "echo")
)  # fmt: skip
BUILTINS = frozenset(("print", "str", "repr", "format"))


def printed(rule: Rule, context: Context) -> Iterator[Finding]:
    """``print(loss)``, ``f"{loss}"``, ``bar.set_postfix(loss=loss)``, ``writer.add_scalar("loss", loss)``."""
    known = facts(context)
    seen: set[ast.AST] = set()
    for call in known.named(*SHOWS):
        if isinstance(call.func, ast.Name) and call.func.id not in BUILTINS:
            continue
        if isinstance(call.func, ast.Attribute) and known.value(call.func.value).is_tensor:
            continue
        for argument in _shown([*call.args, *(k.value for k in call.keywords)]):
            yield from _show(rule, context, known, argument, seen)
    for call in known.named("log"):
        if isinstance(call.func, ast.Attribute) and context.named(call.func, "wandb.log"):
            for argument in _shown(call.args):
                yield from _show(rule, context, known, argument, seen)
    for text in context.tree.fstrings:
        for part in text.values:
            if isinstance(part, ast.FormattedValue):
                yield from _show(rule, context, known, part.value, seen)


def _shown(arguments: list[ast.expr]) -> Iterator[ast.expr]:
    """The values that a call is handed, dictionaries, tuples and the operands of ``%`` taken apart."""
    for argument in arguments:
        match argument:
            case ast.Dict():
                yield from _shown(argument.values)
            case ast.Tuple() | ast.List():
                yield from _shown(argument.elts)
            case ast.BinOp(op=ast.Mod(), left=ast.Constant()):
                yield from _shown([argument.right])
            case ast.Constant():
                pass
            case _:
                yield argument


def _show(rule: Rule, context: Context, known: Facts, node: ast.expr, seen: set[ast.AST]) -> Iterator[Finding]:
    if node not in seen and known.heat(node) and _holds(known.value(node)) and not _exceptional(known, node):
        seen.add(node)
        yield report(rule, context, node)


def _exceptional(known: Facts, node: ast.expr) -> bool:
    """Whether an ``if offset > 50:`` around ``node`` asks a tensor: the wait is there, and the text is seldom made."""
    child: ast.AST = node
    for parent in known.tree.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        if isinstance(parent, ast.If) and child in parent.body and decides(known, parent.test):
            return True
        child = parent
    return False


def _holds(value: Value) -> bool:
    """A tensor, or a list of tensors."""
    return wanted(value) or (value.kind in ("list", "dict") and any(map(wanted, value.items)))
