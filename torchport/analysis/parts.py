"""Loops that are a part of one step: over pieces of a batch, over optimizers, over settings that are tried."""

from __future__ import annotations

import ast

from torchport.analysis.devices import NAMED
from torchport.analysis.names import chain
from torchport.analysis.scopes import FUNCTIONS, Tree, walk
from torchport.lazy import words

ONE = words(r"(^|_)(opt|optim|optimizer)[a-z]?\d?$", "opt")
OPTIMIZERS = words(r"optim\w*s$|(^|_)opts$", "opt")
MODEL = words(r"(^|_)(model|net|network|unet|transformer|denoise\w*)(_fn)?$", "model", "net", "transformer", "denoise")
CUTS = frozenset(("chunk", "split", "unbind", "tensor_split", "split_with_sizes"))
"""Methods of a tensor, and functions of PyTorch, that cut it into pieces."""
PIECES = words(
    r"micro_?batch|micro_?step|(^|_)chunks$|accum\w*_(steps?|iters?|every|batches)$", "micro", "chunks", "accum"
)
STEPPED = frozenset(("forward", "training_step", "validation_step", "test_step", "predict_step", "compute_loss"))
"""Methods that whoever has the object calls once, or more often, in each of its steps."""
COMPILES = frozenset(("torch.compile", "torch.jit.script", "torch.jit.script_if_tracing", "torch.jit.script_method"))
MOVES = frozenset(
    ("cuda", "to", "cpu", "pin_memory", "append", "extend", "add", "update", "items", "keys", "values", "size", "dim")
)
"""Methods that compute nothing on a device."""
LOOKS = frozenset(("isinstance", "len", "enumerate", "zip", "range", "list", "tuple", "dict", "next", "tqdm"))
Loop = ast.For | ast.AsyncFor | ast.While


def word_of(node: ast.AST) -> str:
    """The last name of ``a.b(x)[0]``, which says what it is: ``b``."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return ""
    return node.id


def over_optimizers(tree: Tree, loop: Loop) -> bool:
    """``for optimizer in optimizers: optimizer.step()`` is a part of one step, as is what a compiler traces."""
    if isinstance(loop, ast.For):
        names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        if any(ONE.search(name) for name in names) or OPTIMIZERS.search(word_of(loop.iter)):
            return True
        if "param_groups" in map(word_of, walk(loop.iter)):
            return True
    return is_traced(tree, loop) or _in_optimizer(tree, loop)


def _in_optimizer(tree: Tree, loop: Loop) -> bool:
    """Whether a loop stands in the ``step`` of an optimizer that the file defines."""
    function = tree.function(loop)
    owner = tree.parents[function] if function is not None else None
    return (
        isinstance(owner, ast.ClassDef)
        and getattr(function, "name", "") == "step"
        and any(word_of(base) == "Optimizer" for base in owner.bases)
    )


def calls_on_cuts(tree: Tree, loop: Loop) -> bool:
    """``for part in x.split(8): found.append(model(part))``."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not any(map(_cuts, walk(loop.iter))):
        return False
    part = loop.target.id
    return any(
        isinstance(n, ast.Call)
        and MODEL.search(word_of(n.func))
        and any(isinstance(a, ast.Name) and a.id == part for a in n.args)
        for statement in loop.body
        for n in walk(statement)
    )


def within_step(tree: Tree, loop: Loop) -> bool:
    """Whether ``backward`` in each turn of a loop makes no step of the turn."""
    return over_optimizers(tree, loop) or _over_settings(loop) or over_pieces(tree, loop) or in_one_call(tree, loop)


def in_one_call(tree: Tree, node: ast.AST) -> bool:
    """Whether ``node`` stands in a method that is one part of a step whenever it is called, or is traced."""
    function = tree.function(node)
    return isinstance(function, FUNCTIONS) and (
        (function.name in STEPPED and isinstance(tree.parents[function], ast.ClassDef)) or is_traced(tree, node)
    )


def is_traced(tree: Tree, node: ast.AST) -> bool:
    """Whether the function around ``node`` is compiled as a whole: ``@torch.compile``, ``torch.jit.script(f)``."""
    function = tree.function(node)
    if not isinstance(function, FUNCTIONS):
        return False
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        inner = decorator.args if isinstance(decorator, ast.Call) and word_of(named) == "partial" else []
        if any(map(_compiles, (named, *inner))):
            return True
    return any(
        call.args and word_of(call.args[0]) == function.name and _compiles(call.func)
        for word in ("compile", "script")
        for call in tree.calls_of(word)
    )


def _compiles(function: ast.expr) -> bool:
    """Whether a name is that of a compiler of PyTorch, or of the shim."""
    return ".".join(chain(function)).replace("shim.", "torch.") in COMPILES


def over_pieces(tree: Tree, loop: Loop) -> bool:
    """``for part in batch.chunk(4)``, ``for x, y in microbatches``: one batch, cut up to save memory."""
    if not isinstance(loop, ast.For):
        return False
    for node in (*walk(loop.target), *walk(loop.iter)):
        if isinstance(node, ast.Name | ast.Attribute) and PIECES.search(word_of(node)):
            return True
        if _cuts(node) or (isinstance(node, ast.Name) and node.ctx.__class__ is ast.Load and _is_cut(tree, node)):
            return True
    return False


def _cuts(node: ast.AST) -> bool:
    """Whether a call cuts a tensor, and not a text."""
    if not isinstance(node, ast.Call) or not node.args or word_of(node.func) not in CUTS:
        return bool(isinstance(node, ast.Call) and not node.args and word_of(node.func) == "unbind")
    return not any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in node.args)


def _is_cut(tree: Tree, name: ast.Name) -> bool:
    """Whether a name holds nothing but the pieces of a tensor."""
    scope = tree.scopes.get(name)
    home = scope.find(name.id) if scope is not None else None
    if home is None:
        return False
    given = [tree.parents.get(binding.node) for binding in home.names[name.id]]
    return all(isinstance(g, ast.Assign) and any(map(_cuts, walk(g.value))) for g in given)


def _over_settings(loop: Loop) -> bool:
    """``for device in devices``, ``for scale in (1, 2)``: these are tried; ``backward`` alone is no step."""
    if not isinstance(loop, ast.For):
        return False
    if any(isinstance(n, ast.Name) and NAMED.search(n.id) for n in walk(loop.target)):
        return True
    if isinstance(loop.iter, ast.Name | ast.Attribute) and word_of(loop.iter).isupper():
        return True
    return isinstance(loop.iter, ast.List | ast.Tuple | ast.Set) and all(map(_is_written_out, loop.iter.elts))


def _is_written_out(node: ast.expr) -> bool:
    """``0.1``, ``-1``, ``("adam", 1)`` and ``torch.device("cpu")``."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=inner):
            return _is_written_out(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Call(args=parts, keywords=[]):
            return all(map(_is_written_out, parts))
    return False


def only_moves(loop: Loop) -> bool:
    """Whether the body of a loop moves and collects, and computes nothing that a step could end, or runs but once."""
    if isinstance(loop.body[-1], ast.Break):
        return True
    for statement in loop.body:
        for node in walk(statement):
            if isinstance(node, ast.BinOp | ast.AugAssign | ast.Yield | ast.YieldFrom | ast.Await):
                return False
            if isinstance(node, ast.Call):
                func = node.func
                known = MOVES if isinstance(func, ast.Attribute) else LOOKS
                if word_of(func) not in known or isinstance(func, ast.Call | ast.Subscript):
                    return False
    return True
