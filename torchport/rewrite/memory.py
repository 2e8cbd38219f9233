"""The memory of a device on the target tpu: ``torch.accelerator`` raises on a CPU, where ``torch.cuda`` gives 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.lazy import words
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.guards import AVAILABLE, decided, leaf
from torchport.rewrite.statements import replacement

WITHOUT = {
    "empty_cache": "None", "memory_allocated": "0", "max_memory_allocated": "0", "memory_reserved": "0",
    "max_memory_reserved": "0", "memory_cached": "0", "max_memory_cached": "0", "memory_stats": "{}",
}  # fmt: skip
"""What the functions of torch.cuda give where there is no GPU; the others raise there as well."""
ASKS = words(r"cuda|gpu|tpu|accelerator")
STANDS_ALONE = (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword, ast.Call, ast.Expr)


def memory_where_there_is_a_device(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.accelerator.memory_allocated()`` behind a test for the device, in a file that has a run on the CPU."""
    sites = [*_sites(context)] if context.target == "tpu" and _has_a_cpu_run(context) else []
    guarded = _guarded(context) if sites else []
    for call, name, doubt in sites:
        start = context.text.span(call)[0]
        if any(a <= start < b for a, b in guarded):
            continue
        context.claimed.add(call.func)
        torch = context.spell.torch
        new = rule.rename["tpu"][f"torch.cuda.{name}"].removeprefix("= ").removesuffix("()").replace("torch", torch, 1)
        test, statement = f"{torch}.accelerator.is_available()", context.tree.parents[call]
        if isinstance(statement, ast.Expr) and _has_its_line(context, statement):
            step = "\t" if context.text.indent(statement.lineno).startswith("\t") else "    "
            lines = [f"if {test}:", f"{step}{new}()"]
            edits = [replacement(context.text, statement, lines)]
            yield context.edited(rule, statement, edits, " ".join(map(str.strip, lines)), doubt=doubt)
        else:
            text = f"{new}() if {test} else {WITHOUT[name]}"
            whole = text if isinstance(statement, STANDS_ALONE) else f"({text})"
            yield context.rewrite(rule, call, New(call, whole), doubt=doubt)


def _sites(context: Context) -> Iterator[tuple[ast.Call, str, str]]:
    for name in WITHOUT:
        for node, found in context.uses(f"torch.cuda.{name}"):
            call = context.tree.parents[node]
            if isinstance(call, ast.Call) and call.func is node:
                yield call, name, found.doubt


def _has_a_cpu_run(context: Context) -> bool:
    """Whether the file asks whether there is a device, or names the CPU."""
    text = context.text.bytes
    return b'"cpu"' in text or b"'cpu'" in text or any(name in context.resolved for name in AVAILABLE)


def _guarded(context: Context) -> list[tuple[int, int]]:
    """What runs only where a test that speaks of a GPU is true."""
    tree = context.tree
    tests = [node.test for node in tree.every(ast.If)] + [node.test for node in tree.every(ast.IfExp)]
    tests += [node.test for node in tree.every(ast.Assert)]
    parts = [p for test in tests if ASKS.search(context.source(test)) for p in decided(context, leaf(test))]
    return [context.text.span(part) for part in parts if isinstance(part, ast.expr | ast.stmt)]


def _has_its_line(context: Context, statement: ast.Expr) -> bool:
    start, end = context.text.span(statement)
    line = context.text.bytes
    before, after = line[context.text.starts[statement.lineno - 1] : start], line[end : context.text.line_end(end)]
    return not before.strip() and not after.split(b"#")[0].strip()
