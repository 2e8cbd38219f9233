"""Which loops turn once per step: around an optimizer step, a backward pass, or an evaluation over a loader."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator

from torchport.analysis import parts
from torchport.analysis.called import calls_of, is_hook
from torchport.analysis.elsewhere import steps_elsewhere
from torchport.analysis.names import chain, qualify
from torchport.analysis.parts import Loop, in_one_call, word_of
from torchport.analysis.prepared import is_prepared
from torchport.analysis.scopes import FUNCTIONS, Tree, walk
from torchport.lazy import NamedTuple, words

OPTIMIZER = words(r"optim|(^|_)opt[a-z]?($|_|\d)|optimizer|scaler|(^|_)sgd|(^|_)adam", "opt", "scaler", "sgd", "adam")
DRIVER = words(r"accelerator|engine|fabric|manager")
TAKES_STEP = words(r"(^|_)(optimi[sz]e|optim\w*_step|step_optim\w*|take_step)$")
LOSS = words(r"(^|_)loss$", "loss")
SCHEDULER = words(r"sched|warmup|lr_", "sched", "warmup", "lr_")
LOADER = words(r"loader|(^|_)dl($|_)|batches", "loader", "dl", "batches")
WRAPS = words(r"optim|lookahead")
EVALUATES = words(r"eval|valid|test|infer|predict|sampl|generat|metric")
COLLECTS = frozenset(("append", "extend", "update", "add", "isinstance", "setattr", "print", "len"))
STATE = frozenset(
    ("values", "items", "keys", "parameters", "buffers", "named_parameters", "named_buffers", "modules", "state_dict")
)
BOUNDARY = frozenset(
    (
        "torchport.shim.sync",
        "torch_xla.sync",
        "torch_xla.step",
        "torch_xla.core.xla_model.mark_step",
        "torch_xla.core.xla_model.optimizer_step",
    )
)


class Step(NamedTuple):
    """A loop that turns once per step, and the call that shows it."""

    loop: Loop
    sign: ast.AST


def step_loops(tree: Tree, elsewhere: Iterable[str] = ()) -> tuple[list[Step], list[ast.Call]]:
    """The loops that want a step boundary, and the optimizer steps of the file around which no loop was found.

    ``elsewhere`` are functions that take a step in another file.
    """
    steps, backward = _signs(tree)
    found: dict[ast.AST, Step] = {}
    homeless: list[ast.Call] = []
    for call in steps:
        loops = _loops_around(tree, call, set(), parts.over_optimizers)
        if not loops and not _hands_on(tree, call):
            homeless.append(call)
        for loop in loops:
            found[loop] = Step(loop, call)
    for call in steps_elsewhere(tree, elsewhere):
        for loop in _loops_around(tree, call, set(), parts.over_optimizers):
            found.setdefault(loop, Step(loop, call))
    taken = set(found)
    for call in backward:
        for loop in _loops_around(tree, call, set(), parts.within_step):
            if not _meets(tree, loop, found) and not run_in(tree, loop, taken, set()):
                found[loop] = Step(loop, call)
    for loop, sign in _over_batches(tree):
        if not _meets(tree, loop, found) and not _is_part(tree, loop, taken):
            found[loop] = Step(loop, sign)
    homeless = [call for call in homeless if not (_is_wrapped(tree, call, bool(found)))]
    # A loop around a step loop that is itself one would mark a step twice.
    inner = [s for s in found.values() if not any(o is not s and _inside(tree, o.loop, s.loop) for o in found.values())]
    return sorted(inner, key=lambda s: s.loop.lineno), homeless


def _is_wrapped(tree: Tree, call: ast.Call, has_loops: bool) -> bool:
    """Whether a step stands in the ``step`` of an optimizer around another, or in a hook: it has a loop elsewhere."""
    function = tree.function(call)
    if isinstance(function, FUNCTIONS) and any(map(is_hook, tree.calls_of(function.name))):
        return True
    owner = tree.parents[function] if function is not None else None
    if not isinstance(owner, ast.ClassDef) or getattr(function, "name", "") != "step":
        return False
    return has_loops or any(WRAPS.search(name) for name in (owner.name, *map(word_of, owner.bases)))


def _meets(tree: Tree, loop: Loop, steps: Iterable[ast.AST]) -> bool:
    """Whether a loop of steps stands in ``loop``, or around it."""
    return any(_inside(tree, step, loop) or _inside(tree, loop, step) for step in steps)


def _over_batches(tree: Tree) -> Iterator[tuple[Loop, Loop]]:
    """Loops over batches, and the loops that show it: where these turn over pieces of one batch, those inside."""
    moved = _batch_loops(tree)
    inside = []
    for loop in tree.loops:
        evaluates = loop in moved or parts.calls_on_cuts(tree, loop)
        if not (evaluates or _evaluates(tree, loop)) or parts.only_moves(loop) or in_one_call(tree, loop):
            continue
        if parts.over_pieces(tree, loop) and not (evaluates and without_gradients(tree, loop)):
            inside.append(loop)
        else:
            yield loop, loop
    for loop in inside:
        around = itertools.takewhile(lambda n: not isinstance(n, FUNCTIONS), tree.ancestors(loop))
        loops = (
            n for n in around if isinstance(n, ast.For | ast.AsyncFor | ast.While) and not parts.within_step(tree, n)
        )
        if (outer := next(loops, None)) is not None:
            yield outer, loop


def _is_part(tree: Tree, loop: Loop, steps: set[ast.AST]) -> bool:
    """Whether ``loop`` works for a step that loops of other functions take around it, and evaluates nothing."""
    backward = any(isinstance(n, ast.Attribute) and "backward" in n.attr for n in walk(loop))
    if not backward:
        function = tree.function(loop)
        named = EVALUATES.search(getattr(function, "name", ""))
        if named or without_gradients(tree, loop) or (isinstance(loop, ast.For) and _is_over_loader(tree, loop)):
            return False
    return run_in(tree, loop, steps, set())


def run_in(tree: Tree, node: ast.AST, steps: set[ast.AST], seen: set[ast.AST]) -> bool:
    """Whether the function around ``node`` is called in one of ``steps``, however deep."""
    function = tree.function(node)
    if not isinstance(function, FUNCTIONS) or function in seen:
        return False
    seen.add(function)
    calls = calls_of(tree, function)
    return any(any(a in steps for a in tree.ancestors(call)) or run_in(tree, call, steps, seen) for call in calls)


def batch_comprehensions(tree: Tree, steps: list[Step]) -> list[ast.comprehension]:
    """``[model(x.cuda()) for x in loader]``: a loop over batches written as an expression, outside other steps."""
    loops = {step.loop for step in steps}
    return [
        part
        for part in tree.every(ast.comprehension)
        if _computes(tree, part) and not _within(tree, part, loops) and not in_one_call(tree, part)
    ]


def _computes(tree: Tree, part: ast.comprehension) -> bool:
    """Whether the items come from a loader and are moved and handed to a function that computes."""
    iterated = part.iter
    while isinstance(iterated, ast.Call) and iterated.args and not LOADER.search(word_of(iterated)):
        iterated = iterated.args[0]
    whole = tree.parents[part]
    names = {n.id for n in walk(part.target) if isinstance(n, ast.Name)}
    body = [whole.key, whole.value] if isinstance(whole, ast.DictComp) else [getattr(whole, "elt", whole)]
    moves = [n for root in body for n in walk(root) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return bool(LOADER.search(word_of(iterated))) and any(
        isinstance(move.func, ast.Attribute)
        and move.func.attr in ("cuda", "to")
        and isinstance(move.func.value, ast.Name)
        and move.func.value.id in names
        and isinstance(tree.parents[move], ast.Call)
        and _is_used(tree, move, move.func.value.id)
        for move in moves
    )


def _within(tree: Tree, node: ast.AST, loops: set[Loop]) -> bool:
    return any(parent in loops for parent in tree.ancestors(node))


def has_boundary(tree: Tree, loop: Loop) -> bool:
    """Whether the loop marks its steps already: by the shim, by torch_xla, or by a loader of torch_xla."""
    if isinstance(loop, ast.For | ast.AsyncFor) and marks_steps(tree, loop.iter):
        return True
    return any(loop in tree.ancestors(call) for call in _boundaries(tree))


def marks_steps(tree: Tree, iterable: ast.expr) -> bool:
    """Whether a loop over ``iterable`` marks its steps already, since that is what it does."""
    for node in walk(iterable):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            found = qualify(tree, node.func)
            name = found.name if found else ast.unparse(node.func)
            if name == "torchport.shim.steps" or name.rpartition(".")[2] in ("MpDeviceLoader", "per_device_loader"):
                return True
    return is_prepared(tree, iterable)


def _boundaries(tree: Tree) -> list[ast.Call]:
    """Calls that mark a step."""
    marks = []
    for word in ("sync", "step", "mark_step", "optimizer_step"):
        for call in tree.calls_of(word):
            found = qualify(tree, call.func)
            if found is not None and found.name in BOUNDARY:
                marks.append(call)
    return marks


def _signs(tree: Tree) -> tuple[list[ast.Call], list[ast.Call]]:
    """Calls of an optimizer's ``step`` and of ``backward``."""
    made = _made_optimizers(tree) if "step" in tree.called() else set()
    steps, backward = [], []
    for call in tree.calls:
        if call.args and _hands_on(tree, call):
            steps.append(call)
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "step":
            name = word_of(call.func.value)
            handed = " ".join(word_of(a) for a in call.args)
            if not SCHEDULER.search(name) and (name in made or OPTIMIZER.search(name) or OPTIMIZER.search(handed)):
                steps.append(call)
        elif call.func.attr == "update_params" and OPTIMIZER.search(word_of(call.func.value)):
            steps.append(call)
        elif call.func.attr == "backward" and (not call.args or DRIVER.search(word_of(call.func.value))):
            backward.append(call)
    return steps, backward


