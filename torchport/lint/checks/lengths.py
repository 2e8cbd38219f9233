"""Samples of different lengths: padded to the longest of a batch, packed, or put together as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.index import keyword
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import FUNCTIONS, Tree
from torchport.lazy import words
from torchport.lint.checks.facts import Facts, facts, report
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

PACKED = (
    "torch.nn.utils.rnn.pack_padded_sequence",
    "torch.nn.utils.rnn.pack_sequence",
    "torch.nn.utils.rnn.pad_packed_sequence",
)
PREPARES = words(r"^_*(init_*$|process|download|prepare|build|load_data)")
LOADER = "torch.utils.data.DataLoader"


def packed(rule: Rule, context: Context) -> Iterator[Finding]:
    """``pack_padded_sequence`` and what undoes it."""
    for call in context.calls(*PACKED):
        yield report(rule, context, call)


def padded(rule: Rule, context: Context) -> Iterator[Finding]:
    """``pad_sequence``, ``tokenizer(..., padding=True)``, and padding to ``max(len(x) for x in batch)``."""
    known = facts(context)
    if known.is_test:
        return
    for call in context.calls("torch.nn.utils.rnn.pad_sequence"):
        if not _prepares(context.tree, call):
            yield report(rule, context, call)
    for call in context.tree.calls if b"padding" in context.text.bytes else ():
        padding = keyword(call, "padding") if call.keywords else None
        if isinstance(padding, ast.Constant):
            if not _is_bool_or_longest(padding.value) or keyword(call, "pad_to_multiple_of") is not None:
                continue
            tokenizes = keyword(call, "return_tensors") is not None or "token" in ast.unparse(call.func).lower()
            if tokenizes and not _only_compared(known, call):
                yield report(rule, context, call)
    for call in known.named("max"):
        if _longest(call) and _shapes(context, call) and not _prepares(context.tree, call):
            yield report(rule, context, call)


def _prepares(tree: Tree, node: ast.AST) -> bool:
    """Whether ``node`` stands where a data set is made or prepared, once for all batches."""
    function = tree.function(node)
    owner = tree.parents[function] if isinstance(function, FUNCTIONS) else None
    dataset = isinstance(owner, ast.ClassDef) and any("Dataset" in ast.unparse(base) for base in owner.bases)
    return dataset and bool(PREPARES.search(function.name))  # type: ignore[union-attr]


def _only_compared(known: Facts, call: ast.Call) -> bool:
    """Whether the tokens are only measured, compared and turned back into text: they stay on the host."""
    tree = known.tree
    whole: ast.AST = call
    while isinstance(tree.parents[whole], ast.Attribute):
        whole = tree.parents[whole]
    assign = tree.parents[whole]
    if not isinstance(assign, ast.Assign) or not isinstance(assign.targets[0], ast.Name):
        return False
    name = assign.targets[0].id
    uses = known.flow.uses(scope_of(tree, assign.targets[0]).find(name), name)
    return bool(uses) and all(_stays(tree, use) for use in uses)


def _stays(tree: Tree, use: ast.expr) -> bool:
    if isinstance(use, ast.Attribute):
        return use.attr == "shape"
    around = tree.parents[use]
    if isinstance(around, ast.Subscript):
        around = tree.parents[around]
    func = around.func if isinstance(around, ast.Call) else None
    return isinstance(func, ast.Attribute) and (func.attr == "equal" or "decode" in func.attr)


def _is_bool_or_longest(value: object) -> bool:
    return value is True or value == "longest"


def _longest(call: ast.Call) -> bool:
    """``max(len(x) for x in batch)``, ``max([x.size(0) for x in xs])``, ``max(map(len, xs))``."""
    if not isinstance(call.func, ast.Name) or len(call.args) != 1:
        return False
    given = call.args[0]
    if isinstance(given, ast.Call):
        return getattr(given.func, "id", "") == "map" and getattr(given.args[0], "id", "") == "len"
    if not isinstance(given, ast.ListComp | ast.GeneratorExp):
        return False
    measured = given.elt
    if isinstance(measured, ast.Subscript):
        measured = measured.value
        return isinstance(measured, ast.Attribute) and measured.attr == "shape"
    if not isinstance(measured, ast.Call):
        return False
    return getattr(measured.func, "id", "") == "len" or getattr(measured.func, "attr", "") == "size"


def _shapes(context: Context, call: ast.Call) -> bool:
    """Whether the longest length becomes the shape of a tensor in the same function."""
    parent = context.tree.parents[call]
    function = context.tree.function(call)
    if not isinstance(parent, ast.Assign) or function is None or not isinstance(parent.targets[0], ast.Name):
        return False
    name = parent.targets[0].id
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            found = context.qualify(node.func)
            if found is None or not found.name.startswith("torch."):
                continue
            last = found.name.rpartition(".")[2]
            if last in ("pad", "zeros", "full", "ones", "empty", "tensor") and any(
                isinstance(n, ast.Name) and n.id == name for a in node.args for n in ast.walk(a)
            ):
                return True
    return False


def ragged(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.cat([t["boxes"] for t in targets])``: as many rows as the batch happens to hold."""
    known = facts(context)
    for call in known.named("cat", "concat"):
        if not known.flow.name_of(call.func).startswith("torch.") or not call.args:
            continue
        listed = call.args[0]
        if isinstance(listed, ast.ListComp) and _per_sample(listed) and known.heat(call):
            yield report(rule, context, call)


def _per_sample(listed: ast.ListComp) -> bool:
    element = listed.elt
    return (
        isinstance(element, ast.Subscript)
        and isinstance(element.slice, ast.Constant)
        and isinstance(element.slice.value, str)
        and isinstance(element.value, ast.Name)
        and isinstance(listed.generators[0].target, ast.Name)
        and element.value.id == listed.generators[0].target.id
    )


def last_batch(rule: Rule, context: Context) -> Iterator[Finding]:
    """A loader for training whose last batch is smaller."""
    for call in context.calls(LOADER):
        given = {k.arg: k.value for k in call.keywords}
        shuffles = _is(given.get("shuffle"), True) or (len(call.args) > 2 and _is(call.args[2], True))
        plain = not {"batch_sampler", None} & set(given) and not _whole(given.get("batch_size"))
        if not plain or not shuffles or not ("drop_last" not in given or _is(given["drop_last"], False)):
            continue
        if (value := given.get("drop_last")) is not None:
            new = New(value, "True", False)
        else:
            source = context.source(call)
            new = New(call, f"{source[:-1].rstrip().rstrip(',')}, drop_last=True)", False)
        yield context.rewrite(rule, call, new, doubt=f"{rule.reason}; --unsafe adds it")


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _whole(node: ast.expr | None) -> bool:
    """Batches of one sample, and no batches at all, have one size."""
    return isinstance(node, ast.Constant) and node.value in (1, None)
