"""What each device text of a file is used for: goes from the text outwards until something uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.arguments import ASKED, Arguments
from torchport.analysis.carriers import CONTAINERS
from torchport.analysis.devices import NAMED, SIBLINGS, Key, Use, key_of, stripped
from torchport.analysis.flows import is_enum, option, positions
from torchport.analysis.literals import DeviceText, device_text
from torchport.analysis.parameters import Signatures, last_name
from torchport.analysis.scopes import FUNCTIONS, Tree
from torchport.lazy import pattern

ODD = pattern(r"cuda(:[\w{,%]|\{)")
TYPE = "it is a key or a type argument; whether it names a device depends on the data"
GROUPS = pattern(r"cuda:[a-z]+(,[a-z]+:[a-z]+)+|cuda:nccl")
"""Back ends of a process group, device by device: ``cuda:nccl,cpu:gloo``."""
UNSEEN_LIST = "a list whose use is not seen here"
CASE = "this pattern of `case` is more than a name; write it as `if`"
KEYWORD_KEYS = "a key of this dictionary is the name 'cuda'; write the dictionary with braces"
LETTERS = "it compares the first letters, whose number depends on the device name; use .startswith"
METHODS = ("to", "half", "float", "double", "bfloat16", "train", "eval")
"""Beside one of these ``"cuda"`` is the method of a tensor or a module."""
ALIKE = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


def find_uses(tree: Tree, signatures: Signatures | None = None) -> list[Use]:
    """Every device text of the file with its use, in order of the source."""
    uses: list[Use] = []
    seen: set[ast.AST] = set()
    if tree.strings:
        signatures = signatures or Signatures(tree)
    for node in tree.strings:
        text = _widest(tree, node)
        if text is None or text.node in seen or signatures is None:
            continue
        seen.add(text.node)
        if not isinstance(tree.parents.get(text.node), ast.Expr):
            uses.append(_checked(_Climb(tree, text, signatures).use()))
    return uses + [use for call in tree.called().get("dict", ()) if (use := _keyword_keys(tree, call)) is not None]


def _keyword_keys(tree: Tree, call: ast.Call) -> Use | None:
    """``dict(cuda=1, cpu=2)``: keys that are no texts."""
    names = {keyword.arg for keyword in call.keywords}
    if "cuda" not in names or last_name(call.func) != "dict" or names.isdisjoint(SIBLINGS):
        return None
    holder = tree.parents[call]
    targets = holder.targets if isinstance(holder, ast.Assign) else []
    keys = [key for target in targets if (key := key_of(tree, target, tree.scopes[call])) is not None]
    return Use(DeviceText(call), "key", call, tuple(keys), proof=True, reason=KEYWORD_KEYS) if keys else None


def odd_texts(tree: Tree) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Texts that begin as a CUDA device does and go on in a way that is not understood."""
    for node in tree.strings:
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        value = first.value if isinstance(first, ast.Constant) else None
        if not isinstance(value, str) or not value.startswith("cuda") or _widest(tree, node) is not None:
            continue
        odd = value in ("cuda", "cuda:") if isinstance(node, ast.JoinedStr) else bool(ODD.match(value))
        odd = odd and not GROUPS.fullmatch(value)
        if odd and not isinstance(tree.parents[node], ast.Expr | ast.JoinedStr | ast.FormattedValue):
            yield node


def _checked(use: Use) -> Use:
    """ "cuda:" alone is a part of a device name: it can be looked for, and blocks what it is a part of otherwise."""
    if use.text.index == "" and not _looks_for(use):
        use.role, use.reason = (
            "fixed" if use.keys else "unknown",
            "a part of a device name: on a TPU there is no index behind it",
        )
    return use


def _looks_for(use: Use) -> bool:
    """``device.startswith("cuda:")`` and ``"cuda:" in device`` ask whether there is a number."""
    test = use.consumer
    if isinstance(test, ast.Call):
        return use.role == "test" and last_name(test.func) == "startswith"
    return use.role == "test" and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn)


