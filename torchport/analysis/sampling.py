"""Loops that sample, where a model is given what it gave in the turn before, and that evaluate without a loader."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from torchport.analysis.called import calls_of
from torchport.analysis.loops import EVALUATES, Step, run_in, switches_to_eval, without_gradients
from torchport.analysis.names import chain
from torchport.analysis.parts import MODEL, Loop, in_one_call, over_pieces, word_of
from torchport.analysis.scopes import FUNCTIONS, Tree, walk
from torchport.lazy import NamedTuple, words

SAMPLES = words(r"(^|_)(sample|sampling|denoise|denoising|inpaint|generate)($|_)")
JOINS = frozenset(("cat", "concat", "concatenate", "stack", "hstack", "vstack", "pad", "append"))
ON_HOST = frozenset(("cpu", "numpy", "item", "tolist"))
LOOKS = frozenset(("isinstance", "getattr", "hasattr", "print", "len", "next", "super", "parameters"))
PART = words(r"encode|decode|forward|generate|inference|predict|backbone|(^|_)(head|features|logits)$")
"""Methods and parts of a model that compute."""
ONE_BATCH = words(r"(^|_)(eval|evaluate|valid|validate|validation|test|predict)_(batch|step)$")
TREATS = words(
    r"^_*(add|build|compile|convert|create|define|eval|evaluate|export|fit|freeze|get|init|load|log|make|prepare|print|"
    r"register|save|set|setup|test|train|unwrap|update|validate|wrap)_"
)
"""Functions that do something with a model; those that run it have loops of their own."""
BATCH = words(r"^(data_)?(batch|samples|inputs|images)$")
"""What one turn gets from a loader, whatever that is called."""
LOGS = words(r"log|print|save|write|record|collect|append|update|visuali[sz]e|plot|on_")
TOKENS = words(r"tokeniz|vocab|processor")
CACHE = words(r"past|cache|kv")
FEW = 8
"""Turns that may well be one program."""
DEEP = 3
"""Calls that are followed to find that of a model."""
NESTED = (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.ClassDef, *FUNCTIONS)


class Gives(NamedTuple):
    """``targets = value``, in the body of a loop."""

    targets: frozenset[str]
    reads: frozenset[str]
    value: ast.expr


def sampling_loops(tree: Tree, steps: Iterable[Step]) -> list[tuple[Loop, bool]]:
    """Loops that sample, and whether it is certain that each runs without gradients; none that meets a loop of steps.

    A loop that joins a token to a tensor in each turn is none of these: each turn is another program, with a boundary
    or without.
    """
    others = {step.loop for step in steps}
    around = {parent for loop in others for parent in tree.ancestors(loop)}
    found = []
    for loop in reversed(tree.loops):
        if loop in around or loop in others or _is_short(loop) or in_one_call(tree, loop):
            continue
        if not others.isdisjoint(tree.ancestors(loop)) or over_pieces(tree, loop):
            continue
        if not _may_have_none(tree, loop) or (call := _carried(tree, loop)) is None:
            continue  # what looks at every node of the loop comes last
        certain = _has_no_gradients(tree, loop, call)
        if certain or SAMPLES.search(getattr(tree.function(loop), "name", "")):
            around.update(tree.ancestors(loop))
            found.append((loop, certain))
    return found[::-1]


def evaluating_loops(tree: Tree, others: set[Loop]) -> list[tuple[Loop, bool]]:
    """Loops that evaluate a model over what may be no loader, and whether it is certain that turns are alike.

    ``others`` have their boundaries; none that is found meets one of them. What is read on the host in each turn ends
    its program.
    """
    around = {parent for loop in others for parent in tree.ancestors(loop)}
    found: list[tuple[Loop, bool]] = []
    for loop in reversed(tree.loops):
        if not isinstance(loop, ast.For) or loop in around or loop in others or not _is_evaluation(tree, loop):
            continue
        if _is_short(loop) or in_one_call(tree, loop) or over_pieces(tree, loop):
            continue
        if not others.isdisjoint(tree.ancestors(loop)):
            continue
        own, turn = [*_own(loop.body)], _reads(loop.target)
        calls = [n for n in own if isinstance(n, ast.Call) and _evaluates(n, turn) and without_gradients(tree, n)]
        given = [g for node in own if (g := _gives(node)) is not None] if calls else []
        if calls and not any(_passes_on(call, given, turn | _written_first(own)) for call in calls):
            if any(run_in(tree, other, {loop}, set()) for other in others):
                continue  # over epochs, of which each has loops with boundaries of their own
            alike = not any(_differs(tree, node, turn, own) for node in own)
            if alike or not any(isinstance(n, ast.Attribute) and n.attr in ON_HOST for n in own):
                around.update(tree.ancestors(loop))
                found.append((loop, alike))
    return found[::-1]


def _is_evaluation(tree: Tree, loop: ast.For) -> bool:
    """Whether gradients are off in a loop, in code that says that it evaluates."""
    if not without_gradients(tree, loop) and not _has_with(loop):
        return False
    function = tree.function(loop)
    return function is None or (
        isinstance(function, FUNCTIONS) and bool(EVALUATES.search(function.name) or switches_to_eval(tree, function))
    )


def _evaluates(call: ast.Call, turn: set[str]) -> bool:
    """``model(x)``, ``model.text_encoder(x)``, ``self.loss_of(batch)``, and not of another model in each turn."""
    parts = chain(call.func)
    if not parts or not (call.args or call.keywords) or not turn.isdisjoint(parts) or any(map(TOKENS.search, parts)):
        return False
    of_model = any(map(MODEL.search, parts[:-1])) and PART.search(parts[-1])
    is_model = MODEL.search(parts[-1]) and not TREATS.search(parts[-1])
    batches = [a.id for a in call.args if isinstance(a, ast.Name) and a.id in turn and BATCH.search(a.id)]
    own = len(parts) == 2 and parts[0] == "self" and batches and not LOGS.search(parts[-1])
    return bool(is_model or ONE_BATCH.search(parts[-1]) or of_model or own)


def _passes_on(call: ast.Call, given: list[Gives], anew: set[str]) -> bool:
    """Whether a turn hands something to the next that the model is given there, or keeps keys and values for it."""
    fed = _closure({t for g in given if call in walk(g.value) for t in g.targets}, given, forwards=True)
    feeds = _closure(_given_to(call), given, forwards=False)
    return bool((fed & feeds) - anew) or any(map(CACHE.search, (*feeds, *(k.arg or "" for k in call.keywords))))


def _differs(tree: Tree, node: ast.AST, turn: set[str], own: list[ast.AST]) -> bool:
    """Whether a place in a tensor depends on the turn: on the device each turn is another program then."""
    if not _is_another_place(node) or turn.isdisjoint(_reads(node.slice)):
        return False
    if isinstance(node.ctx, ast.Store):
        return True
    statement = tree.statement(node)
    taken = {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not any(
        isinstance(n, ast.Attribute)
        and n.attr in ("to", "cuda")
        and (node in walk(n.value) or not taken.isdisjoint(_reads(n.value)))
        for n in own
    )


def _is_short(loop: Loop) -> bool:
    """``for _ in range(3)`` and ``for x in (a, b)``."""
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Tuple | ast.List):
        return True
    if not isinstance(loop, ast.For) or word_of(loop.iter) != "range":
        return False
    last = loop.iter.args[-1] if isinstance(loop.iter, ast.Call) and loop.iter.args else None
    return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= FEW


def _may_have_none(tree: Tree, loop: Loop) -> bool:
    """Whether anything around the loop, in it or in the name of its function says that gradients may be off."""
    function = tree.function(loop)
    if SAMPLES.search(getattr(function, "name", "")) or without_gradients(tree, loop) or _has_with(loop):
        return True
    return isinstance(function, FUNCTIONS) and any(without_gradients(tree, c) for c in calls_of(tree, function))


def _has_with(statement: ast.AST) -> bool:
    """Whether a ``with`` stands among the statements in a statement."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        for inner in getattr(statement, name, ()):
            if isinstance(inner, ast.With | ast.AsyncWith) or _has_with(inner):
                return True
    return False


