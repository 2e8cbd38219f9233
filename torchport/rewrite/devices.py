"""Device strings and devices: what carries one value moves together, or is left together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.arguments import ASKED
from torchport.analysis.devices import NAMED, Key, Use, key_of
from torchport.analysis.groups import NUMBERED, SPLICED, TESTS, Groups, Members, grouped
from torchport.analysis.held import hold_with_others
from torchport.analysis.names import chain, line_mark
from torchport.analysis.uses import find_uses, odd_texts
from torchport.model import Effect, Finding, Review, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.forms import new_text, settings_read
from torchport.rewrite.guards import COUNTS, KERNEL_REASON, WORKER, guards_kernel, is_available, workers
from torchport.rewrite.own_objects import own_class
from torchport.rewrite.reports import BY_DEVICE, NO_MODULE, reaches_module
from torchport.rewrite.spread import SPREAD, owner, spread_over_gpus

ELSEWHERE = frozenset(
    (
        "torch.autocast",
        "torch.amp.autocast",
        "torch.amp.GradScaler",
        "torch.Generator",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "torch.cuda.amp.autocast",
    )
)
"""Calls whose rules take the device argument along."""
UNPROVED = (
    "nothing in this file shows that {} is a device; if it is, write shim.device().type for the value and "
    "shim.accelerator_type() in tests"
)
CHOICES = (ast.IfExp, ast.BoolOp, ast.List, ast.Tuple, ast.Dict, ast.Subscript)
LIBRARY = "it registers a kernel for CUDA; register one for the other device, or a composite one"
FORK = "fork_rng saves generators of CUDA; on PyTorch/XLA use shim.get_rng_state and shim.set_rng_state"
OWN_ATTRIBUTE = "class {} of this project has an `is_cuda` of its own, and this may be one"
NOT_TORCH = (
    "faster_whisper",
    "ctranslate2",
    "decord",
    "transformer_engine",
    "onnxruntime",
    "tensorrt",
    "cupy",
    "jax",
    "xgboost",
    "lightgbm",
    "catboost",
    "tensorflow",
    "cudf",
    "cuml",
    "spacy",
    "tvm",
    "isaacgym",
    "isaacgymenvs",
    "isaaclab",
    "omni",
)
FOREIGN = "the library is not built on PyTorch's devices; look up what it calls a TPU"
ODD_TEXT = "it begins as a CUDA device does, and how it goes on is not understood; write shim.device(number)"
SINKS = ("device", "map_location", "device_type")
CHOOSES = "it chooses a device text that stays, and stays with it"
HELD_BACK = "it carries one value with {}, which cannot be rewritten: {}"


def device_strings(rule: Rule, context: Context) -> Iterator[Finding]:
    """All device strings of the file, group by group."""
    signatures = context.signatures if context.tree.strings else None
    uses = [use for use in find_uses(context.tree, signatures) if not _taken_elsewhere(context, use)]
    for node in odd_texts(context.tree):
        yield context.leave(rule, node, ODD_TEXT)
    if uses:
        yield from _grouped(rule, context, uses)
    yield from _in_workers(rule, context)


def _grouped(rule: Rule, context: Context, uses: list[Use]) -> Iterator[Finding]:
    """The findings of what is used as a device, group by group."""
    spread = spread_over_gpus(context)
    for use in uses:
        if use.text.index and owner(context, use.text.node) in spread:
            use.role, use.reason = "fixed", SPREAD
    groups, members = grouped(context.tree, context.original, uses, context.signatures)
    sinks = {groups.find(key) for key in device_sinks(context)}
    _stay_with_libraries(context, groups, members, sinks)
    if any(use.reason == NUMBERED for use in uses):
        _stay_spread(context, groups, members)
    if context.project.held:
        hold_with_others(context.tree, context.path, groups, members, context.project.held)
    names: dict[Key | int, set[str]] = {name: set() for name in members}
    for key in groups.parent:
        if key[0] == "attribute" and (found := groups.find(key)) in names:
            names[found].add(key[1])
    for name, group in members.items():
        if (reason := group[0].reason) in (SPLICED, ASKED) and group[0].role == "fixed" and name not in sinks:
            yield from (context.leave(rule, use.text.node, reason, effect="none") for use in group)
            continue
        proved = name in sinks or any(
            use.proof or use.text.index is not None or any(NAMED.search(key[1]) for key in use.keys) for use in group
        )
        yield from _group(rule, context, group, proved, names[name])


def _stay_spread(context: Context, groups: Groups, members: Members) -> None:
    """``"cuda:" + str(k)`` beside one that is compared: a model over several GPUs stays as a whole."""
    computed = [use for group in members.values() for use in group if not (use.text.index or "0").isdecimal()]
    stay = [use for use in computed if use.reason == NUMBERED and use.keys]
    with_them = [other for use in stay for other in members[groups.find(use.keys[0])]]
    around = {context.tree.function(other.text.node) for other in with_them}
    for use in computed:
        if use.role != "fixed" and context.tree.function(use.text.node) in around:
            use.role, use.reason = "fixed", SPREAD


def _in_workers(rule: Rule, context: Context) -> Iterator[Finding]:
    """``device=self.device`` in a data set whose default device is the accelerator."""
    ours = ("cuda", context.spell.device(), context.spell.text())
    for function in workers(context):
        owner = context.tree.parents[function]
        start = next((n for n in getattr(owner, "body", []) if getattr(n, "name", "") == "__init__"), None)
        defaults = [*start.args.defaults, *start.args.kw_defaults] if isinstance(start, ast.FunctionDef) else []
        if not any(word in context.source(default) for default in defaults if default is not None for word in ours):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.keyword) and node.arg == "device" and chain(node.value)[:1] == ["self"]:
                yield context.leave(rule, node.value, WORKER)


def _taken_elsewhere(context: Context, use: Use) -> bool:
    """Device arguments that belong to the rule of the call."""
    if isinstance(use.text.node, ast.Attribute):
        return False  # torch.device("cuda").type
    call = use.consumer
    around = context.tree.parents.get(call)
    if isinstance(around, ast.Call) and context.named(around.func, "torchport.shim.device_string"):
        return True
    direct = context.tree.parents[use.text.node]
    if isinstance(direct, ast.Call) and reaches_module(context, direct):
        return True
    if isinstance(around, ast.Call) and use.role == "device" and not context.spell.portable:
        outer = context.qualify(around.func)
        return outer is not None and outer.name.startswith("torch.cuda.")  # it stays as a whole, or goes
    if not isinstance(call, ast.Call) or use.role not in ("argument", "to"):
        return False
    found = context.qualify(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    if found is not None and (found.name in ELSEWHERE or found.name.startswith("safetensors.")):
        return True
    if found is not None and found.name.startswith("torch.cuda.") and not context.spell.portable:
        return True  # the call is written anew without it, or stays as it is
    if call.args and context.named(call.args[0], *ELSEWHERE):
        return True
    keyword = next((k.arg for k in call.keywords if use.text.node in ast.walk(k.value)), None)
    if keyword in ("pin_memory_device", "dest"):  # the other is what argparse calls an attribute
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"


def device_sinks(context: Context) -> Iterator[Key]:
    """Variables and attributes that the file uses as a device: ``.to(d)``, ``device=d``, ``torch.device(d)``."""
    tree, foreign = context.tree, {*_foreign_calls(context)}
    for call in tree.calls:
        for keyword in call.keywords if call not in foreign else ():
            if keyword.arg in SINKS and (key := key_of(tree, keyword.value, tree.scopes[call])):
                yield key
    for call in tree.called().get("to", ()):
        moves = isinstance(call.func, ast.Attribute) and call.func.attr == "to" and call.args
        if moves and (key := key_of(tree, call.args[0], tree.scopes[call])):
            yield key
    for call in context.calls("torch.device", "torchport.shim.device"):
        for node in call.args[:1]:
            if key := key_of(tree, node, tree.scopes[call]):
                yield key


def _foreign_calls(context: Context) -> Iterator[ast.Call]:
    """Calls of libraries that are not built on PyTorch's devices."""
    for name in context.resolved:
        if name.partition(".")[0] in NOT_TORCH:
            yield from context.calls(name)


