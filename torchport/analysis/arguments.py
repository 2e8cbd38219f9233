"""What becomes of a device text that is an argument of a call."""

from __future__ import annotations

import ast

from torchport.analysis.carriers import CONTAINERS, carriers
from torchport.analysis.devices import NAMED, Key, Role, Use, key_of, looked_up, stripped
from torchport.analysis.flows import option, scope_around
from torchport.analysis.literals import DeviceText
from torchport.analysis.names import qualify
from torchport.analysis.parameters import Signatures, last_name
from torchport.analysis.scopes import Scope, Tree

HANDED = "it is handed to a function whose parameter is not seen here"
ASKED = "it only asks for the method `cuda`, which tensors and modules have everywhere"
METHOD = "it is the name of a method or of a module, which a TPU does not have; ask for what is needed by its own name"
WHOLE = "it compares a whole device, index included; compare `.type` instead"
HAND_ON = frozenset(("Option", "Argument", "Field", "field", "ib", "attrib", "DEFINE_string", "DEFINE_enum"))
"""Functions of typer, pydantic, dataclasses, attrs and absl that hand on a default as it is."""
TESTS = frozenset(
    ("startswith", "find", "count", "index", "endswith", "removeprefix", "replace", "split", "partition", "rpartition")
)
"""Methods that mean the same of another word, as long as the word is a whole one."""
ASSERTS = frozenset(("assertEqual", "assertNotEqual", "assertEquals", "assertIn", "assertNotIn", "assert_equal"))
PATTERNS = ("re.match", "re.search", "re.fullmatch")
DEFAULTS = ("get", "getenv", "pop", "setdefault")


