"""What each device text of a file is used for: goes from the text outwards until something uses it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.analysis.devices import NAMED, SIBLINGS, Key, Role, Use, key_of, looked_up, stripped
from torchport.analysis.literals import DeviceText, device_text
from torchport.analysis.names import qualify
from torchport.analysis.scopes import FUNCTIONS, Scope, Tree


def _has_sibling(node: ast.expr) -> bool:
    """Whether a branch of a choice is, or chooses, another device name."""
    if isinstance(node, ast.IfExp):
        return _has_sibling(node.body) or _has_sibling(node.orelse)
    return isinstance(node, ast.Constant) and node.value in SIBLINGS


def _is_device(tree: Tree, call: ast.Call) -> bool:
    found = qualify(tree, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    return found is not None and found.name == "torch.device"


def odd_texts(tree: Tree) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Texts that begin as a CUDA device does and go on in a way that is not understood."""
    for node in tree.strings:
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        value = first.value if isinstance(first, ast.Constant) else None
        if not isinstance(value, str) or _widest(tree, node) is not None:
            continue
        odd = value in ("cuda", "cuda:") if isinstance(node, ast.JoinedStr) else bool(ODD.match(value))
        if odd and not isinstance(tree.parents[node], ast.Expr | ast.JoinedStr | ast.FormattedValue):
            yield node


def _is_enum(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases)


def find_uses(tree: Tree) -> list[Use]:
    """Every device text of the file with its use, in order of the source."""
    uses: list[Use] = []
    seen: set[ast.AST] = set()
    for node in tree.strings:
        text = _widest(tree, node)
        if text is None or text.node in seen:
            continue
        seen.add(text.node)
        if not isinstance(tree.parents.get(text.node), ast.Expr):
            uses.append(_checked(_Climb(tree, text).use()))
    return uses


def _checked(use: Use) -> Use:
    """ "cuda:" alone is a part of a device name: it blocks what it is a part of."""
    if use.text.index == "":
        use.role, use.reason = (
            "fixed" if use.keys else "unknown",
            "a part of a device name: on a TPU there is no index behind it",
        )
    return use


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


HANDED = "it is handed to a function whose parameter is not seen here"
ODD = re.compile(r"cuda(:[\w{,%]|\{)")
HAND_ON = frozenset(("Option", "Argument", "Field", "field", "ib", "attrib", "DEFINE_string", "DEFINE_enum"))
"""Functions of typer, pydantic, dataclasses, attrs and absl that hand on a default as it is."""


