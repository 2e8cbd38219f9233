"""Findings that look right alone and are wrong together: tests that guard code which stays, TorchScript."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchport.analysis.names import line_mark
from torchport.analysis.scopes import dotted
from torchport.analysis.scripting import compiled_elsewhere, scripted
from torchport.model import Effect, Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.guards import KERNEL_REASON, WORKER, decided, leaf, readers, workers

SCRIPTED = "TorchScript compiles this code and cannot call the shim; move the decision out of it"
BRANCH = "it stands where only CUDA goes: the test on {} stays"
TESTS = ("TP101", "TP102", "TP104")
"""Rules that speak of tests for CUDA."""
MODULE = "TP190"
"""``torch.cuda`` as a value; with the effect of an error, the module of whichever device is there."""
GUARD = "it decides on code that only CUDA runs and that stays, on {}; the two move together"
HELD = GUARD.partition("{")[0]


def hold_back(findings: list[Finding], rules: tuple[Rule, ...], context: Context) -> list[Finding]:
    """The findings, with those that must not be applied left for a person."""
    if not any(finding.edits for finding in findings):
        return findings
    reasons = dict(_halves(findings, context))
    elsewhere = compiled_elsewhere(context.project.scripted, context.path)
    if elsewhere or b"jit" in context.text.bytes:
        reasons.update(_in(findings, scripted(context.tree, elsewhere), SCRIPTED, context))
    reasons.update(_in(findings, workers(context), WORKER, context))
    branches = {rule.code for rule in rules if rule.cuda_only == "branch"}
    choices = {rule.code for rule in rules if rule.cuda_only}
    reasons.update(_guards(findings, branches, context.tree.every(ast.If), context))
    reasons.update(_guards(findings, {*choices, MODULE}, context.tree.every(ast.IfExp), context))
    reasons.update(_guards(findings, {*choices, "TP101", MODULE}, context.tree.every(ast.If), context, alone=True))
    dead = dict(_for_cuda_alone(findings, reasons, branches, context.tree.every(ast.If), context))
    dead.update(_for_cuda_alone(findings, reasons, choices, context.tree.every(ast.IfExp), context))
    return [
        _left(f, reasons[f], context) if f in reasons else _left(f, dead[f], context, "none") if f in dead else f
        for f in findings
    ]


def _left(finding: Finding, reason: str, context: Context, effect: Effect | None = None) -> Finding:
    return finding._replace(
        edits=(), reason=context.spell.advice(reason), needs=(), effect=effect if effect else finding.effect
    )


def _for_cuda_alone(
    findings: list[Finding],
    held: Mapping[Finding, str],
    codes: set[str],
    branches: Sequence[ast.If | ast.IfExp],
    context: Context,
) -> Iterator[tuple[Finding, str]]:
    """Edits in what only a test for CUDA that stays lets run: nothing in there has to move.

    It guards a kernel, or a call that raises on a TPU and that a rule of ``codes`` leaves.
    """
    tests = [f for f in findings if f.code in TESTS and f.effect != "none" and (f in held or not f.edits)]
    staying = [f for f in findings if f.code in codes and f.reason and f.effect != "none"]
    for node in branches if tests else ():
        test = next((f for f in tests if _asks(context, node.test, f)), None)
        if test is None and isinstance(node.test, ast.Name | ast.Attribute | ast.UnaryOp):
            flags = [*_flags(context, node)]
            test = next((f for f in tests for flag in flags if _asks(context, flag, f)), None)
        if test is None or any(isinstance(n, ast.Or) for n in ast.walk(node.test)):
            continue
        parts = [n for n in decided(context, leaf(node.test)) if isinstance(n, ast.expr | ast.stmt)]
        spans = [context.text.span(part) for part in parts]
        raises = any(a <= f.start < b for f in staying for a, b in spans)
        if test.reason != KERNEL_REASON and not held.get(test, "").startswith(HELD) and not raises:
            continue
        reason = BRANCH.format(line_mark(context.text.line(test.start)))
        for finding, _ in _in(findings, parts, reason, context):
            if finding not in held:
                yield finding, reason


def _asks(context: Context, test: ast.expr, finding: Finding) -> bool:
    """Whether a finding is a question for CUDA in a test: a text is one where it is compared."""
    whole = finding.code != "TP101" or finding.reason == KERNEL_REASON
    asked = [test] if whole else [n for n in ast.walk(test) if isinstance(n, ast.Compare)]
    spans = [context.text.span(node) for node in asked]
    return any(start <= finding.start < end for start, end in spans)


def _in(
    findings: Iterable[Finding], nodes: Iterable[ast.AST], reason: str, context: Context
) -> Iterator[tuple[Finding, str]]:
    spans = [context.text.span(node) for node in nodes if isinstance(node, ast.stmt | ast.expr)]
    for finding in findings:
        if finding.edits and any(start <= finding.start < end for start, end in spans):
            yield finding, reason


def _guards(
    findings: list[Finding],
    codes: set[str],
    branches: Sequence[ast.If | ast.IfExp],
    context: Context,
    *,
    alone: bool = False,
) -> Iterator[tuple[Finding, str]]:
    """Tests, and the flags that they read, whose branch holds a call that raises on a TPU; ``alone``: nothing else."""
    staying = [f for f in findings if f.code in codes and f.reason and f.effect != "none"]
    staying = [f for f in staying if f.code != MODULE or f.effect != "error"]
    if not staying:
        return
    for node in branches:
        parts = [n for n in decided(context, leaf(node.test)) if isinstance(n, ast.expr | ast.stmt)]
        spans = [context.text.span(part) for part in parts]
        held = next((f for f in staying if any(a <= f.start < b for a, b in spans)), None)
        if held is None or (alone and not _all_stay(parts, spans, staying)):
            continue
        reason = GUARD.format(line_mark(context.text.line(held.start)))
        tests = [context.text.span(test) for test in [node.test, *_flags(context, node)]]
        for finding in findings:
            of_value = held.code == "TP101" and finding.code != "TP104"
            if finding.edits and not of_value and any(a <= finding.start < b for a, b in tests):
                yield finding, reason


def _all_stay(parts: list[ast.expr | ast.stmt], spans: list[tuple[int, int]], staying: list[Finding]) -> bool:
    """Whether every statement stays, or reads what one that stays has made."""
    made: set[str] = set()
    for part, (start, end) in zip(parts, spans, strict=True):
        if any(start <= f.start < end for f in staying):
            made |= {dotted(target) for target in part.targets} if isinstance(part, ast.Assign) else set()
        elif not any(isinstance(n, ast.Name) and n.id in made for n in ast.walk(part)):
            return False
    return True


def _flags(context: Context, node: ast.If | ast.IfExp) -> Iterator[ast.expr]:
    """What is assigned to variables and attributes that the test reads and that nothing else does.

    A flag with other readers decides on more than this branch: were it held back, they would stay on the CPU unseen.
    """
    asked = {dotted(n): n for n in _truths(node.test) if isinstance(n, ast.Name | ast.Attribute)}
    assigned = context.once(_assigned) if asked else {}
    for name, read in asked.items():
        for target, value in assigned.get(name, ()):
            if readers(context, target) == [read]:
                yield value


def _assigned(context: Context) -> dict[str, list[tuple[ast.expr, ast.expr]]]:
    """The targets of assignments with their values, by their names."""
    found: dict[str, list[tuple[ast.expr, ast.expr]]] = {}
    for assign in context.tree.every(ast.Assign):
        for target in assign.targets:
            found.setdefault(dotted(target), []).append((target, assign.value))
    return found


def _truths(test: ast.expr) -> list[ast.expr]:
    """What a test asks for being true or false: ``a`` and ``b`` of ``a and not b``, but nothing that it compares."""
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _truths(value)]
    return _truths(test.operand) if isinstance(test, ast.UnaryOp) else [test]


def _halves(findings: list[Finding], context: Context) -> Iterator[tuple[Finding, str]]:
    """The rest of a condition of which a part guards a kernel and stays."""
    staying = [f for f in findings if f.reason == KERNEL_REASON]
    if not staying:
        return
    kinds: tuple[type[ast.If | ast.IfExp | ast.Assert], ...] = (ast.If, ast.IfExp, ast.Assert)
    for node in [node for kind in kinds for node in context.tree.every(kind)]:
        start, end = context.text.span(node.test)
        if any(start <= f.start < end for f in staying):
            for finding in findings:
                if finding.edits and finding.code in TESTS and start <= finding.start < end:
                    yield finding, KERNEL_REASON