def _hands_on(tree: Tree, call: ast.Call) -> bool:
    """``trainer.optimize(self.opt)`` and ``loss_scaler(loss, optimizer)``: code of another file takes the step."""
    if not call.args:
        return False
    name, first = word_of(call.func), word_of(call.args[0])
    takes = ("optim" in name or "step" in name) and TAKES_STEP.search(name)
    if not takes and not ("loss" in first and LOSS.search(first) and not isinstance(call.args[0], ast.Call)):
        return False
    if name[:1].isupper() or not any(parts.ONE.search(word_of(argument)) for argument in call.args):
        return False
    found = qualify(tree, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    if (found is not None and found.name.startswith("torch_xla.")) or any(d.name == name for d in tree.definitions):
        return False
    return bool(takes) or isinstance(tree.parents[call], ast.Expr | ast.Assign)


def _made_optimizers(tree: Tree) -> set[str]:
    """Names to which the file assigns an optimizer of PyTorch."""
    found = set()
    for assign in tree.every(ast.Assign):
        if isinstance(assign.value, ast.Call):
            qualified = qualify(tree, assign.value.func)
            if qualified and qualified.name.startswith("torch.optim.") and "lr_scheduler" not in qualified.name:
                found |= {word_of(target) for target in assign.targets}
    return found


def _loops_around(
    tree: Tree, node: ast.AST, seen: set[ast.AST], passed_over: Callable[[Tree, Loop], bool]
) -> list[Loop]:
    """The innermost loop around ``node``; where its function has none, the loops around the calls of that function."""
    for parent in tree.ancestors(node):
        if isinstance(parent, ast.For | ast.AsyncFor | ast.While) and not passed_over(tree, parent):
            return [parent]
        if isinstance(parent, FUNCTIONS):
            if parent in seen:
                return []
            seen.add(parent)
            return [loop for call in calls_of(tree, parent) for loop in _loops_around(tree, call, seen, passed_over)]
    return []


def _evaluates(tree: Tree, loop: Loop) -> bool:
    """A loop over a loader that computes without gradients."""
    if not isinstance(loop, ast.For | ast.AsyncFor) or not _is_over_loader(tree, loop):
        return False
    return without_gradients(tree, loop) or any(
        without_gradients(tree, n) for n in walk(loop) if isinstance(n, ast.With)
    )


def _is_over_loader(tree: Tree, loop: ast.For | ast.AsyncFor) -> bool:
    """Whether what is iterated is called a loader, whatever is around it: ``enumerate(tqdm(train_loader))``."""
    iterated = loop.iter
    for _ in range(2):
        while isinstance(iterated, ast.Call) and iterated.args and not LOADER.search(word_of(iterated)):
            iterated = iterated.args[0]
        home = tree.scopes[iterated].find(iterated.id) if isinstance(iterated, ast.Name) else None
        given = [tree.parents[b.node] for b in home.names[word_of(iterated)]] if home is not None else []
        if LOADER.search(word_of(iterated)) or len(given) != 1 or not isinstance(given[0], ast.Assign):
            break
        iterated = given[0].value  # pbar = tqdm(train_loader)
    return bool(LOADER.search(word_of(iterated)))


def _batch_loops(tree: Tree) -> set[ast.AST]:
    """Loops of ``for x, y in data: x = x.cuda()`` or ``model(x.cuda())``: their items are batches."""
    found: set[ast.AST] = set()
    for call in (call for name in ("cuda", "to") for call in tree.called().get(name, ())):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("cuda", "to"):
            continue
        item = func.value
        while isinstance(item, ast.Subscript | ast.Attribute):
            item = item.value  # batch["x"].cuda()
        if not isinstance(item, ast.Name):
            continue
        if func.attr == "to" and (not call.args or not _may_be_device(call.args[0])):
            continue
        for parent in tree.ancestors(call):
            if isinstance(parent, FUNCTIONS):
                break
            if isinstance(parent, ast.For | ast.AsyncFor):
                names = {n.id for n in walk(parent.target) if isinstance(n, ast.Name)}
                batches = _is_over_loader(tree, parent) or (item is func.value and _is_used(tree, call, item.id))
                if item.id in names and word_of(parent.iter) not in STATE and batches:
                    found.add(parent)
                break
    return found


def _may_be_device(node: ast.expr) -> bool:
    """Whether ``.to(node)`` may move to the accelerator."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.startswith(("cuda", "xla", "tpu"))
    return not _is_dtype(node)


def _is_dtype(node: ast.expr) -> bool:
    """Whether a name says dtype rather than device."""
    return "dtype" in word_of(node) or bool(chain(node)[:1] == ["torch"])


def _is_used(tree: Tree, call: ast.Call, name: str) -> bool:
    """Whether what is moved takes the place of the item, or is handed to a function that computes."""
    parent = tree.parents[call]
    if isinstance(parent, ast.Call) and call in parent.args:
        found = qualify(tree, parent.func) if isinstance(parent.func, ast.Name | ast.Attribute) else None
        function = word_of(parent.func)
        return found is None and not function.endswith("_") and function not in COLLECTS
    if isinstance(parent, ast.Tuple):
        parent = tree.parents[parent]
    return isinstance(parent, ast.Assign) and any(
        isinstance(n, ast.Name) and n.id == name for t in parent.targets for n in walk(t)
    )


def without_gradients(tree: Tree, node: ast.AST) -> bool:
    """Whether ``node`` stands where no gradients are computed."""
    for parent in [node, *tree.ancestors(node)]:
        if isinstance(parent, ast.With | ast.AsyncWith) and any(map(_disables, parent.items)):
            return True
        if isinstance(parent, FUNCTIONS):
            return any(map(_disables, parent.decorator_list)) or switches_to_eval(tree, parent)
    return False


def _disables(node: ast.AST) -> bool:
    """Whether ``no_grad`` or ``inference_mode`` is named."""
    return any(
        word in name
        for n in walk(node)
        for name in (getattr(n, "attr", None) or getattr(n, "id", None),)
        if name
        for word in ("no_grad", "inference_mode")
    )


def switches_to_eval(tree: Tree, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function calls ``model.eval()``."""
    return any(
        isinstance(call.func, ast.Attribute) and not call.args and function in tree.ancestors(call)
        for call in tree.calls_of("eval")
    )


def _inside(tree: Tree, inner: ast.AST, outer: ast.AST) -> bool:
    return inner is outer or outer in tree.ancestors(inner)