class _Climb:
    """Goes from a device text outwards until something uses it."""

    def __init__(self, tree: Tree, text: DeviceText) -> None:
        self.tree, self.text = tree, text
        self.scope = self._scope()

    def _scope(self) -> Scope:
        node: ast.AST = self.text.node
        while True:
            if node in self.tree.scopes:
                return self.tree.scopes[node]
            parent = self.tree.parents.get(node)
            if parent is None:
                return self.tree.scope
            node = parent

    def _make(self, role: Role, at: ast.AST, *keys: Key | None, proof: bool = False, reason: str = "") -> Use:
        return Use(self.text, role, at, tuple(k for k in keys if k is not None), proof, reason)

    def use(self) -> Use:
        node: ast.AST = self.text.node
        while True:
            parent = self.tree.parents[node]
            if isinstance(parent, ast.IfExp) and node is not parent.test:
                sibling = parent.orelse if node is parent.body else parent.body
                if _has_sibling(sibling):
                    return self._through(parent, proof=True)
            elif isinstance(parent, ast.BoolOp | ast.List | ast.Tuple) and self._chosen(parent, node):
                return self._through(parent, proof=True)
            elif not (
                isinstance(parent, ast.BoolOp)
                or (isinstance(parent, ast.NamedExpr) and node is parent.value)
                or (isinstance(parent, ast.List | ast.Tuple) and isinstance(self.tree.parents[parent], ast.Subscript))
                or (isinstance(parent, ast.Subscript) and node is parent.value)
            ):
                return self._consumed(parent, node)
            if isinstance(parent, ast.NamedExpr):
                return self._make("value", parent, key_of(self.tree, parent.target, self.scope))
            node = parent

    def _chosen(self, parent: ast.BoolOp | ast.List | ast.Tuple, node: ast.AST) -> bool:
        """``available and "cuda" or "cpu"`` and ``["cpu", "cuda"][available]`` choose between devices."""
        if isinstance(parent, ast.BoolOp):
            outer = self.tree.parents[parent]
            values = [*parent.values, *(outer.values if isinstance(outer, ast.BoolOp) else [])]
            return any(_has_sibling(value) for value in values if value is not node)
        outer = self.tree.parents[parent]
        return isinstance(outer, ast.Subscript) and outer.value is parent and any(map(_has_sibling, parent.elts))

    def _through(self, node: ast.AST, proof: bool) -> Use:
        """A choice between device names is one of devices; go on to what uses it."""
        inner = node
        while isinstance(parent := self.tree.parents[inner], ast.IfExp | ast.BoolOp | ast.Subscript) and (
            inner is not getattr(parent, "test", None) and inner is not getattr(parent, "slice", None)
        ):
            inner = parent
        use = self._consumed(self.tree.parents[inner], inner)
        use.proof = use.proof or proof
        if use.role == "unknown":
            use.role, use.reason = "value", ""
        return use

    def _consumed(self, parent: ast.AST, node: ast.AST) -> Use:
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            if any(isinstance(t, ast.Tuple | ast.List) for t in targets):
                return self._make("unknown", parent, reason="it is assigned to several names at once")
            if _is_enum(self.scope.node):
                return self._make(
                    "fixed", parent, reason="a member of an enumeration has to stay different from the others"
                )
            return self._make("value", parent, *(self._target(t) for t in targets))
        if isinstance(parent, ast.Tuple) and isinstance(assign := self.tree.parents[parent], ast.Assign):
            target = assign.targets[0]
            if len(assign.targets) == 1 and isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts):
                return self._make("value", assign, self._target(target.elts[parent.elts.index(node)]))  # type: ignore[arg-type]
        if isinstance(parent, ast.Compare):
            return self._compared(parent, node)
        if isinstance(parent, ast.keyword):
            return self._keyword(parent)
        if isinstance(parent, ast.Call):
            return self._argument(parent, node)
        if isinstance(parent, ast.arguments):
            return self._default(parent, node)
        if isinstance(parent, ast.Return | ast.Yield):
            function = self.tree.function(parent)
            name = function.name if isinstance(function, FUNCTIONS) else ""
            return self._make("value", parent, ("return", name), proof=bool(NAMED.search(name)))
        if isinstance(parent, ast.Dict):
            return self._dictionary(parent, node)
        if isinstance(parent, ast.List | ast.Tuple | ast.Set):
            return self._member(parent)
        if isinstance(parent, ast.MatchValue):
            return self._make(
                "fixed", parent, *self._subject(parent), reason="a `case` pattern cannot hold a call; write it as `if`"
            )
        if isinstance(parent, ast.Subscript):
            return self._make(
                "unknown",
                parent,
                reason="it is a key or a type argument; whether it names a device depends on the data",
            )
        if isinstance(parent, ast.FormattedValue | ast.JoinedStr):
            return self._make("unknown", parent, reason="it is a part of a text")
        return self._make("unknown", parent, reason="nothing here shows that it names a device")

    def _target(self, node: ast.expr) -> Key | None:
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            return ("attribute", node.slice.value)
        return key_of(self.tree, node, self.scope)

    def _subject(self, node: ast.AST) -> list[Key | None]:
        match = next((n for n in self.tree.ancestors(node) if isinstance(n, ast.Match)), None)
        if match is None:
            return []
        subjects = match.subject.elts if isinstance(match.subject, ast.Tuple) else [match.subject]
        return [key_of(self.tree, stripped(subject)[0], self.scope) for subject in subjects]

    def _compared(self, node: ast.Compare, own: ast.AST) -> Use:
        if len(node.ops) != 1:
            return self._make("fixed", node, reason="a chain of comparisons")
        other = node.comparators[0] if own is node.left else node.left
        base, proof = stripped(other)
        key = key_of(self.tree, base, self.scope)
        operator = node.ops[0]
        if isinstance(operator, ast.In | ast.NotIn):
            if own is node.left:
                return self._make("contains", node, key, proof=proof)
            return self._make("fixed", node, key, proof=proof, reason="a test for letters within the word 'cuda'")
        if isinstance(other, ast.Subscript) and isinstance(other.slice, ast.Slice):
            return self._make(
                "fixed",
                node,
                key_of(self.tree, other.value, self.scope),
                proof=proof,
                reason="it compares the first letters, whose number depends on the device name; use .startswith",
            )
        if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
            return self._make("compare", node, key, proof=proof)
        return self._make("fixed", node, key, proof=proof, reason="device names have no order")

    def _keyword(self, parent: ast.keyword) -> Use:
        call = self.tree.parents[parent]
        name = parent.arg or ""
        if isinstance(call, ast.Call) and name == "type" and _is_device(self.tree, call):
            return self._device_call(call)
        if isinstance(call, ast.Call) and name == "default" and isinstance(call.func, ast.Attribute | ast.Name):
            return self._make("value", call, *self._option(call), *self._holders(call))
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Constant)
        ):
            return self._make("unknown", call, reason="it is put into a text")
        return self._make("argument", call, self._parameter(call, name), proof=bool(NAMED.search(name)))

    def _parameter(self, call: ast.AST, name: str) -> Key | None:
        """The parameter of a function of this file that a keyword argument goes to."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            for definition in self.tree.definitions:
                if definition.name == call.func.id:
                    return (id(self.tree.scopes[definition]), name)
        return None

    def _option(self, call: ast.Call) -> list[Key]:
        """The attribute under which argparse or click hands on an option."""
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]
        names = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        keys: list[Key] = [
            ("attribute", name.lstrip("-").replace("-", "_")) for name in names if not re.fullmatch(r"-\w", name)
        ]
        return keys[-1:]

    def _argument(self, call: ast.Call, node: ast.AST) -> Use:
        qualified = qualify(self.tree, call.func, self.scope)
        name = qualified.name if qualified else ""
        if name == "torch.device":
            return self._device_call(call)
        if isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method == "to" and call.args and node is call.args[0]:
                return self._make("to", call, proof=True)
            if method in (
                "startswith",
                "find",
                "count",
                "index",
                "endswith",
                "replace",
                "strip",
                "lstrip",
                "removeprefix",
            ):
                base, proof = stripped(call.func.value)
                key = key_of(self.tree, base, self.scope)
                if method == "startswith":
                    return self._make("prefix", call, key, proof=proof)
                return self._make("fixed", call, key, proof=proof, reason=f".{method}() takes the device name apart")
            if method in ("get", "getenv", "pop", "setdefault") and len(call.args) == 2 and node is call.args[1]:
                holders = self._holders(call)
                key = looked_up(call)
                return self._make("value", call, key, *holders, proof=key is not None and bool(NAMED.search(key[1])))
        if isinstance(call.func, ast.Name) and call.func.id == "getattr" and call.args[2:] == [node]:
            return self._make("value", call, looked_up(call), *self._holders(call))
        if name.startswith("torch."):
            return self._make("argument", call, proof=True)
        return self._own_function(call, node)

    def _own_function(self, call: ast.Call, node: ast.AST) -> Use:
        """A positional argument of a function, class or method of this file is what its parameter says."""
        if node in call.args:
            parameter = self._positional(call, call.args.index(node))
            if parameter is not None:
                return self._make("value", call, parameter, proof=bool(NAMED.search(parameter[1])))
        return self._foreign(call)

    def _positional(self, call: ast.Call, position: int) -> Key | None:
        """The parameter that takes the argument at ``position``."""
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        own_class = next((c for c in self.tree.classes if c.name == name), None) if isinstance(func, ast.Name) else None
        found: Key | None = None
        for definition in self.tree.definitions:
            owner = self.tree.parents[definition]
            method = isinstance(owner, ast.ClassDef)
            if own_class is not None:
                fits = owner is own_class and definition.name == "__init__"
            else:
                fits = definition.name == name and method == isinstance(func, ast.Attribute)
            names = [*definition.args.posonlyargs, *definition.args.args][1 if method else 0 :]
            if fits and position < len(names):
                found = (id(self.tree.scopes[definition]), names[position].arg)
        return found

    def _foreign(self, call: ast.Call) -> Use:
        """An argument of a function that is not seen: a default that it hands on, or something that only it knows."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        holders = self._holders(call)
        if name in HAND_ON:
            flag = call.args[0] if name.startswith("DEFINE") else None
            own: Key | None = ("attribute", str(flag.value)) if isinstance(flag, ast.Constant) else None
            return self._make("value", call, *holders, own)
        return self._make("fixed" if holders else "unknown", call, *holders, reason=HANDED)

    def _holders(self, call: ast.Call) -> list[Key | None]:
        """The variable, attribute or parameter that takes what ``call`` gives."""
        parent = self.tree.parents[call]
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            return [self._target(t) for t in (parent.targets if isinstance(parent, ast.Assign) else [parent.target])]
        if isinstance(parent, ast.arguments):
            return list(self._default(parent, call).keys)
        return []

    def _device_call(self, call: ast.Call) -> Use:
        """``torch.device("cuda")``: the key is that of the variable that takes the device."""
        outer: ast.AST = call
        parent = self.tree.parents[outer]
        while isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            outer, parent = parent, self.tree.parents[parent]
        keys: list[Key | None] = []
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            keys = [self._target(target) for target in targets]
        if isinstance(parent, ast.Compare):
            other = parent.comparators[0] if outer is parent.left else parent.left
            return self._make(
                "fixed",
                parent,
                key_of(self.tree, other, self.scope) if isinstance(other, ast.Name) else None,
                proof=True,
                reason="it compares a whole device, index included; compare `.type` instead",
            )
        return self._make("device", call, *keys, proof=True)

    def _default(self, parent: ast.arguments, node: ast.AST) -> Use:
        function = self.tree.parents[parent]
        positional = [*parent.posonlyargs, *parent.args]
        pairs = list(zip(positional[len(positional) - len(parent.defaults) :], parent.defaults, strict=True))
        pairs += [(a, d) for a, d in zip(parent.kwonlyargs, parent.kw_defaults, strict=True) if d is not None]
        name = next(argument.arg for argument, default in pairs if default is node)
        return self._make("value", function, (id(self.tree.scopes[function]), name))

    def _dictionary(self, parent: ast.Dict, node: ast.AST) -> Use:
        holder = self.tree.parents[parent]
        if isinstance(holder, ast.keyword) and holder.arg == "map_location":
            return self._make(
                "unknown",
                parent,
                reason="it maps one GPU to another while a file is loaded; give map_location one device",
            )
        for key, value in zip(parent.keys, parent.values, strict=True):
            if value is node and isinstance(key, ast.Constant):
                name = str(key.value)
                return self._make("value", parent, ("attribute", name), proof=bool(NAMED.search(name)))
            if value is node and key is not None and device_text(key) is not None:
                return self._make("unknown", parent, reason="it maps one device name to another")
            if value is node:
                return self._make("unknown", parent, reason="a value of a dictionary whose key does not say what it is")
        others = [k.value for k in parent.keys if isinstance(k, ast.Constant) and k is not node]
        key_name: Key | None = None
        if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
            key_name = key_of(self.tree, holder.targets[0], self.scope)
        if not any(value in SIBLINGS for value in others):
            return self._make("unknown", parent, reason="a key of a dictionary; nothing shows that it names a device")
        if key_name is None and not isinstance(holder, ast.Subscript):
            return self._make("fixed", parent, reason="a key of a dictionary that is read elsewhere")
        return self._make("key", parent, key_name, proof=True)

    def _member(self, parent: ast.List | ast.Tuple | ast.Set) -> Use:
        holder = self.tree.parents[parent]
        siblings = any(isinstance(e, ast.Constant) and e.value in SIBLINGS for e in parent.elts)
        if isinstance(holder, ast.Compare) and len(holder.ops) == 1 and isinstance(holder.ops[0], ast.In | ast.NotIn):
            base, proof = stripped(holder.left)
            return self._make("member", holder, key_of(self.tree, base, self.scope), proof=proof)
        if (
            isinstance(holder, ast.keyword)
            and holder.arg == "choices"
            and isinstance(call := self.tree.parents[holder], ast.Call)
        ):
            return self._make("member", call, *self._option(call), proof=siblings)
        if isinstance(holder, ast.Call) and getattr(holder.func, "attr", getattr(holder.func, "id", "")) == "Choice":
            option = self.tree.parents[self.tree.parents[holder]]
            keys = self._option(option) if isinstance(option, ast.Call) else []
            return self._make("member", holder, *keys, proof=siblings)
        if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
            return self._make(
                "fixed" if siblings else "unknown",
                holder,
                key_of(self.tree, holder.targets[0], self.scope),
                reason="a list of device names that is read elsewhere",
            )
        return self._make("unknown", parent, reason="a list whose use is not seen here")