def _stay_with_libraries(context: Context, groups: Groups, members: Members, sinks: set[Key]) -> None:
    """A device text that only such a library is given, through names and attributes, stays as one beside it does."""
    for call in _foreign_calls(context):
        for argument in (*call.args, *(k.value for k in call.keywords)):
            key = key_of(context.tree, argument, context.tree.scopes[call])
            found = groups.find(key) if key is not None else None
            for use in members.get(found, ()) if found is not None and found not in sinks else ():
                use.role, use.reason = "fixed", FOREIGN


def _group(rule: Rule, context: Context, group: list[Use], proved: bool, names: set[str]) -> list[Finding]:
    """The findings of one group: all its places move, or none. ``names`` are settings and attributes among its keys.

    A setting that the file tests and nowhere sets comes from a configuration: it is read as a user would type it.
    """
    tested = proved and context.spell.portable and any(use.role in TESTS or use.yardstick for use in group)
    reads = settings_read(context, names) if tested else []
    blocker = next((use for use in group if use.role == "fixed"), None)
    label = f"{rule.code}:{group[0].text.line}:{group[0].text.node.col_offset}"
    findings = []
    for use in group:
        node = use.text.node
        if reason := _own_reason(context, use, proved):
            findings.append(context.leave(rule, node, reason, effect="none" if reason == ASKED else None))
            findings += _kept_tests(rule, context, node) if use.role not in TESTS else []
        elif not proved:
            findings += _kept_tests(rule, context, node)
            keys = " and ".join(sorted({repr(key[1]) for key in use.keys})) or "this text"
            findings.append(context.leave(rule, node, use.reason or UNPROVED.format(keys)))
        elif use is blocker or use.role == "fixed":
            findings.append(context.leave(rule, node, use.reason))
            findings += _kept_tests(rule, context, node)
        elif blocker is not None:
            findings.append(_held_back(rule, context, use, blocker.text.line, blocker.reason))
            findings += _kept_tests(rule, context, node)
        else:
            review: Review | None = "glance" if use.role in TESTS else None
            findings.append(context.rewrite(rule, node, *new_text(context, use), *reads, group=label, review=review))
            if not findings[-1].edits:
                use.role, use.reason = "fixed", findings[-1].reason
            reads = []
    if blocker is None and any(use.role == "fixed" for use in group):
        return _group(rule, context, group, proved, names)
    return findings


