"""What costs time or is wrong on several devices, whatever the device is called: reported, never rewritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.ranks import in_one_process
from torchport.analysis.scopes import FUNCTIONS
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

LOADER = "torch.utils.data.DataLoader"
NARROW = ("torch.bfloat16", "torch.float16", "torch.half")
VERSION = "torch.version.cuda"
NO_VERSION = "it is a text, and None in a PyTorch without CUDA: to show it, or to ask whether it is there, is right"
TAKEN_APART = "it is None in a PyTorch without CUDA, and that has no parts: ask for None first"
ASKS = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
LOOPS = (ast.For, ast.While, ast.AsyncFor)


def unsharded_loader(rule: Rule, context: Context) -> Iterator[Finding]:
    """A loader in a program of several processes that deals every process the same data."""
    if any(True for _ in context.calls("torch.distributed.init_process_group", "torchport.shim.init_process_group")):
        for call in context.calls(LOADER):
            names = {k.arg for k in call.keywords}
            alone = in_one_process(context.tree, call)  # what one process reads is not shared out
            if not names & {"sampler", "batch_sampler", None} and len(call.args) < 4 and not alone:
                yield context.leave(rule, call, rule.reason)
    for call in context.calls("torch.utils.data.RandomSampler"):
        function = context.tree.function(call)
        if isinstance(function, FUNCTIONS) and any(
            a.arg in ("rank", "local_rank", "index") for a in function.args.args
        ):
            yield context.leave(rule, call, rule.reason)


def cuda_version(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.version.cuda`` calls nothing: it is a text, or None."""
    for node, found in context.uses(*(name for name in context.resolved if name.startswith(VERSION))):
        context.claimed.add(node)
        taken = found.name != VERSION
        version = ast.unparse(node.value if taken and isinstance(node, ast.Attribute) else node)
        if (taken or _needs_text(context, node)) and not _asked_for(context, node, version):
            yield context.leave(rule, node, TAKEN_APART)
        else:
            yield context.leave(rule, node, NO_VERSION, effect="none")


def _needs_text(context: Context, node: ast.expr) -> bool:
    """Whether None in the place of ``node`` raises an error: ``.split``, ``float(...)``, ``"CUDA " + ...``, ``>``."""
    match parent := context.tree.parents[node]:
        case ast.Attribute() | ast.Subscript():
            return True
        case ast.BinOp():
            return isinstance(parent.op, ast.Add)
        case ast.Compare():
            return not isinstance(parent.ops[0], ASKS)
        case ast.Call(func=func):
            return getattr(func, "attr", getattr(func, "id", "")) in (
                "float",
                "int",
                "parse",
                "Version",
                "LooseVersion",
            )
    return False


def _asked_for(context: Context, node: ast.expr, version: str) -> bool:
    """Whether a test around ``node``, or before it in the same test, asks whether there is a ``version``."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        tests: list[ast.expr] = []
        if isinstance(parent, ast.BoolOp):
            tests = parent.values[: parent.values.index(child)]  # type: ignore[arg-type]
        elif isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            tests = parent.test.values if isinstance(parent.test, ast.BoolOp) else [parent.test]
        if any(_asks(test, version) for test in tests):
            return True
        child = parent
    return False


def _asks(test: ast.expr, version: str) -> bool:
    """``version``, ``not version``, ``version is None``."""
    if isinstance(test, ast.UnaryOp):
        return _asks(test.operand, version)
    if isinstance(test, ast.Compare) and isinstance(test.comparators[0], ast.Constant):
        return test.comparators[0].value is None and ast.unparse(test.left) == version
    return ast.unparse(test) == version


def narrow_sum(rule: Rule, context: Context) -> Iterator[Finding]:
    """``total += loss`` in a loop where ``total`` was made in bfloat16: 4096 + 1 is 4096 there."""
    made = set()
    for call in context.tree.calls:
        dtypes = [k.value for k in call.keywords if k.arg == "dtype"] if call.keywords else ()
        parent = context.tree.parents[call] if dtypes else None
        if isinstance(parent, ast.Assign) and any(context.named(dtype, *NARROW) for dtype in dtypes):
            made |= {t.id for t in parent.targets if isinstance(t, ast.Name)}
    for node in context.tree.every(ast.AugAssign):
        if isinstance(node.target, ast.Name) and node.target.id in made and in_loop(context, node):
            yield context.leave(rule, node, rule.reason)


def in_loop(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` stands in the body of a loop."""
    return any(isinstance(n, LOOPS) for n in context.tree.ancestors(node))
