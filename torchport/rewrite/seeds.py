"""Seeds: ``torch.manual_seed`` reaches the generators of CUDA and of TorchTPU, and not the one of PyTorch/XLA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.called import calls_of
from torchport.analysis.parts import word_of
from torchport.analysis.scopes import FUNCTIONS
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
            if before_launch(context, statement):
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


def before_launch(context: Context, node: ast.AST) -> bool:
    """Whether code runs before the file launches processes: at module level, or above the launch in its function.

    Or in a function that is called there, and is not the one that is launched.
    """
    launches = list(context.calls(*LAUNCHES))
    if not launches:
        return False
    last = {context.tree.function(call): call.lineno for call in launches}
    launched = {word_of(call.args[0]) for call in launches if call.args}

    def is_early(place: ast.AST) -> bool:
        function = context.tree.function(place)
        return function is None or getattr(place, "lineno", 0) < last.get(function, 0)

    function = context.tree.function(node)
    if is_early(node) or not isinstance(function, FUNCTIONS) or function.name in launched:
        return is_early(node)
    return function not in last and any(map(is_early, calls_of(context.tree, function)))


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