def _own_reason(context: Context, use: Use, proved: bool) -> str:
    """Why one place stays, whatever becomes of the others of its group."""
    if proved and use.role in TESTS and guards_kernel(context, use.text.node):
        return KERNEL_REASON
    if use.role in ("to", "argument"):
        return _generator(use) or _other_function(context, use)
    return use.reason if use.role == "unknown" else ""


def _held_back(rule: Rule, context: Context, use: Use, line: int, why: str) -> Finding:
    """A place that stays since another one of its group does; a value that stays raises on a TPU."""
    effect: Effect | None = None if use.role in TESTS else "error"
    return context.leave(rule, use.text.node, HELD_BACK.format(line_mark(line), why), effect=effect)


def _kept_tests(rule: Rule, context: Context, node: ast.expr) -> list[Finding]:
    """A text that stays is chosen by the test that chose it before."""
    whole: ast.AST = node
    while isinstance(parent := context.tree.parents[whole], CHOICES):
        whole = parent
    if whole is node:
        return []
    calls = [n for n in ast.walk(whole) if isinstance(n, ast.Call)]
    tests = [n.func for n in calls if is_available(context, n) or context.named(n.func, *COUNTS)]
    context.claimed.update(tests)
    return [context.leave(rule, test, CHOOSES, effect="none") for test in tests]