def _has_no_gradients(tree: Tree, loop: Loop, call: ast.Call) -> bool:
    """Whether gradients are off around the call of the model, here or where the function is called."""
    function = tree.function(loop)
    calls = calls_of(tree, function) if isinstance(function, FUNCTIONS) else []
    return without_gradients(tree, call) or (bool(calls) and all(without_gradients(tree, c) for c in calls))


def _carried(tree: Tree, loop: Loop) -> ast.Call | None:
    """The call of a model whose result finds its way into what the same call is given in the next turn."""
    own = list(_own(loop.body))
    turn = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} if not isinstance(loop, ast.While) else set()
    calls = [n for n in own if isinstance(n, ast.Call) and _computes(tree, n, turn, DEEP)]
    if not calls:
        return None
    if not turn.isdisjoint(name for n in own if _is_another_place(n) for name in _reads(n.slice)):
        return None
    given = [g for node in own if (g := _gives(node)) is not None]
    first = _written_first(own)
    for call in calls:
        fed = _closure({t for g in given if call in walk(g.value) for t in g.targets}, given, forwards=True)
        feeds = _closure(_given_to(call), given, forwards=False)
        carried = (fed & feeds) - turn - first
        if any(map(CACHE.search, (*feeds, *(k.arg or "" for k in call.keywords)))):
            continue  # keys and values of earlier turns get longer in each
        if carried and not _grows(carried, call, given):
            return call
    return None


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a body in order of the source, without those of loops and functions in it."""
    for statement in body:
        stack: list[ast.AST] = [statement]
        while stack:
            node = stack.pop()
            if isinstance(node, NESTED):
                continue
            yield node
            stack += reversed([*ast.iter_child_nodes(node)])


def _gives(node: ast.AST) -> Gives | None:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
    if value is None or any(isinstance(n, ast.Attribute) and n.attr in ON_HOST for n in walk(value)):
        return None
    names = frozenset(n.id for t in targets if t is not None for n in _names(t))
    kept = names if isinstance(node, ast.AugAssign) else frozenset()
    return Gives(names, frozenset(_reads(value)) | kept, value)


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _names(part)


def _reads(*nodes: ast.AST) -> set[str]:
    """Names that expressions read."""
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def _given_to(call: ast.Call) -> set[str]:
    return _reads(*call.args, *(k.value for k in call.keywords))


def _closure(names: set[str], given: list[Gives], *, forwards: bool) -> set[str]:
    """``names`` and all that is made of them, or of which they are made."""
    found = set(names)
    grown = True
    while grown:
        before = len(found)
        for gives in given:
            left, right = (gives.reads, gives.targets) if forwards else (gives.targets, gives.reads)
            if found & left:
                found |= right
        grown = len(found) > before
    return found


def _written_first(own: list[ast.AST]) -> set[str]:
    """Names that get their value anew in each turn before they are read."""
    seen: dict[str, bool] = {}
    for node in own:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for n in walk(node.value):
                if isinstance(n, ast.Name):
                    seen.setdefault(n.id, False)
        elif isinstance(node, ast.AugAssign):
            for name in _names(node.target):
                seen.setdefault(name.id, False)
        elif isinstance(node, ast.Name):
            seen.setdefault(node.id, not isinstance(node.ctx, ast.Load))
    return {name for name, written in seen.items() if written}


def _is_another_place(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """``x[:, t]``, ``x[: t + 1]``, ``kept[t] = x``: with a ``t`` of the loop this is another program in each turn."""
    return isinstance(node, ast.Subscript) and (
        isinstance(node.slice, ast.Tuple | ast.Slice) or isinstance(node.ctx, ast.Store)
    )


def _grows(carried: set[str], call: ast.Call, given: list[Gives]) -> bool:
    """Whether what is carried gets longer: it comes of a join with itself that the model does not take in."""
    of_model = {*walk(call)} - {call}
    joined = {
        target
        for gives in given
        for n in walk(gives.value)
        if isinstance(n, ast.Call) and n not in of_model and word_of(n.func) in JOINS and _given_to(n) & carried
        for target in gives.targets
    }
    past_model = [gives for gives in given if call not in walk(gives.value)]
    return bool(_closure(joined, past_model, forwards=True) & carried)


def _computes(tree: Tree, call: ast.Call, turn: set[str], deep: int) -> bool:
    """Whether a model is called, or something that is given one, or that calls one."""
    func = call.func
    word = word_of(func)
    if not isinstance(func, ast.Name | ast.Attribute) or word in LOOKS or not (call.args or call.keywords):
        return False
    if not turn.isdisjoint(n.id for n in walk(func) if isinstance(n, ast.Name)):
        return False
    if MODEL.search(word) or word == "self":
        return True
    arguments = [*call.args[:2], *(k.value for k in call.keywords)]
    handed = [a for a in arguments if isinstance(a, ast.Name | ast.Attribute) and MODEL.search(word_of(a))]
    if handed:
        return not any(isinstance(a, ast.Name) and a.id in turn for a in handed)
    return deep > 0 and any(
        call in calls_of(tree, definition) and _calls_model(tree, definition, deep - 1)
        for definition in tree.definitions
        if definition.name == word
    )


def _calls_model(tree: Tree, definition: ast.FunctionDef | ast.AsyncFunctionDef, deep: int) -> bool:
    return any(isinstance(n, ast.Call) and _computes(tree, n, set(), deep) for n in walk(definition))
