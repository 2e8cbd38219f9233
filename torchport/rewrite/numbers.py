"""Numbers as devices: PyTorch reads a plain number as the index of a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.arguments import WHOLE
from torchport.analysis.carriers import TEXTS
from torchport.analysis.devices import NAMED, Key, key_of
from torchport.analysis.flows import ADDS, PLAIN, positions, scope_around
from torchport.analysis.groups import Groups
from torchport.analysis.literals import device_text
from torchport.analysis.names import chain
from torchport.analysis.parameters import Signatures, last_name
from torchport.analysis.scopes import Scope, walk
from torchport.analysis.uses import find_uses
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New
from torchport.rewrite.current import CURRENT, HANDED_OVER, handed_current
from torchport.rewrite.device_arguments import device_arguments
from torchport.rewrite.forms import is_setting
from torchport.rewrite.glued import glued
from torchport.rewrite.guards import COUNTS, is_available
from torchport.rewrite.numeric import is_numeric
from torchport.rewrite.options import converted, options
from torchport.rewrite.spread import SPREAD, owner, spread_over_gpus

TAKES_NUMBER = ("torch.cuda.set_device", "torchport.shim.set_device", "torchport.shim.device_ids")
CURRENT_XLA = b"torch_xla.device().index"
"""What the number of the current device becomes for PyTorch/XLA alone."""
OWN_RULES = ("to", "cuda", "set_device")
KEEPS = frozenset((*OWN_RULES, *ADDS, *TEXTS, "format", "index", "count", "remove", "get", "put", "info", "debug"))
"""Methods whose own rules say what a number means to them, and those that only keep, compare or print it."""
NUMBERS = ("rank", "local_rank", "gpu", "gpu_id", "device_id", "local_gpu")
RANKS = ("rank", "local_rank")
CHOSEN = 'a number stands for a GPU here; write shim.device() for it and torch.device("cpu") for the other'


def device_numbers(rule: Rule, context: Context) -> Iterator[Finding]:
    """``.to(0)``, ``device=torch.cuda.current_device()``: PyTorch reads a number as a CUDA device."""
    yield from glued(rule, context)
    yield from _chosen(rule, context)
    kept: list[ast.expr] = []
    yield from _kept(rule, context, kept)
    yield from handed_current(rule, context)
    yield from _handed(rule, context, kept)


def _chosen(rule: Rule, context: Context) -> Iterator[Finding]:
    """``0 if torch.cuda.is_available() else "cpu"``: the number stays, so the test stays."""
    for choice in context.tree.every(ast.IfExp):
        number, named = _is_number(choice.body), _last(choice.body) in NUMBERS
        if not number and not named:
            continue
        other = {"-1": -1, "None": None}.get(ast.unparse(choice.orelse), ast.unparse(choice.orelse).strip("'"))
        stands = (number and other in (-1, "cpu")) or (named and other in (-1, "cpu", None))
        if stands and is_available(context, choice.test):
            context.claimed.add(choice.test.func)  # type: ignore[attr-defined]
            yield context.leave(rule, choice, CHOSEN)


def _kept(rule: Rule, context: Context, kept: list[ast.expr]) -> Iterator[Finding]:
    """``d = torch.cuda.current_device()`` every use of which is that of a device is one; ``kept`` takes the uses."""
    for call in context.calls(*CURRENT):
        parent = context.tree.parents[call]
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            reads = _reads(context, parent.targets[0], context.tree.scopes[call])
            if reads and all(_is_device_argument(context, read) for read in reads):
                context.claimed.add(call.func)
                kept += reads
                yield context.rewrite(rule, call, New(call, context.spell.device()))


def _reads(context: Context, target: ast.expr, scope: Scope) -> list[ast.expr]:
    """Where the file reads what has the key of ``target``."""
    key = key_of(context.tree, target, scope)
    if key is None:
        return []
    found: list[ast.expr] = []
    for node in context.tree.names:
        home = context.tree.scopes.get(node) or context.tree.scope
        if isinstance(node.ctx, ast.Load) and key_of(context.tree, node, home) == key:
            found.append(node)
    return found


def _is_device_argument(context: Context, node: ast.expr) -> bool:
    parent = context.tree.parents[node]
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    if not (isinstance(parent, ast.Call) and parent.args[:1] == [node] and isinstance(parent.func, ast.Attribute)):
        return False
    if parent.func.attr in ("to", "device", "set_device"):
        return True
    from torchport.rewrite.moves import becomes_to  # not for a file that moves nothing

    return becomes_to(context, parent)


def _proved(context: Context) -> set[str]:
    """Names that the file uses as the number of a device, or says to be a number."""
    found: set[str] = set()
    for call in context.calls(*TAKES_NUMBER):
        if context.named(call.func, *TAKES_NUMBER):
            found |= {".".join(chain(a)) for a in call.args}
    for call in context.tree.calls:
        for keyword in call.keywords:
            if keyword.arg == "device_ids" and isinstance(keyword.value, ast.List):
                found |= {".".join(chain(e)) for e in keyword.value.elts}
    for node in context.tree.strings:
        if (text := device_text(node)) is not None and text.index:
            found.add(text.index)
    for definition in context.tree.definitions:
        for parameter in (*definition.args.args, *definition.args.kwonlyargs):
            if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id == "int":
                found.add(parameter.arg)
    return found - {""}


def _handed(rule: Rule, context: Context, kept: list[ast.expr]) -> Iterator[Finding]:
    """Numbers in the place of a device argument."""
    spread, numbered = spread_over_gpus(context), context.once(Numbered)
    places = context.once(device_arguments)
    over = context.target != "tpu" and bool(numbered.current)
    for call in context.tree.calls if over else places:
        if over:
            yield from _handed_over(rule, context, call, numbered)
        for node, ours in places.get(call, ()):
            doubt = "" if ours else "the function is not PyTorch's, and what it makes of a number is not seen here"
            if _is_number(node) and owner(context, node) in spread:
                yield context.leave(rule, node, SPREAD)
            elif _is_number(node):
                yield context.rewrite(rule, node, New(node, context.spell.place(ast.unparse(node))), doubt=doubt)
            elif ours and isinstance(node, ast.Call) and context.named(node.func, *CURRENT):
                context.claimed.add(node.func)
                yield context.rewrite(rule, node, New(node, context.spell.place()))
            elif numbered.is_current(node):
                if node not in kept:
                    yield context.rewrite(rule, node, New(node, context.spell.place(context.source(node))))
            elif (name := chain(node)) and name[-1] in NUMBERS:
                said = name[-1].endswith("rank") or (context.spell.portable and numbered.has(node))
                if not said and ".".join(name) not in context.once(_proved):
                    doubt = f"whether {'.'.join(name)} is a number is not seen here; --unsafe rewrites it"
                yield context.rewrite(rule, node, New(node, context.spell.place(context.source(node))), doubt=doubt)
            elif ours and numbered.has(node):
                if context.spell.portable:
                    yield context.rewrite(rule, node, New(node, context.spell.place(context.source(node))))
                else:
                    yield context.leave(rule, node, CHOSEN)
            elif ours and numbered.computes(context, node):
                yield context.rewrite(rule, node, New(node, context.spell.place(context.source(node))))


def _handed_over(rule: Rule, context: Context, call: ast.Call, numbered: Numbered) -> Iterator[Finding]:
    """``evaluate(model, device)``: the number goes into a function of another file, whose parameter is not seen."""
    found = context.qualify(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    method = isinstance(call.func, ast.Attribute) and found is None
    ours = found is not None and found.name.startswith(("torch", "builtins."))
    if ours or (found is None and not method) or (method and last_name(call.func) in KEEPS):
        return
    named = [(keyword.arg or "", keyword.value) for keyword in call.keywords if keyword.arg != "device"]
    for name, node in [*((_last(given), given) for given in call.args), *named]:
        says = NAMED.search(name) or NAMED.search(_last(node))
        if says and numbered.is_current(node) and not context.signatures.takers(call, node):
            place = context.spell.place(context.source(node))
            yield context.rewrite(rule, node, New(node, place), doubt=HANDED_OVER)


class Numbered:
    """Variables and attributes that may have the number of a GPU, as in ``device = local_rank``."""

    def __init__(self, context: Context) -> None:
        self.tree, self.groups = context.tree, Groups()  # not the context, which keeps this
        source = context.text.bytes
        asked = any(word in source for word in (b"current_device", b"device_count", CURRENT_XLA))
        self.current = set(self._of_current(context)) if asked else set()
        words = (b"rank", b"RANK", b"device_count")
        seeds = set(self._seeds(context)) if any(word in source for word in words) else set()
        seeds |= self.current if context.target != "tpu" else set()  # TorchTPU reads numbers as its own
        if seeds:
            for keys in self._handed_on(context.signatures):
                self.groups.join(keys)
        self.known = {self.groups.find(key) for key in seeds}

    def has(self, node: ast.expr) -> bool:
        """Whether the value of ``node`` may be the number of a GPU."""
        key = self._key(node) if self.known else None
        return key is not None and self.groups.find(key) in self.known

    def computes(self, context: Context, node: ast.expr) -> bool:
        """Whether ``node`` is a number that is made of a rank or of the count of devices: ``rank % device_count()``."""
        if isinstance(node, ast.IfExp):
            return all(_is_number(n) or self._tells(context, n) for n in (node.body, node.orelse))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv):
            return self._tells(context, node.left) or self._counts_devices(context, node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return (_is_number(node.right) and self._tells(context, node.left)) or (
                _is_number(node.left) and self._tells(context, node.right)
            )
        return isinstance(node, ast.Call) and self._tells(context, node)

    def _tells(self, context: Context, node: ast.expr) -> bool:
        """Whether ``node`` is a rank, a count of devices or made of them."""
        if isinstance(node, ast.Name | ast.Attribute):
            return _last(node) in NUMBERS or self.has(node)
        if not isinstance(node, ast.Call):
            return self.computes(context, node)
        if isinstance(node.func, ast.Name) and node.func.id == "int":
            return self._is_rank(context, node) or any(_last(n) in NUMBERS for n in node.args)
        return self._is_rank(context, node) or context.named(node.func, *COUNTS)

    def is_current(self, node: ast.expr) -> bool:
        """Whether ``node`` has the number of the current device and nothing else."""
        return bool(self.current) and self._key(node) in self.current

    def _of_current(self, context: Context) -> Iterator[Key]:
        """``device = torch.cuda.current_device()`` or ``rank % device_count()``, and nothing else."""
        values: dict[Key, list[ast.expr]] = {}
        for assign in self.tree.every(ast.Assign):
            for target in assign.targets:
                if (key := self._key(target)) is not None:
                    values.setdefault(key, []).append(assign.value)
        for key, given in values.items():
            if all(_is_current(context, value) or self._is_of_count(context, value, ast.Mod) for value in given):
                yield key

    def _handed_on(self, signatures: Signatures) -> Iterator[tuple[Key, ...]]:
        """``a = b`` and arguments that are names: what is made of a number, such as a device, is none."""
        tree = self.tree
        for assign in tree.every(ast.Assign):
            if len(assign.targets) == 1 and not isinstance(assign.value, PLAIN):
                continue
            yield tuple(key for node in (*assign.targets, assign.value) if (key := self._key(node)) is not None)
        for call in tree.calls:
            if not signatures.may_know(call.func):
                continue
            given = call.keywords if self.current else []
            wrapped = [k.value for k in given if k.arg == "device" and self.is_current(k.value)]
            for node in (*call.args, *(k.value for k in call.keywords)):
                if node not in wrapped and (key := self._key(node)) is not None:
                    yield key, *signatures.takers(call, node)

    def _key(self, node: ast.expr) -> Key | None:
        plain = isinstance(node, ast.Name | ast.Attribute)
        return key_of(self.tree, node, scope_around(self.tree, node)) if plain else None

    def _seeds(self, context: Context) -> Iterator[Key]:
        """Names of local ranks, what ``get_rank`` gives, and what counts through the devices."""
        tree, text = self.tree, context.text.bytes
        ranks = b"get_rank" in text or b"RANK" in text
        targets = [
            (t, node.value)
            for node in (tree.every(ast.Assign) if ranks else ())
            for t in node.targets
            if self._is_rank(context, node.value) or self._is_of_count(context, node.value, ast.Sub)
        ]
        for loop in tree.loops if b"device_count" in text else ():
            if isinstance(loop, ast.For) and self._counts_devices(context, loop.iter):
                targets.append((loop.target, loop.iter))
        for target, _ in targets:
            yield from (key for key in positions(tree, target, scope_around(tree, target)) if key is not None)
        named = b"local_rank" in text or b"LOCAL_RANK" in text
        for node in tree.names if named else ():
            last = node.attr if isinstance(node, ast.Attribute) else node.id
            if last in ("local_rank", "LOCAL_RANK") and (key := self._key(node)) is not None:
                yield key

    def _is_rank(self, context: Context, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._is_rank(context, node.left)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name) and node.func.id == "int":
            return any(isinstance(n, ast.Constant) and "RANK" in str(n.value) for n in ast.walk(node))
        return context.named(node.func, "torch.distributed.get_rank")

    def _is_of_count(self, context: Context, node: ast.expr, kind: type[ast.operator]) -> bool:
        """``rank % torch.cuda.device_count()`` or ``torch.cuda.device_count() - 1``; ``rank // count`` is a host's."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, kind):
            return False
        if kind is ast.Mod:
            return self._counts_devices(context, node.right)
        return _is_number(node.right) and self._counts_devices(context, node.left)

    def _counts_devices(self, context: Context, node: ast.expr) -> bool:
        return b"device_count" in context.text.bytes and any(
            isinstance(n, ast.Call) and context.named(n.func, *COUNTS) for n in walk(node)
        )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_current(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return context.named(node.func, *CURRENT, "torchport.shim.current_device")
    made = node.value if isinstance(node, ast.Attribute) and node.attr == "index" else None
    return isinstance(made, ast.Call) and context.named(made.func, "torch_xla.device")


def device_from_variable(rule: Rule, context: Context) -> Iterator[Finding]:
    """``torch.device(args.device)``: the shim reads what a user typed; also ``torch.device(0)``."""
    yield from options(rule, context)
    calls = list(context.calls("torch.device"))
    uses = find_uses(context.tree, context.signatures) if calls else []
    strings = {key for use in uses for key in use.keys if use.role in ("value", "member")}
    numbered = context.once(Numbered)
    for call in calls:
        if len(call.args) == 2 and isinstance(call.args[0], ast.Name | ast.Attribute):
            yield context.leave(
                rule,
                call,
                "the name of the device is not in the source; write shim.device(number) where it is the accelerator",
            )
        if len(call.args) != 1 or call.keywords:
            continue
        node = call.args[0]
        number = _is_number(node)
        current = _is_current(context, node)
        key = key_of(context.tree, node, context.tree.scopes[call])
        if current and isinstance(node, ast.Call):
            context.claimed.add(node.func)
        if (number or current or numbered.has(node)) and _is_compared(context, call):
            yield context.leave(rule, call, WHOLE)
        elif current:
            yield context.rewrite(rule, call, New(call, context.spell.device()))
        elif not context.spell.portable:
            if number or _last(node) in RANKS or numbered.computes(context, node):
                yield context.rewrite(rule, node, New(node, context.spell.text(context.source(node))))
            elif context.target == "xla" and (
                numbered.has(node) or _last(node) in NUMBERS or is_numeric(context, node)
            ):
                yield context.leave(rule, node, CHOSEN)
        elif (
            number
            or (key is not None and key in strings)
            or numbered.has(node)
            or _last(node) in NUMBERS
            or numbered.computes(context, node)
            or is_setting(node)
            or is_numeric(context, node)
        ):
            yield context.rewrite(rule, call.func, New(call.func, "shim.device"))
    if context.spell.portable:
        yield from _settings(rule, context)


def _settings(rule: Rule, context: Context) -> Iterator[Finding]:
    """``x.to(config["device"])`` where the file has ``torch.device(config["device"])``: both are read in one way."""
    asked = [call.args[0] for call in context.calls("torch.device", "torchport.shim.device") if len(call.args) == 1]
    read = {ast.unparse(node) for node in asked if is_setting(node)}
    if not read:
        return
    done = converted(context) | context.stored
    for places in context.once(device_arguments).values():
        for node, ours in places:
            if ours and is_setting(node) and ast.unparse(node) in read and _name_of(context, node) not in done:
                yield context.rewrite(rule, node, New(node, context.spell.place(context.source(node))))


def _name_of(context: Context, node: ast.expr) -> str:
    key = key_of(context.tree, node, context.tree.scope)
    return key[1] if key is not None else ""


def _is_compared(context: Context, call: ast.Call) -> bool:
    """``x.device == torch.device(0)``, also as one of several: where there is no accelerator it has to be false."""
    around = context.tree.parents[call]
    while isinstance(around, ast.Attribute | ast.Tuple | ast.List | ast.Set):
        around = context.tree.parents[around]
    return isinstance(around, ast.Compare)


def _last(node: ast.expr) -> str:
    return (chain(node) or [""])[-1]
