"""What an expression may be: goes from the expression back to what made it, on demand, each node once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from torchport.analysis import calling
from torchport.analysis.annotations import annotated
from torchport.analysis.evidence import COMPARISONS, Evidence
from torchport.analysis.index import default_of
from torchport.analysis.names import chain
from torchport.analysis.reaching import function_scope, reaching, scope_of
from torchport.analysis.scopes import FUNCTIONS, Binding, N, Scope, Tree
from torchport.analysis.values import (
    ARRAY,
    MODEL,
    NONE,
    NUMBER,
    ON_DEVICE,
    OTHER,
    SHAPE,
    TEXT,
    UNKNOWN,
    Value,
    combined,
    element,
    join,
    parts,
    sequence,
)

DEPTH = 25
ENOUGH = 20_000
"""Searches in one file after which a value is kept whatever it rests on."""

SAME = frozenset(("data", "grad", "T", "mT", "H", "real", "imag"))


class Flow(Evidence):
    """The values of one file."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._known: dict[ast.AST, Value] = {}
        self._open: dict[ast.AST, int] = {}
        """What is being looked for, with how deep it is in the search."""
        self._rests_on = DEPTH
        self._work = 0
        self._shown: dict[tuple[Scope, str], Value | None] = {}
        self._made: list[ast.AST] = []
        """What the search that goes on has found out."""
        self._cut: list[ast.AST] = []
        """Where it went too deep."""
        self._in_order: set[ast.AST | None] = set()
        """Functions whose statements were looked at in their order."""

    def value(self, node: ast.expr | None) -> Value:
        """What ``node`` may be. What depends on itself alone counts as nothing."""
        if node is None:
            return NONE
        known = self._known.get(node)
        return known if known is not None else self.once(node, self._value)

    def once(self, node: N, find: Callable[[N], Value], circular: Value = NONE) -> Value:
        """The value that ``find`` gives for ``node``, kept unless it rests on a value that is being looked for."""
        if (known := self._known.get(node)) is not None:
            return known
        opened = self._open
        if node in opened:
            self._rests_on = min(self._rests_on, opened[node])
            return circular
        depth = len(opened)
        if depth > DEPTH:
            self._cut.append(node)
            return UNKNOWN
        if depth == 0:
            self._made.clear()
        opened[node] = depth
        self._work += 1
        around, self._rests_on = self._rests_on, DEPTH
        found = find(node)
        del opened[node]
        if self._rests_on >= depth or self._work > ENOUGH:
            self._known[node] = found
            self._made.append(node)
            self._rests_on = around
        elif self._rests_on > around:
            self._rests_on = around
        return self._again(node, find) if self._cut and depth == 0 else found

    def _again(self, node: N, find: Callable[[N], Value]) -> Value:
        """The value of a search that went too deep: once more, after the statements of that function in their order."""
        function = self.tree.function(self._cut[0])
        self._cut.clear()
        if function in self._in_order:
            return self._known.get(node, UNKNOWN)
        self._in_order.add(function)
        for found in self._made:
            del self._known[found]
        self._made.clear()
        # What uses have shown stays; that they show nothing may rest on the cut.
        self._shown = {key: value for key, value in self._shown.items() if value is not None}
        for statement in self.assignments.get(function, ()):
            self.value(statement.value)
        return self.once(node, find)

    def by_use(self, home: Scope, name: str) -> Value | None:
        """What the uses of a name show, kept unless it rests on a value that is being looked for."""
        key = home, name
        if key in self._shown:
            return self._shown[key]
        around, self._rests_on = self._rests_on, DEPTH
        found = super().by_use(home, name)
        if self._rests_on == DEPTH:
            self._shown[key] = found
        self._rests_on = min(around, self._rests_on)
        return found

    def forget(self) -> None:
        """Give up what is being looked for, after a search that went too deep for Python."""
        self._open.clear()
        self._cut.clear()
        self._rests_on = DEPTH

    def _value(self, node: ast.expr) -> Value:
        if (find := _BY_KIND.get(node.__class__)) is not None:
            return find(self, node)
        match node:
            case ast.UnaryOp():
                value = self.value(node.operand)
                return NUMBER if isinstance(node.op, ast.Not) else value
            case ast.BoolOp():
                return join(map(self.value, node.values))
            case ast.IfExp():
                return join((self.value(node.body), self.value(node.orelse)))
            case ast.JoinedStr():
                return TEXT
            case ast.Tuple() | ast.List():
                if any(isinstance(item, ast.Starred) for item in node.elts):
                    return sequence(UNKNOWN)
                return parts(*map(self.value, node.elts))
            case ast.Set():
                return sequence(join(map(self.value, node.elts)))
            case ast.Dict():
                return Value("dict", items=(join(map(self.value, node.values)),) if node.values else ())
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return sequence(self.value(node.elt))
            case ast.DictComp():
                return Value("dict", items=(self.value(node.value),))
            case ast.NamedExpr():
                return self.value(node.value)
            case ast.Lambda():
                return OTHER
        return UNKNOWN

    def _constant(self, node: ast.Constant) -> Value:
        return NONE if node.value is None else TEXT if isinstance(node.value, (str, bytes)) else NUMBER

    def _operator(self, node: ast.BinOp) -> Value:
        return self.operated(self.value(node.left), self.value(node.right), node.op)

    def operated(self, one: Value, other: Value, operator: ast.operator) -> Value:
        """What ``one <operator> other`` gives."""
        if one.is_tensor or other.is_tensor:
            if "array" in (one.kind, other.kind):
                return UNKNOWN
            return combined((one, other), "float" if isinstance(operator, ast.Div) else None)
        kinds = {one.kind, other.kind}
        if kinds == {"number"}:
            return Value("number", origin=one.origin or other.origin)
        if one.kind == "text" or kinds == {"array"} or kinds == {"array", "number"}:
            return one if one.kind != "number" else other
        if one.kind == other.kind == "list" and isinstance(operator, ast.Add):
            return sequence(join((*one.items, *other.items)))
        if "list" in kinds and isinstance(operator, ast.Mult):
            return one if one.kind == "list" else other
        return one if one.kind == other.kind else UNKNOWN

    def _compare(self, node: ast.Compare) -> Value:
        if isinstance(node.ops[0], COMPARISONS):
            return NUMBER
        values = [self.value(node.left), *map(self.value, node.comparators)]
        if any(value.is_tensor for value in values):
            return combined(values, "bool")
        if any(value.kind == "array" for value in values):
            return ARRAY
        return UNKNOWN if any(value.kind == "unknown" for value in values) else NUMBER

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value)
        if value.kind == "dict" or (value.kind == "list" and not isinstance(node.slice, ast.Slice)):
            index = node.slice
            if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
                number = index.operand.value if isinstance(index.operand, ast.Constant) else None
                return element(value, -number if isinstance(number, int) else None)
            number = index.value if isinstance(index, ast.Constant) else None
            return element(value, number if isinstance(number, int) else None)
        if isinstance(node.slice, ast.Slice):
            if value.kind == "list" and value.fixed:
                return sequence(join(value.items))
            return value
        if value.kind == "unknown":
            chosen = UNKNOWN if isinstance(node.slice, ast.Constant) else self._chooses(node.slice)
            if chosen.kind == "tensor" and chosen.sure and (chosen.dtype == "bool" or not self.has_arrays):
                return chosen._replace(dtype="", scalar=False)
            return value
        return element(value)

    def _chooses(self, index: ast.expr) -> Value:
        """The value of an index; of several the tensor among them."""
        if not isinstance(index, ast.Tuple):
            return self.value(index)
        return next((v for v in map(self.value, index.elts) if v.kind == "tensor" and v.sure), UNKNOWN)

    def _attribute(self, node: ast.Attribute) -> Value:
        if name := self.name_of(node):
            return NUMBER if name in ("math.pi", "math.inf", "numpy.pi", "numpy.inf", "torch.inf") else OTHER
        if self.class_of(node.value) is not None:
            return self._own_attribute(node)
        value = self.value(node.value)
        if value.is_tensor:
            if node.attr == "shape":
                return SHAPE
            if node.attr in SAME:
                return value
            if value.kind == "output":
                return Value("output", value.where, sure=False)
            return OTHER if node.attr in ("device", "dtype", "layout", "grad_fn") else NUMBER
        if value.kind == "list" and node.attr in ("values", "indices") and value.fixed:
            return value.items[node.attr == "indices"] if len(value.items) == 2 else UNKNOWN
        if value.kind == "model":
            if node.attr in ("weight", "bias", "running_mean", "running_var"):
                return ON_DEVICE
            return MODEL if node.attr == "module" else UNKNOWN
        if node.attr == "shape":
            return SHAPE
        return UNKNOWN

    # names

    def _name(self, node: ast.Name) -> Value:
        scope = scope_of(self.tree, node)
        home = scope.find(node.id)
        if home is None:
            return UNKNOWN
        bindings = home.names[node.id]
        if home is function_scope(scope) and home.kind != "comprehension":
            bindings = reaching(self.tree, node, bindings)
        value = self.before_move(join(self._bound(b, home) for b in bindings), node, home, bindings)
        if home.kind != "class" and (value.kind in ("unknown", "none") or not value.sure):
            shown = self.by_use(home, node.id)
            if shown is not None and not value.sure and shown.is_tensor:
                return value._replace(kind="tensor", sure=True, items=())
            return shown or value
        return value

    def _bound(self, binding: Binding, home: Scope) -> Value:
        match binding.kind:
            case "assign":
                return self._assigned(binding.node) if isinstance(binding.node, ast.Name) else UNKNOWN
            case "none":
                return NONE
            case "param":
                return self._parameter(binding.node, home)  # type: ignore[arg-type]
            case _:
                return OTHER

    def _assigned(self, target: ast.Name) -> Value:
        """The value that a statement gives to ``target``."""
        return self.once(target, self._target)

    def _target(self, target: ast.Name) -> Value:
        places: list[tuple[int, int]] = []
        node: ast.expr = target
        parent = self.tree.parents[target]
        while isinstance(parent, (ast.Tuple, ast.List)):
            places.append((parent.elts.index(node), len(parent.elts)))
            if any(isinstance(e, ast.Starred) for e in parent.elts):
                places[-1] = (-100, 0)
            node, parent = parent, self.tree.parents[parent]
        value = self._given(parent, node)
        for index, count in reversed(places):
            value = self._part(value, index, count)
        return value

    def _part(self, value: Value, index: int, count: int) -> Value:
        if value.fixed and len(value.items) != count:
            return UNKNOWN
        if value.kind == "output":
            return Value("output", value.where, sure=False)
        return element(value, index)

    def _given(self, parent: ast.AST, node: ast.AST) -> Value:
        match parent:
            case ast.Assign() | ast.NamedExpr():
                return self.value(parent.value)
            case ast.AnnAssign():
                return self.value(parent.value) if parent.value is not None else annotated(self, parent.annotation)
            case ast.AugAssign():
                if not isinstance(parent.target, ast.Name):
                    return UNKNOWN
                home = scope_of(self.tree, parent.target).find(parent.target.id)
                if home is None:
                    return UNKNOWN
                earlier = [b for b in home.names[parent.target.id] if b.node is not parent.target]
                if home is function_scope(scope_of(self.tree, parent)):
                    earlier = reaching(self.tree, parent.target, earlier) if earlier else []
                before = join(self._bound(b, home) for b in earlier)
                added = self.value(parent.value)
                found = self.operated(added if before.kind == "none" else before, added, parent.op)
                return found._replace(where=before.where) if before.is_tensor and found.is_tensor else found
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                return self.iterated(parent.iter)
            case ast.withitem():
                return OTHER if isinstance(parent.context_expr, ast.Call) else UNKNOWN
        return UNKNOWN

    def is_mask(self, node: ast.expr) -> bool:
        """Whether an index is a tensor of bools, for certain."""
        if isinstance(node, ast.Tuple):
            return any(map(self.is_mask, node.elts))
        if not isinstance(node, (ast.Name, ast.Call, ast.UnaryOp, ast.Compare)):
            return False
        value = self.value(node)
        return value.kind == "tensor" and value.sure and value.dtype == "bool"

    def iterated(self, node: ast.expr) -> Value:
        """What each turn of a loop over ``node`` gets."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            function = chain(node.func)[-1:] or [""]
            match function[0]:
                case "range":
                    return Value("number", origin="loop")
                case "enumerate" if node.args:
                    return parts(Value("number", origin="loop"), self.iterated(node.args[0]))
                case "zip":
                    return parts(*map(self.iterated, node.args))
                case "tqdm" | "trange" | "reversed" | "iter" | "steps" | "islice" | "track" | "prefetch":
                    return self.iterated(node.args[0]) if node.args else UNKNOWN
                case "log_every" | "prepare" if node.args:
                    return self.iterated(node.args[0])
        value = self.value(node)
        return TEXT if value.kind == "dict" else element(value)

    def parameter(self, home: Scope, name: str) -> Value:
        """What a parameter of a function may be."""
        found = join(self._bound(b, home) for b in home.names.get(name, ()) if b.kind == "param")
        if found.kind in ("unknown", "none"):
            return self.by_use(home, name) or found
        return found

    def _parameter(self, argument: ast.arg, home: Scope) -> Value:
        function = home.node
        if not isinstance(function, (*FUNCTIONS, ast.Lambda)):
            return UNKNOWN
        if isinstance(function, FUNCTIONS):
            arguments = function.args
            if argument is arguments.vararg:
                return sequence(UNKNOWN)
            if argument is arguments.kwarg:
                return Value("dict")
            owner = self.tree.parents[function]
            if isinstance(owner, ast.ClassDef) and arguments.args and argument is arguments.args[0]:
                return MODEL if owner in self.modules else OTHER
            if argument.annotation is not None:
                said = annotated(self, argument.annotation)
                if said.kind != "unknown":
                    return said
            default = default_of(arguments, argument.arg)
            if isinstance(default, ast.Constant) and default.value is not None:
                return self.value(default)
            found = calling.from_callers(self, function, argument.arg)
            if found.kind == "unknown" and default is None and function.name == "forward" and owner in self.modules:
                return Value("tensor", sure=False)
            return found
        return UNKNOWN

    def _own_attribute(self, node: ast.Attribute) -> Value:
        owner = self.class_of(node.value)
        assert owner is not None
        found = join(self.value(value) for value in self.assigned.get((owner, node.attr), ()))
        if found.kind not in ("none", "unknown"):
            return found
        return NUMBER if node.attr == "training" else UNKNOWN


_BY_KIND: dict[type[ast.AST], Callable[[Flow, Any], Value]] = {
    ast.Name: Flow._name, ast.Call: calling.call, ast.Attribute: Flow._attribute, ast.Constant: Flow._constant,
    ast.Subscript: Flow._subscript, ast.BinOp: Flow._operator, ast.Compare: Flow._compare,
}  # fmt: skip
"""The kinds that are met most: a look-up in place of a test for each."""