class Arguments:
    """The part of the climb that deals with calls."""

    def __init__(self, tree: Tree, text: DeviceText, signatures: Signatures) -> None:
        self.tree, self.text, self.signatures = tree, text, signatures
        self.extra: list[Key] = []
        """Where the value may come from instead: ``args.device or "cuda"``."""
        self.scope = self._scope()

    def use(self) -> Use:
        """What the text is used for."""
        raise NotImplementedError

    def _scope(self) -> Scope:
        node: ast.AST = self.text.node
        while True:
            if node in self.tree.scopes:
                return self.tree.scopes[node]
            parent = self.tree.parents.get(node)
            if parent is None:
                return self.tree.scope
            node = parent

    def make(self, role: Role, at: ast.AST, *keys: Key | None, proof: bool = False, reason: str = "") -> Use:
        """The use of the text, together with what else its value may come from."""
        every = [k for k in (*keys, *self.extra) if k is not None]
        return Use(self.text, role, at, tuple(dict.fromkeys(every)), proof, reason)

    def from_(self, *nodes: ast.expr) -> list[Key]:
        """The keys whose value the nodes have."""
        return [key for node in nodes for key in carriers(self.tree, node, self.scope)]

    def target(self, node: ast.expr) -> Key | None:
        """The key of what is assigned to."""
        return key_of(self.tree, node, scope_around(self.tree, node))

    def holders(self, call: ast.Call) -> list[Key | None]:
        """The variable, attribute or parameter that takes what ``call`` gives."""
        parent = self.tree.parents[call]
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            return [self.target(t) for t in (parent.targets if isinstance(parent, ast.Assign) else [parent.target])]
        if isinstance(parent, ast.arguments):
            return list(self.default(parent, call).keys)
        return []

    def default(self, parent: ast.arguments, node: ast.AST) -> Use:
        """The default of a parameter."""
        function = self.tree.parents[parent]
        positional = [*parent.posonlyargs, *parent.args]
        pairs = list(zip(positional[len(positional) - len(parent.defaults) :], parent.defaults, strict=True))
        pairs += [(a, d) for a, d in zip(parent.kwonlyargs, parent.kw_defaults, strict=True) if d is not None]
        name = next(argument.arg for argument, default in pairs if default is node)
        return self.make("value", function, (id(self.tree.scopes[function]), name))

    def keyword(self, parent: ast.keyword) -> Use:
        """A keyword argument, or a keyword of a class."""
        call, name = self.tree.parents[parent], parent.arg or ""
        if not isinstance(call, ast.Call):
            return self.make("unknown", call, reason=HANDED)
        if name == "type" and self._is_device(call):
            return self.device_call(call)
        if name == "default" and isinstance(call.func, ast.Attribute | ast.Name):
            return self.make("value", call, *option(call), *self.holders(call))
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant):
            return self.make("unknown", call, reason="it is put into a text")
        takers = self.signatures.takers(call, parent.value)
        return self.make("argument", call, *takers, proof=bool(NAMED.search(name)))

    def factory(self, parent: ast.Lambda) -> Use:
        """``field(default_factory=lambda: "cuda")``."""
        keyword = self.tree.parents[parent]
        call = self.tree.parents[keyword]
        if isinstance(keyword, ast.keyword) and keyword.arg == "default_factory" and isinstance(call, ast.Call):
            return self.make("value", call, *self.holders(call))
        if isinstance(keyword, ast.Assign) and isinstance(keyword.targets[0], ast.Name):
            return self.make("value", keyword, ("return", keyword.targets[0].id))
        return self.make("unknown", parent, reason="it is what a function without a name gives")

    def argument(self, call: ast.Call, node: ast.expr) -> Use:
        """A positional argument."""
        qualified = qualify(self.tree, call.func, self.scope)
        name = qualified.name if qualified else ""
        if name == "torch.device":
            return self.device_call(call)
        if name in PATTERNS and node is call.args[0]:
            return self._test(call, *call.args[1:2])
        if isinstance(call.func, ast.Attribute) and (use := self._method(call, call.func, node)) is not None:
            return use
        if isinstance(call.func, ast.Name):
            if call.func.id in ("hasattr", "getattr") and call.args[1:2] == [node]:
                return self.make("unknown", call, reason=ASKED if call.func.id == "hasattr" else METHOD)
            if call.func.id == "getattr" and call.args[2:] == [node]:
                return self.make("value", call, looked_up(call), *self.holders(call))
            if call.func.id == "setattr" and call.args[2:] == [node] and isinstance(call.args[1], ast.Constant):
                return self.make("value", call, ("attribute", str(call.args[1].value)))
        if name.startswith("torch."):
            return self.make("argument", call, proof=True)
        if takers := self.signatures.takers(call, node):
            return self.make("value", call, *takers, proof=any(NAMED.search(key[1]) for key in takers))
        return self._foreign(call)

    def _test(self, call: ast.AST, *others: ast.expr) -> Use:
        """Held against ``others``; a part of a name, or one with a number, is another thing on a TPU."""
        proof = any(stripped(other)[1] for other in others)
        return self.make("test", call, *self.from_(*others), proof=proof)

    def _method(self, call: ast.Call, func: ast.Attribute, node: ast.expr) -> Use | None:
        method = func.attr
        if method == "to" and node is call.args[0]:
            return self.make("to", call, proof=True)
        if method in TESTS:
            return self._test(call, func.value)
        if method in ("strip", "lstrip", "rstrip"):
            keys, proof = self.from_(func.value), stripped(func.value)[1]
            return self.make(
                "fixed", call, *keys, proof=proof, reason=f".{method}() takes the letters of the name away"
            )
        if method in ASSERTS:
            return self._test(call, *(a for a in call.args if a is not node))
        if method in DEFAULTS and len(call.args) == 2 and node is call.args[1]:
            key = looked_up(call)
            proof = key is not None and bool(NAMED.search(key[1]))
            return self.make("value", call, key, *self.holders(call), proof=proof)
        if method in ("append", "add", "insert"):
            return self.make("member", call, *self.from_(func.value))
        return None

    def _foreign(self, call: ast.Call) -> Use:
        """An argument of a function that is not seen: a default that it hands on, or something that only it knows."""
        holders = self.holders(call)
        if (name := last_name(call.func)) in HAND_ON:
            flag = call.args[0] if name.startswith("DEFINE") else None
            own: Key | None = ("attribute", str(flag.value)) if isinstance(flag, ast.Constant) else None
            return self.make("value", call, *holders, own)
        return self.make("fixed" if holders else "unknown", call, *holders, reason=HANDED)

    def _is_device(self, call: ast.Call) -> bool:
        found = qualify(self.tree, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
        return found is not None and found.name == "torch.device"

    def device_call(self, call: ast.Call) -> Use:
        """``torch.device("cuda")``: the key is that of what takes the device."""
        outer: ast.AST = call
        parent = self.tree.parents[outer]
        if isinstance(parent, ast.Attribute) and parent.attr == "type":
            self.text = DeviceText(parent)  # a text again, whose use is that of any other
            use = self.use()
            use.proof = True
            return use
        while isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            outer, parent = parent, self.tree.parents[parent]
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return self.make("device", call, *map(self.target, targets), proof=True)
        if isinstance(parent, ast.Dict) and outer in parent.keys:  # held against what it is looked up by
            role: Role = "test" if self.text.index is None else "fixed"
            return self.make(role, parent, (id(parent), "device"), proof=True, reason=WHOLE)
        compare = self.tree.parents[parent] if isinstance(parent, CONTAINERS) else parent
        if isinstance(compare, ast.Compare):
            others = [n for n in (compare.left, *compare.comparators) if n not in (outer, parent)]
            keys = self.from_(*(n for n in others if isinstance(n, ast.Name | ast.Call)))
            if compare is not parent:
                keys.append((id(parent), "device"))  # the members move together
            if self.text.index is None and len(call.args) + len(call.keywords) == 1:
                return self.make("test", compare, *keys, proof=True)
            return self.make("fixed", compare, *keys, proof=True, reason=WHOLE)
        keys = []
        if isinstance(parent, ast.Return):
            function = self.tree.function(parent)
            keys = [("return", getattr(function, "name", ""))]
        elif isinstance(parent, ast.arguments) and isinstance(outer, ast.expr):
            keys = list(self.default(parent, outer).keys)
        elif isinstance(parent, ast.keyword) and isinstance(around := self.tree.parents[parent], ast.Call):
            keys = self.signatures.takers(around, parent.value)
        elif isinstance(parent, ast.Call) and isinstance(outer, ast.expr):
            keys = self.signatures.takers(parent, outer)
        return self.make("device", call, *keys, proof=True)
