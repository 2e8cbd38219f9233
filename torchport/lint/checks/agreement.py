"""Whether a value may be another one in each process: computed from its own data, its own clock, its own signals."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from torchport.analysis.names import chain
from torchport.analysis.reaching import function_scope, reaching, scope_of
from torchport.analysis.scopes import FUNCTIONS, Binding, walk
from torchport.lazy import pattern
from torchport.lint.checks.collectives import NAMES, Collectives
from torchport.lint.checks.facts import Facts
from torchport.lint.checks.reads import wanted
from torchport.lint.checks.varying import loop_of

Verdict = Literal["", "unseen", "best", "local", "agreed"]
"""``best``: what a function gave that is not seen here is compared with the best so far."""
RANKED: tuple[Verdict, ...] = ("", "unseen", "best", "local", "agreed")
CLOCKS = ("time.time", "time.monotonic", "time.perf_counter", "time.process_time", "datetime.datetime.now",
          "datetime.datetime.utcnow", "timeit.default_timer")  # fmt: skip
MEMORY = ("mem_get_info", "memory_allocated", "max_memory_allocated", "memory_reserved", "virtual_memory")
AGREES = pattern(
    r"reduce|gather|broadcast|bcast|synchroni|(^|_)sync(_|$)|across|consensus|agree|(^|_)dist(ributed)?_|_dist(ributed)?$"
)
"""What functions are called whose result is the same in all processes."""
PLAIN = frozenset(
    (
        "abs",
        "bool",
        "float",
        "int",
        "max",
        "min",
        "round",
        "sum",
        "any",
        "all",
        "isnan",
        "isfinite",
        "isinf",
        "mean",
        "sqrt",
        "exp",
    )
)
"""Functions that only compute with what they are given."""
SHAPES = frozenset(
    ("size", "dim", "numel", "element_size", "nelement", "data_ptr", "is_floating_point", "is_contiguous")
)
STEADY = frozenset(("len", "range", "enumerate", "zip", "isinstance", "hasattr", "getattr", "str", "print", "type"))


class Agreement:
    """The values of one file."""

    def __init__(self, known: Facts, collectives: Collectives) -> None:
        self.known, self.tree, self.collectives = known, known.tree, collectives
        self._open: set[object] = set()
        self.unseen: ast.expr | None = None
        """What was compared with the best so far, of the test that was asked for last."""

    def test(self, node: ast.expr) -> Verdict:
        """Whether a test may come out differently in each process."""
        match node:
            case ast.BoolOp():
                return max(map(self.test, node.values), key=RANKED.index)
            case ast.UnaryOp(op=ast.Not()):
                return self.test(node.operand)
            case ast.Compare():
                found = self._compare(node)
            case _:
                found = self.value(node)
        if found in ("", "unseen") and self.collectives.names_rank(node):
            return "local"
        return "" if found in ("agreed", "unseen") else found

    def _compare(self, node: ast.Compare) -> Verdict:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return ""
        sides = [node.left, *node.comparators]
        found = self._all(sides)
        if not any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
            return found
        return "best" if found == "unseen" and self._is_best_so_far(sides) else found

    def _is_best_so_far(self, sides: list[ast.expr]) -> bool:
        """``val < best`` where ``best = val`` stands in the same function, or class."""
        names = {tuple(chain(n)) for s in sides for n in walk(s) if isinstance(n, ast.Name | ast.Attribute)} - {()}
        function = self.tree.function(sides[0])
        for statement in self.tree.every(ast.Assign):
            if self.tree.function(statement) is not function or loop_of(self.known, statement) is None:
                continue
            for target, value in _pairs(statement):
                values = value.args if isinstance(value, ast.Call) and _last(value) in ("max", "min") else [value]
                best = tuple(chain(target))
                given = {tuple(chain(v)) for v in values} - {(), best}
                if best in names and not given.isdisjoint(names) and not self._counts(target):
                    self.unseen = next(v for v in values if tuple(chain(v)) in given & names)
                    return True
        return False

    def _counts(self, target: ast.expr) -> bool:
        """Whether a name is a number that the loop counts, and not a score."""
        return any(chain(s.target) == chain(target) for s in self.tree.every(ast.AugAssign))

    def _all(self, nodes: Iterable[ast.expr | None]) -> Verdict:
        return max((self.value(n) for n in nodes if n is not None), key=RANKED.index, default="")

    def value(self, node: ast.expr) -> Verdict:
        """Where a value comes from."""
        if node in self._open or len(self._open) > 40:
            return ""
        self._open.add(node)
        try:
            found = self._value(node)
        finally:
            self._open.discard(node)
        return found

    def _value(self, node: ast.expr) -> Verdict:
        match node:
            case ast.Name():
                found = self._name(node)
            case ast.Attribute(value=ast.Name(id="self")):
                found = self._attribute(node)
            case ast.Attribute():
                tensor = self.known.value(node.value).is_tensor
                return "" if tensor and node.attr not in ("data", "grad") else self.value(node.value)
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self._all((node.left, node.right))
            case ast.UnaryOp():
                return self.value(node.operand)
            case ast.Subscript():
                return self.value(node.value)
            case ast.IfExp():
                return max(self._all((node.body, node.orelse)), self.test(node.test), key=RANKED.index)
            case ast.BoolOp():
                return self._all(node.values)
            case ast.Compare():
                return self._compare(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._all(node.elts)
            case ast.Dict():
                return self._all(node.values)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._all((node.elt, *(g.iter for g in node.generators)))
            case ast.NamedExpr() | ast.Starred():
                return self.value(node.value)
            case _:
                return ""
        return "local" if found == "" and self._is_output(node) else found

    def _is_output(self, node: ast.expr) -> bool:
        """A tensor of the step: what a model gave, or what a loss was computed from."""
        value = self.known.value(node)
        return wanted(value) and value.where == "device"

    def _name(self, node: ast.Name) -> Verdict:
        home = scope_of(self.tree, node).find(node.id)
        if home is None:
            return ""
        if (self.tree.function(node), (node.id,)) in self._handed:
            return "agreed"
        key = (home, node.id)
        if key in self._open:
            return ""
        self._open.add(key)
        try:
            bindings = home.names[node.id]
            if home is function_scope(scope_of(self.tree, node)) and home.kind != "comprehension":
                bindings = reaching(self.tree, node, bindings)
            return max((self._bound(b, node) for b in bindings), key=RANKED.index, default="")
        finally:
            self._open.discard(key)

    def _attribute(self, node: ast.Attribute) -> Verdict:
        """An attribute of ``self``: what the methods of the class give it."""
        owner = self.tree.owner(node)
        if owner is None or ("self", node.attr) in {parts for _, parts in self._handed}:
            return "agreed" if owner is not None else ""
        key = (owner, node.attr)
        if key in self._open:
            return ""
        self._open.add(key)
        try:
            places = [a for a in self._stored.get(node.attr, ()) if self.tree.owner(a) is owner]
            return max((self._stored_at(place, node) for place in places), key=RANKED.index, default="")
        finally:
            self._open.discard(key)

    @cached_property
    def _stored(self) -> dict[str, list[ast.Attribute]]:
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.tree.attributes:
            if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self":
                found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def _handed(self) -> set[tuple[ast.AST | None, tuple[str, ...]]]:
        """What is handed to a collective, which writes into it, by function."""
        found: set[tuple[ast.AST | None, tuple[str, ...]]] = set()
        for call in (*self.collectives.direct, *self._statements()):
            function = self.tree.function(call)
            parts = (n for a in call.args for n in walk(a) if isinstance(n, ast.Name | ast.Attribute))
            found |= {(function, tuple(chain(n))) for n in parts}
        return found

    def _statements(self) -> list[ast.Call]:
        """Calls such as ``sync_flags(flags)``, whose result nobody takes."""
        return [c for c in self.tree.calls if isinstance(self.tree.parents[c], ast.Expr) and AGREES.search(_last(c))]

    def _bound(self, binding: Binding, use: ast.expr) -> Verdict:
        if binding.kind not in ("assign", "none") or not isinstance(binding.node, ast.expr):
            return ""
        return self._stored_at(binding.node, use)

    def _stored_at(self, target: ast.expr, use: ast.expr) -> Verdict:
        if self._is_handler(self.tree.function(target)):
            return "local"
        parent = self.tree.parents[target]
        while isinstance(parent, ast.Tuple | ast.List | ast.Starred):
            parent = self.tree.parents[parent]
        match parent:
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if parent.value is not None:
                value = next((v for t, v in _pairs(parent) if t is target), parent.value)
                found = self.value(value)
            case ast.AugAssign():
                found = self.value(parent.value)
            case ast.For() | ast.comprehension():
                found = self.value(parent.iter)
                return found if found in ("local", "agreed") else ""
            case _:
                return ""
        return found if found == "agreed" else max(found, self._by_tests(target, use), key=RANKED.index)

    def _by_tests(self, target: ast.expr, use: ast.expr) -> Verdict:
        """``bad += 1`` under ``if val >= best`` is what the test is."""
        around = set(self.tree.ancestors(use))
        found: Verdict = ""
        for parent in self.tree.ancestors(target):
            if isinstance(parent, FUNCTIONS):
                break
            if isinstance(parent, ast.If) and parent not in around and parent not in self._open:
                self._open.add(parent)
                found = max(found, self.test(parent.test), key=RANKED.index)
                self._open.discard(parent)
        return found

    def _is_handler(self, function: ast.AST | None) -> bool:
        """Whether a function is what ``signal.signal`` is given."""
        return function is not None and function in self._handlers

    @cached_property
    def _handlers(self) -> set[ast.AST]:
        calls = [c for c in self.tree.calls if self.known.flow.name_of(c.func) == "signal.signal" and len(c.args) == 2]
        names = {(chain(c.args[1]) or [""])[-1] for c in calls}
        return {d for d in self.tree.definitions if getattr(d, "name", "") in names}

    def _call(self, call: ast.Call) -> Verdict:
        qualified = self.known.flow.name_of(call.func)
        last = _last(call)
        if qualified in NAMES or (AGREES.search(last) and last != "reduce"):
            return "agreed"
        if qualified in CLOCKS or last in MEMORY:
            return "local"
        if last in STEADY:
            return ""
        function = self.known.flow.runs.get(call)
        given = self._all([*call.args, *(k.value for k in call.keywords)])
        if function is not None:
            if function in self.collectives.functions:
                return "agreed"
            results = self._all(self.known.flow.results.get(function, ()))
            return max(results, given if given in ("local", "agreed") else "", key=RANKED.index)
        if isinstance(call.func, ast.Attribute) and not qualified:
            return self._method(call, call.func, given)
        if last in PLAIN or qualified.startswith(("torch.", "math.", "numpy.")):
            return "local" if given != "agreed" and self._is_output(call) else given
        return given if given in ("local", "agreed") else "unseen"

    def _method(self, call: ast.Call, func: ast.Attribute, given: Verdict) -> Verdict:
        base = self.value(func.value)
        if func.attr in SHAPES and self.known.value(func.value).is_tensor:
            return ""
        if func.attr == "item" and not call.args and base != "agreed":
            return "local"
        if "agreed" in (base, given):
            return "agreed"
        if self._is_output(call):
            return "local"
        return max(base, given, "unseen", key=RANKED.index)


def _last(call: ast.Call) -> str:
    return (chain(call.func) or [getattr(call.func, "attr", "")])[-1]


def _pairs(statement: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with what it is given: ``best, bad = val, 0`` has two."""
    if statement.value is None:
        return []
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        value = statement.value
        if (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
        ):
            found += zip(target.elts, value.elts, strict=True)
        else:
            found.append((target, value))
    return found