def _generator(use: Use) -> str:
    """A random function draws with a generator of its own device, or not at all."""
    call = use.consumer
    if isinstance(call, ast.Call) and any(
        k.arg == "generator" and not isinstance(k.value, ast.Constant) for k in call.keywords
    ):
        return "it draws with a generator, which has to be on the same device; draw on the CPU, then move"
    return ""


def _other_function(context: Context, use: Use) -> str:
    """Why a device argument of this function stays."""
    call = use.consumer
    found = (
        context.qualify(call.func)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute)
        else None
    )
    name = found.name if found is not None else ""
    if name.startswith("torch.library."):
        return LIBRARY
    if name in BY_DEVICE:
        return NO_MODULE
    if name == "torch.random.fork_rng":
        return FORK
    return FOREIGN if name.partition(".")[0] in NOT_TORCH else ""


def is_cuda(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.is_cuda`` is False on every other accelerator."""
    for node in context.tree.attributes:
        if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load) or context.qualify(node) is not None:
            continue
        if "is_cuda" in context.stored or any(d.name == "is_cuda" for d in context.tree.definitions):
            yield context.leave(rule, node, "the program has an attribute of this name of its own")
        elif own := own_class(context, node):
            yield context.leave(rule, node, OWN_ATTRIBUTE.format(own))
        elif guards_kernel(context, node):
            yield context.leave(rule, node, KERNEL_REASON)
        elif isinstance(parent := context.tree.parents[node], ast.Call) and parent.func is node:
            yield context.leave(rule, node, "it is called, so it is not the attribute of a tensor")
        elif isinstance(parent, ast.Compare) and (same := _against_bool(parent)) is not None:
            text = f"{_without_last(context, node)}device.type {'==' if same else '!='} {context.spell.compared()}"
            text = f"({text})" if _needs_brackets(context.tree.parents[parent], parent) else text
            yield context.rewrite(rule, node, New(parent, text, context.spell.portable))
        elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            text = f"{_without_last(context, node)}device.type != {context.spell.compared()}"
            outer = context.tree.parents[parent]
            text = f"({text})" if _needs_brackets(outer, parent) else text
            yield context.rewrite(rule, node, New(parent, text, context.spell.portable))
        else:
            text = f"{_without_last(context, node)}device.type == {context.spell.compared()}"
            text = f"({text})" if _needs_brackets(parent, node) else text
            yield context.rewrite(rule, node, New(node, text, context.spell.portable))


def _against_bool(node: ast.Compare) -> bool | None:
    """Whether ``x.is_cuda is True`` asks for the same as ``x.is_cuda``; None where it is held against nothing such."""
    value, operator = node.comparators[0], node.ops[0]
    known = len(node.ops) == 1 and isinstance(operator, ast.Is | ast.Eq | ast.IsNot | ast.NotEq)
    if not known or not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return None
    return value.value is isinstance(operator, ast.Is | ast.Eq)


def _without_last(context: Context, node: ast.Attribute) -> str:
    """The source of an attribute up to its last name, with the brackets and line breaks before it."""
    return context.source(node)[: -len(node.attr)]


def _needs_brackets(parent: ast.AST, node: ast.expr) -> bool:
    if isinstance(
        parent, ast.BoolOp | ast.If | ast.While | ast.Assert | ast.IfExp | ast.Return | ast.Assign | ast.keyword
    ):
        return False
    if isinstance(parent, ast.Call):
        return parent.func is node
    if isinstance(parent, ast.UnaryOp):
        return not isinstance(parent.op, ast.Not)
    return not isinstance(parent, ast.comprehension | ast.GeneratorExp | ast.ListComp | ast.Tuple | ast.List | ast.Dict)
