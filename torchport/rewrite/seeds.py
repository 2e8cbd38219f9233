"""Seeds: ``torch.manual_seed`` reaches the generators of CUDA and of TorchTPU, and not the one of PyTorch/XLA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.model import Edit, Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.guards import is_available
from torchport.rewrite.statements import block_of

SEED = "torch_xla.manual_seed"
SEEDS = (SEED, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
LAUNCHES = ("torch.multiprocessing.spawn", "torch_xla.launch")
VALUE = "it gives a generator, which PyTorch/XLA has none of; call torch_xla.manual_seed with the same seed as well"
EARLY = (
    "torch_xla.manual_seed starts the runtime, after which no process can be launched; call it in the function that "
    "is launched"
)


def seed(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.manual_seed(n)`` for PyTorch/XLA alone: a second call beside it. The shim has a function for both."""
    for node, found in context.uses("torch.manual_seed") if context.target == "xla" else ():
        context.claimed.add(node)
        call = context.tree.parents[node]
        statement = context.tree.parents[call]
        if not (isinstance(call, ast.Call) and call.func is node and isinstance(statement, ast.Expr)):
            yield context.leave(rule, node, VALUE)
        elif not _seeded(context, call, statement):
            if _before_launch(context, statement):
                yield context.leave(rule, call, EARLY)
            else:
                yield _beside(rule, context, call, statement, found.doubt)


def _seeded(context: Context, call: ast.Call, statement: ast.Expr) -> bool:
    """Whether the same block seeds the device with the same number."""
    given = _given(call)
    for other in block_of(context.tree, statement):
        inner = other.body if isinstance(other, ast.If) and _asks_for_device(context, other.test) else [other]
        for expression in inner:
            seeding = expression.value if isinstance(expression, ast.Expr) else None
            if isinstance(seeding, ast.Call) and context.named(seeding.func, *SEEDS) and _given(seeding) == given:
                return True
    return False


def _given(call: ast.Call) -> list[str]:
    return [ast.dump(a) for a in (*call.args, *(k.value for k in call.keywords))]


def _asks_for_device(context: Context, test: ast.expr) -> bool:
    """A test that is always true where PyTorch/XLA runs, as it was written or as it is written now."""
    return is_available(context, test) or ast.unparse(test) == "bool(torch_xla.runtime.device_type())"


def _before_launch(context: Context, statement: ast.stmt) -> bool:
    """Whether the file launches processes, and the statement is not in a function that could be launched."""
    launches = list(context.calls(*LAUNCHES))
    function = context.tree.function(statement)
    return bool(launches) and (function is None or any(context.tree.function(c) is function for c in launches))


def _beside(rule: Rule, context: Context, call: ast.Call, statement: ast.Expr, doubt: str) -> Finding:
    """The second call, on a line of its own below or behind a semicolon."""
    text = context.text
    start, end = text.span(statement)
    head, tail = text.span(call.func)[1], text.span(call)[1]
    new = f"{SEED}{text.bytes[head:tail].decode()}"
    line = text.line_end(end)
    alone = not text.bytes[text.starts[statement.lineno - 1] : start].strip() and not text.bytes[
        end:line
    ].strip().startswith(b";")
    if alone:
        edit = Edit(line, line, f"{text.newline(statement.lineno)}{text.indent(statement.lineno)}{new}")
    else:
        edit = Edit(end, end, f"; {new}")
    return context.edited(rule, call, [edit], f"{context.source(call)}; {new}", needs=("torch_xla",), doubt=doubt)
