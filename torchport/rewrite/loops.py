"""Step boundaries: ``for x in shim.steps(loader)``, and ``shim.sync()`` at the end of the body of a ``while``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.loops import has_boundary, step_loops
from torchport.model import Edit, Finding, Rule
from torchport.rewrite.context import Context, New

HOMELESS = (
    "no loop around this optimizer step is seen in this file; mark the end of each step where the loop is, with "
    "shim.steps(...) or shim.sync()"
)


def step_boundary(rule: Rule, context: Context) -> Iterator[Finding]:
    """One boundary per step and loop, never two."""
    loops, homeless = step_loops(context.tree)
    for step in loops:
        if has_boundary(context.tree, step.loop):
            continue
        if isinstance(step.loop, ast.AsyncFor):
            yield context.leave(rule, step.loop.iter, "an asynchronous loop: call shim.sync() at the end of its body")
        elif isinstance(step.loop, ast.For):
            iterable = step.loop.iter
            source = context.source(iterable)
            bare = isinstance(iterable, ast.Tuple) and (
                not source.startswith("(") or context.text.span(iterable.elts[0])[0] == context.text.span(iterable)[0]
            )
            bare = bare or (isinstance(iterable, ast.Yield | ast.YieldFrom) and not source.startswith("("))
            text = f"shim.steps(({source}))" if bare else f"shim.steps({source})"
            yield context.rewrite(rule, iterable, New(iterable, text))
        else:
            yield _while(rule, context, step.loop)
    for call in homeless:
        if not has_boundary_nearby(context, call):
            yield context.leave(rule, call, HOMELESS)


def has_boundary_nearby(context: Context, call: ast.AST) -> bool:
    """Whether the function around an optimizer step marks the step itself."""
    function = context.tree.function(call) or context.tree.module
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name | ast.Attribute)
        and context.named(n.func, "torchport.shim.sync", "torch_xla.sync")
        for n in ast.walk(function)
    )


def _while(rule: Rule, context: Context, loop: ast.While) -> Finding:
    """At the end of the body; at its start where a ``continue`` would jump over the end."""
    text = context.text
    first, last = loop.body[0], loop.body[-1]
    if text.line(text.span(first)[0]) == text.line(text.span(loop.test)[1]):
        return context.leave(
            rule,
            loop.test,
            "the body stands on the line of the `while`; write it on lines of its own and end it with shim.sync()",
        )
    indent = text.indent(first.lineno)
    call = f"{context.shim}.sync()"
    if _continues(loop):
        decorators: list[ast.expr] = getattr(first, "decorator_list", [])
        place = text.starts[min([first.lineno, *(d.lineno for d in decorators)]) - 1]
        edit = Edit(place, place, f"{indent}{call}{text.newline(first.lineno)}")
    elif isinstance(last, ast.If) and not last.orelse and _only_leaves(last):
        number = last.lineno
        before = loop.body[-2].end_lineno or number if len(loop.body) > 1 else loop.lineno
        while number - 1 > before and text.line_text(number - 1).lstrip().startswith(b"#"):
            number -= 1
        place = text.starts[number - 1]
        edit = Edit(place, place, f"{text.indent(last.lineno)}{call}{text.newline(last.lineno)}")
    else:
        assert last.end_lineno is not None
        line = text.line_text(last.end_lineno)
        place = text.starts[last.end_lineno - 1] + len(line.rstrip(b"\r\n"))
        edit = Edit(place, place, f"{text.newline(last.end_lineno)}{indent}{call}")
    finding = context.rewrite(rule, loop.test, New(loop.test, context.source(loop.test)))
    if not finding.edits:
        return finding
    from dataclasses import replace

    return replace(finding, edits=(edit,), new=call, old=f"while {finding.old}:")


def _continues(loop: ast.While) -> bool:
    """Whether a ``continue`` of this very loop can skip the end of its body."""
    stack: list[ast.AST] = [*loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Continue):
            return True
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            stack += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stack += [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
            ]
    return False


def _only_leaves(node: ast.If) -> bool:
    """``if done: break`` as the last statement: the boundary goes before it, so that the last step has one as well."""
    return all(isinstance(s, ast.Break | ast.Return) for s in node.body)
