"""Step boundaries: ``for x in shim.steps(loader)``, and a call at the end of the body of a ``while``.

For the target xla every loop gets the call. MpDeviceLoader of torch_xla would mark steps as well, but a data set that
raises ends its loop early and in silence, and it can take the place of plain loaders only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.called import outermost
from torchport.analysis.loops import Step, batch_comprehensions, has_boundary, marks_steps, step_loops
from torchport.analysis.parts import Loop, is_traced
from torchport.model import Edit, Finding, Rule
from torchport.rewrite.context import Context, New

MAY_SAMPLE = (b"no_grad", b"inference_mode", b".eval(", b"sampl", b"denois", b"inpaint", b"generate")
"""Without one of these words no loop of a file samples."""
HOMELESS = (
    "no loop around this optimizer step is seen in this file; where the loop that runs it has no step boundary yet, "
    "mark the end of each step with shim.steps(...) or shim.sync()"
)

TRACED = (
    "the loop around this optimizer step is compiled as a whole; mark the end of each step in the loop that calls it, "
    "with shim.steps(...) or shim.sync()"
)

SAMPLES = (
    "each turn hands what the model gives to the next, and a lazy back end makes one program of all turns; where this "
    "runs without gradients, mark the end of each turn with shim.steps(...) or shim.sync()"
)

PIECES = (
    "each turn computes with a model, and a lazy back end makes one program of all turns; mark the end of each turn "
    "with shim.steps(...) or shim.sync(), and take pieces of one size on the host, before they are moved: what is read "
    "or written at another place in each turn is another program in each"
)

EXPRESSION = "a loop over batches inside an expression: write it as a loop that ends its body with shim.sync()"


def step_boundary(rule: Rule, context: Context) -> Iterator[Finding]:
    """One boundary per step and loop, never two."""
    if context.target == "tpu":
        return  # TorchTPU is not lazy
    loops, homeless = step_loops(context.tree, context.project.stepping)
    for step in loops:
        if not has_boundary(context.tree, step.loop):
            yield _stepped(rule, context, step.loop)
    yield from _sampling(rule, context, loops)
    for part in batch_comprehensions(context.tree, loops):
        if not marks_steps(context.tree, part.iter):
            found = _handed_on(rule, context, part.iter) if context.spell.portable else None
            yield found or context.leave(rule, part.iter, EXPRESSION)
    for call in homeless:
        if not has_boundary_nearby(context, call) and not _is_turned(context, call):
            yield context.leave(rule, call, TRACED if is_traced(context.tree, call) else HOMELESS)


def _sampling(rule: Rule, context: Context, steps: list[Step]) -> Iterator[Finding]:
    """Loops in which a model is given what it gave in the turn before, and those that evaluate without a loader."""
    text = context.text.bytes.lower()
    if not any(word in text for word in MAY_SAMPLE):
        return
    from torchport.analysis.sampling import evaluating_loops, sampling_loops  # few files sample

    sampling = sampling_loops(context.tree, steps)
    taken = {step.loop for step in steps} | {loop for loop, _ in sampling}
    evaluating = evaluating_loops(context.tree, taken)
    for loops, reason in ((sampling, SAMPLES), (evaluating, PIECES)):
        for loop, certain in loops:
            if not has_boundary(context.tree, loop):
                yield _stepped(rule, context, loop) if certain else context.leave(rule, _head(loop), reason)


def _stepped(rule: Rule, context: Context, loop: Loop) -> Finding:
    """A loop with a boundary in each turn."""
    if isinstance(loop, ast.AsyncFor):
        return context.leave(rule, loop.iter, "an asynchronous loop: call shim.sync() at the end of its body")
    if isinstance(loop, ast.For) and context.spell.portable:
        return _handed_on(rule, context, loop.iter)
    return _marked(rule, context, loop)


def _head(loop: Loop) -> ast.expr:
    return loop.test if isinstance(loop, ast.While) else loop.iter


def _handed_on(rule: Rule, context: Context, iterable: ast.expr) -> Finding:
    """``shim.steps(iterable)``, with brackets of its own where the iterable has none."""
    source = context.source(iterable)
    bare = isinstance(iterable, ast.Tuple) and (
        not source.startswith("(") or context.text.span(iterable.elts[0])[0] == context.text.span(iterable)[0]
    )
    bare = bare or (isinstance(iterable, ast.Yield | ast.YieldFrom) and not source.startswith("("))
    return context.rewrite(
        rule, iterable, New(iterable, f"shim.steps(({source}))" if bare else f"shim.steps({source})")
    )


def _is_turned(context: Context, call: ast.Call) -> bool:
    """Whether loops of other files call the functions that take this step, or it is one step of a test."""
    names = outermost(context.tree, call)
    return bool(names) and all(n in context.project.turning or n.startswith("test_") for n in names)


def has_boundary_nearby(context: Context, call: ast.AST) -> bool:
    """Whether the function around an optimizer step marks the step itself, and not one of another loop."""
    function = context.tree.function(call) or context.tree.module
    around = set(context.tree.ancestors(call))
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name | ast.Attribute)
        and context.named(n.func, "torchport.shim.sync", "torch_xla.sync")
        and not any(isinstance(a, ast.For | ast.While) and a not in around for a in context.tree.ancestors(n))
        for n in ast.walk(function)
    )


def _marked(rule: Rule, context: Context, loop: ast.For | ast.While) -> Finding:
    """A call at the end of the body; at its start where a ``continue`` would jump over the end."""
    text = context.text
    head = _head(loop)
    first, last = loop.body[0], loop.body[-1]
    indent = text.indent(first.lineno)
    call = f"{context.shim}.sync()" if context.spell.portable else "torch_xla.sync()"
    if text.line(text.span(first)[0]) == text.line(text.span(head)[1]):
        end = text.span(last)[1]
        semicolon = text.bytes[end : text.line_end(end)].lstrip().startswith(b";")
        edit = Edit(end, end, f"; {call}")
        if semicolon:
            return context.leave(rule, head, f"the body ends with a semicolon; write {call} at its end")
    elif _continues(loop):
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
    needs = context.spell.needs(call)
    finding = context.edited(rule, head, [edit], call, needs=needs)
    return finding._replace(old=f"while {finding.old}:") if isinstance(loop, ast.While) else finding


def _continues(loop: ast.For | ast.While) -> bool:
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