def _widest(tree: Tree, node: ast.expr) -> DeviceText | None:
    """The whole built string that ``node`` is a part of, else ``node`` alone."""
    text = device_text(node)
    outer: ast.AST = node
    for _ in range(3):
        outer = tree.parents[outer]
        if not isinstance(outer, ast.expr):
            break
        if found := device_text(outer):
            return found
    return text


def _has_sibling(node: ast.expr) -> bool:
    """Whether a branch of a choice is, or chooses, another device name."""
    if isinstance(node, ast.IfExp):
        return _has_sibling(node.body) or _has_sibling(node.orelse)
    if isinstance(node, ast.Attribute) and node.attr == "type":  # torch.accelerator.current_accelerator().type
        return isinstance(node.value, ast.Call) and last_name(node.value.func) in ("current_accelerator", "device")
    return isinstance(node, ast.Constant) and node.value in SIBLINGS


class _Climb(Arguments):
    """Goes from a device text outwards until something uses it."""

    def use(self) -> Use:
        """What the text is used for."""
        node: ast.expr = self.text.node
        proof = False
        while isinstance(outer := self.tree.parents[node], ast.expr):
            if isinstance(outer, ast.IfExp) and node is not outer.test:
                sibling = outer.orelse if node is outer.body else outer.body
                proof = proof or _has_sibling(sibling)
                self.extra += self.from_(sibling)
            elif isinstance(outer, ast.BoolOp):
                proof = proof or self._chosen(outer, node)
                self.extra += self.from_(*(v for v in outer.values if v is not node))
            elif isinstance(outer, ast.NamedExpr) and node is outer.value:
                self.extra += [key for key in [self.target(outer.target)] if key is not None]
            elif self._is_indexed(outer, node):
                proof = proof or self._chosen(outer, node)
            elif not (
                (isinstance(outer, ast.Subscript) and node is outer.value)
                or (isinstance(outer, ast.Attribute) and outer.attr in ("lower", "strip"))
                or (isinstance(outer, ast.Call) and (node is outer.func or last_name(outer.func) == "str"))
            ):
                break
            node = outer
        use = self._consumed(outer, node)
        if use.role == "unknown" and (proof or (node is not self.text.node and self.extra)):
            use.role, use.reason = "value", ""
        elif use.role == "unknown":
            use.keys = use.keys or self._buried()
            use.role = "fixed" if use.keys else "unknown"
        use.proof = use.proof or proof
        return use

    def _buried(self) -> tuple[Key, ...]:
        """The variable that takes something made of the text in a way that is not understood."""
        statement = self.tree.statement(self.text.node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        keys = [key for target in targets if (key := self.target(target)) is not None]
        return tuple(key for key in keys if NAMED.search(key[1]))

    def _is_indexed(self, outer: ast.expr, node: ast.expr) -> bool:
        """``["cpu", "cuda"][available]`` and ``{True: "cuda", False: "cpu"}[available]``."""
        around = self.tree.parents[outer]
        if not isinstance(around, ast.Subscript) or around.value is not outer:
            return False
        return isinstance(outer, ast.List | ast.Tuple) or (isinstance(outer, ast.Dict) and node in outer.values)

    def _chosen(self, outer: ast.expr, node: ast.AST) -> bool:
        """``available and "cuda" or "cpu"`` and ``["cpu", "cuda"][available]`` choose between devices."""
        if isinstance(outer, ast.BoolOp):
            around = self.tree.parents[outer]
            values = [*outer.values, *(around.values if isinstance(around, ast.BoolOp) else [])]
        else:
            values = outer.values if isinstance(outer, ast.Dict) else getattr(outer, "elts", [])
        return any(_has_sibling(value) for value in values if value is not node)

    def _consumed(self, parent: ast.AST, node: ast.expr) -> Use:
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            return self._assigned(parent)
        if isinstance(parent, ast.Compare):
            return self._compared(parent, node)
        if isinstance(parent, ast.keyword):
            return self.keyword(parent)
        if isinstance(parent, ast.Call):
            return self.argument(parent, node)
        if isinstance(parent, ast.arguments):
            return self.default(parent, node)
        if isinstance(parent, ast.Return | ast.Yield):
            function = self.tree.function(parent)
            name = function.name if isinstance(function, FUNCTIONS) else ""
            return self.make("value", parent, ("return", name), proof=bool(NAMED.search(name)))
        if isinstance(parent, ast.Dict):
            return self._dictionary(parent, node)
        if isinstance(parent, CONTAINERS):
            return self._paired(parent, node) or self._member(parent, node)
        if isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self._member(parent, node)
        if isinstance(parent, ast.Lambda):
            return self.factory(parent)
        if isinstance(parent, ast.MatchValue):
            return self._pattern(parent)
        if isinstance(parent, ast.Subscript):
            return self.make("unknown", parent, reason=TYPE)
        if isinstance(parent, ast.FormattedValue | ast.JoinedStr):
            return self.make("unknown", parent, reason="it is a part of a text")
        return self.make("unknown", parent, reason="nothing here shows that it names a device")

    def _assigned(self, parent: ast.Assign | ast.AnnAssign) -> Use:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if any(isinstance(t, ast.Tuple | ast.List) for t in targets):
            return self.make("unknown", parent, reason="it is assigned to several names at once")
        keys = [self.target(target) for target in targets]
        if isinstance(self.scope.node, ast.ClassDef) and is_enum(self.scope.node):
            reason = "a member of an enumeration has to stay different from the others"
            return self.make("fixed", parent, *keys, ("enum", self.scope.node.name), reason=reason)
        return self.make("value", parent, *keys)

    def _paired(self, parent: ast.expr, node: ast.expr) -> Use | None:
        """``device, rate = "cuda", 1``."""
        assign = self.tree.parents[parent]
        target = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if not isinstance(parent, ast.Tuple) or not isinstance(target, ast.Tuple):
            return None
        if len(target.elts) != len(parent.elts):
            return None
        return self.make("value", assign, self.target(target.elts[parent.elts.index(node)]))

    def _pattern(self, value: ast.MatchValue) -> Use:
        """``case "cuda":`` becomes a test, where the pattern is nothing else."""
        pattern: ast.AST = self.tree.parents[value]
        alone = not isinstance(pattern, ast.MatchOr)
        case = pattern if alone else self.tree.parents[pattern]
        match = next(n for n in self.tree.ancestors(value) if isinstance(n, ast.Match))
        subjects = match.subject.elts if isinstance(match.subject, ast.Tuple) else [match.subject]
        keys, proof = self.from_(*subjects), any(stripped(subject)[1] for subject in subjects)
        others = pattern.patterns if isinstance(pattern, ast.MatchOr) else []
        words = all(isinstance(p, ast.MatchValue) and isinstance(p.value, ast.Constant) for p in others)
        plain = isinstance(match.subject, ast.Name | ast.Attribute)
        if plain and words and isinstance(case, ast.match_case) and self.text.index is None:
            return self.make("case", case, *keys, proof=proof)
        return self.make("fixed", value, *keys, proof=proof, reason=CASE)

    def _compared(self, node: ast.Compare, own: ast.expr) -> Use:
        sides = [node.left, *node.comparators]
        others = [side for side in sides if side is not own]
        keys, proof = self.from_(*others), any(stripped(other)[1] for other in others)
        place = sides.index(own)
        operators = node.ops[max(place - 1, 0) : place + 1]
        if any(isinstance(o, ast.In | ast.NotIn) for o in operators):
            if own is node.left:
                return self.make("test", node, *keys, proof=proof)
            reason = "a test for letters within the word 'cuda'"
            return self.make("fixed", node, *keys, proof=proof, reason=reason)
        if not all(isinstance(o, ALIKE) for o in operators):
            return self.make("fixed", node, *keys, proof=proof, reason="device names have no order")
        sliced = next((o for o in others if isinstance(o, ast.Subscript) and isinstance(o.slice, ast.Slice)), None)
        if sliced is None:
            return self.make("test", node, *keys, proof=proof)
        if self._is_beginning(node, own, sliced):
            return self.make("slice", node, *keys, proof=proof)
        return self.make("fixed", node, *keys, proof=proof, reason=LETTERS)

    def _is_beginning(self, node: ast.Compare, own: ast.expr, sliced: ast.Subscript) -> bool:
        """``device[:4] == "cuda"`` is ``device.startswith("cuda")``."""
        return (
            len(node.ops) == 1
            and own is self.text.node
            and self.text.index is None
            and isinstance(node.ops[0], ast.Eq | ast.NotEq)
            and isinstance(sliced.value, ast.Name | ast.Attribute | ast.Call)
            and ast.unparse(sliced.slice) in (":4", "0:4")
        )

    def _dictionary(self, parent: ast.Dict, node: ast.expr) -> Use:
        holder = self.tree.parents[parent]
        if isinstance(holder, ast.keyword) and holder.arg == "map_location":
            reason = "it maps one GPU to another while a file is loaded; give map_location one device"
            return self.make("unknown", parent, reason=reason)
        for key, value in zip(parent.keys, parent.values, strict=True):
            if value is node and isinstance(key, ast.Constant):
                name = str(key.value)
                return self.make("value", parent, ("attribute", name), proof=bool(NAMED.search(name)))
            if value is node and key is not None and device_text(key) is not None:
                return self.make("unknown", parent, reason="it maps one device name to another")
            if value is node:
                return self.make("unknown", parent, reason="a value of a dictionary whose key does not say what it is")
        others = [k.value for k in parent.keys if isinstance(k, ast.Constant) and k is not node]
        if not any(value in SIBLINGS for value in others):
            return self.make("unknown", parent, reason="a key of a dictionary; nothing shows that it names a device")
        keys = self._readers(parent)
        if keys is None:
            return self.make("fixed", parent, reason="a key of a dictionary that is read elsewhere")
        return self.make("key", parent, *keys, proof=True)

    def _readers(self, parent: ast.Dict) -> list[Key | None] | None:
        """The keys of what a dictionary is read by on the spot, or of what it is assigned to; None for neither."""
        holder = self.tree.parents[parent]
        if isinstance(holder, ast.Subscript):
            return [*self.from_(holder.slice)]
        if isinstance(holder, ast.Attribute) and holder.attr == "get":
            call = self.tree.parents[holder]
            return [*self.from_(*call.args[:1])] if isinstance(call, ast.Call) else None
        if isinstance(holder, ast.Compare):
            return [*self.from_(holder.left)]
        if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
            key = self.target(holder.targets[0])
            return None if key is None else [key]
        return None

    def _member(self, parent: ast.expr, node: ast.expr) -> Use:
        """An element of a collection: what the collection is held against, or goes into."""
        items = getattr(parent, "elts", [])
        if any(isinstance(e, ast.Constant) and e.value in METHODS for e in items):
            return self.make("unknown", parent, reason=ASKED)
        siblings = any(_has_sibling(e) for e in items if e is not node)
        if isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            siblings = self.text.index is not None
        outer: ast.expr = parent
        while isinstance(around := self.tree.parents[outer], ast.expr) and self._hands_on(around, outer):
            outer = around
        if isinstance(around, ast.Return) and isinstance(outer, ast.Tuple) and outer is parent:
            name = getattr(self.tree.function(around), "name", "")
            return self.make("value", around, ("return", f"{name} {items.index(node)}"), proof=siblings)
        keys, proof = self._takers(around, outer, siblings)
        if keys is None:
            place = items.index(node) if isinstance(parent, ast.Tuple) else None
            keys = self._in_rows(around, outer, place) if place is not None else None
        if keys is None:
            return self.make("unknown", parent, reason=TYPE if isinstance(around, ast.Subscript) else UNSEEN_LIST)
        if isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.make("value", around, *keys, proof=proof)
        return self.make("member", around, *keys, proof=proof)

    def _hands_on(self, around: ast.expr, outer: ast.expr) -> bool:
        """``["cpu"] + (["cuda"] if available else [])`` and ``list(...)`` are still the collection."""
        if isinstance(around, ast.IfExp):
            return outer is not around.test
        if isinstance(around, ast.Call):
            name = around.func.id if isinstance(around.func, ast.Name) else ""
            return name in ("list", "tuple", "set", "sorted", "frozenset", "enumerate", "reversed", "iter")
        return isinstance(around, ast.Starred | ast.BinOp) or (
            isinstance(around, CONTAINERS) and isinstance(outer, ast.Starred)
        )

    def _takers(self, around: ast.AST, outer: ast.expr, siblings: bool) -> tuple[list[Key | None] | None, bool]:
        """The keys of what a collection is held against, or of what takes its items; None where it is not seen."""
        if isinstance(around, ast.Compare):
            others = [side for side in (around.left, *around.comparators) if side is not outer]
            return [*self.from_(*others)], any(stripped(other)[1] for other in others)
        if isinstance(around, ast.keyword) and isinstance(call := self.tree.parents[around], ast.Call):
            if around.arg == "choices":
                return [*option(call)], siblings
            return ([*self.signatures.takers(call, outer)] or None), siblings
        if isinstance(around, ast.Call):
            return self._called(around, outer, siblings)
        if isinstance(around, ast.Assign | ast.AnnAssign):
            targets = around.targets if isinstance(around, ast.Assign) else [around.target]
            return [self.target(target) for target in targets], siblings
        if isinstance(around, ast.For | ast.AsyncFor):
            return [self.target(around.target)], siblings
        if isinstance(around, ast.comprehension):
            scope = self.tree.scopes[self.tree.parents[around]]
            return [*positions(self.tree, around.target, scope)[-1:]], siblings
        if isinstance(around, ast.arguments):
            return [*self.default(around, outer).keys], siblings
        if isinstance(around, ast.Return):
            return [("return", getattr(self.tree.function(around), "name", ""))], siblings
        return None, siblings

    def _called(self, call: ast.Call, outer: ast.expr, siblings: bool) -> tuple[list[Key | None] | None, bool]:
        name, func = last_name(call.func), call.func
        if name == "Choice":
            around = self.tree.parents[self.tree.parents[call]]
            return [None, *(option(around) if isinstance(around, ast.Call) else [])], siblings
        if name in ("startswith", "endswith", "extend", "update") and isinstance(func, ast.Attribute):
            return [*self.from_(func.value)], siblings or stripped(func.value)[1]
        if name == "parametrize":
            names = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
            return [("attribute", str(names))], siblings
        return ([*self.signatures.takers(call, outer)] or None), siblings

    def _in_rows(self, around: ast.AST, row: ast.expr, place: int) -> list[Key | None] | None:
        """``for kind, n in [("cpu", 1), ("cuda", 2)]``: the name that takes the items at ``place``."""
        if not isinstance(around, CONTAINERS):
            return None
        holder = self.tree.parents[around]
        if isinstance(holder, ast.For | ast.comprehension):
            parent = self.tree.parents[holder]
            scope = self.tree.scopes[parent] if isinstance(holder, ast.comprehension) else self.scope
            return positions(self.tree, holder.target, scope)[place : place + 1] or None
        if isinstance(holder, ast.Call) and last_name(holder.func) == "parametrize":
            names = holder.args[0].value if isinstance(holder.args[0], ast.Constant) else ""
            words = [word.strip() for word in str(names).split(",")]
            return [("attribute", word) for word in words[place : place + 1]] or None
        return None
