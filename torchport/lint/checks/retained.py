"""Tensors of a step that are kept after it together with the graph from which their gradients were computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.loops import without_gradients
from torchport.analysis.names import chain
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import FUNCTIONS, Binding, walk
from torchport.lint.checks.facts import Facts, facts, statements
from torchport.lint.checks.varying import loop_of
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context, New

Parts = tuple[str, ...]
"""A name, or an attribute with what is before it: ``("self", "loss")``."""
BACKWARD = ("backward", "manual_backward")
ADDS = frozenset(("append", "appendleft", "add", "insert"))
ENDS = frozenset(
    ("detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "size", "dim", "numel")
)
EMPTIED = frozenset(("clear", "pop", "popleft"))


def retained_graph(rule: Rule, context: Context) -> Iterator[Finding]:
    """``losses.append(loss)``, ``total += loss``, ``history[step] = loss`` in the loop of ``loss.backward()``."""
    known = facts(context)
    seen: set[ast.AST] = set()
    for call in known.named(*BACKWARD):
        turn = loop_of(known, call) or context.tree.function(call)
        if turn is None or turn in seen or any(k.arg in ("retain_graph", "create_graph") for k in call.keywords):
            continue
        seen.add(turn)
        graphed = _Graphed(known, turn)
        for statement in graphed.statements:
            yield from _kept(rule, context, graphed, statement)


def _kept(rule: Rule, context: Context, graphed: _Graphed, statement: ast.stmt) -> Iterator[Finding]:
    """What a statement keeps beyond the turn of the loop."""
    holder, value = _holding(statement)
    if isinstance(statement, ast.Assign) and isinstance(holder, ast.Subscript) and not graphed.turns(holder.slice):
        return  # the next turn writes over it
    if holder is None or value is None or not graphed.outlives(holder):
        return
    computes = not (isinstance(statement, ast.Expr) and isinstance(value, ast.Name | ast.Attribute))
    if computes and without_gradients(context.tree, statement):
        return
    places = list(_places(graphed, value))
    if places:
        news = [New(place, f"{context.source(place)}.detach()", accelerator=False) for place in places]
        yield context.rewrite(rule, statement, *news, doubt=f"{rule.reason}; --unsafe writes it")


def _holding(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """What keeps, and what is kept."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute() as func, args=[*_, last])) if func.attr in ADDS:
            return func.value, last
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            return target, value
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return target, value
        case ast.Assign(targets=[ast.Name() as target], value=ast.BinOp(op=ast.Add()) as value):
            sides = [(value.left, value.right), (value.right, value.left)]
            return next(((target, b) for a, b in sides if getattr(a, "id", "") == target.id), (None, None))
        case ast.Assign(targets=[ast.Attribute() as target], value=ast.BinOp(op=ast.Add()) as value):
            sides = [(value.left, value.right), (value.right, value.left)]
            return next(((target, b) for a, b in sides if chain(a) and chain(a) == chain(target)), (None, None))
    return None, None


def _places(graphed: _Graphed, node: ast.expr) -> Iterator[ast.expr]:
    """The names in what is kept that have a graph behind them."""
    match node:
        case ast.Name() | ast.Attribute():
            if graphed.has(node):
                yield node
        case ast.Dict():
            for value in node.values:
                yield from _places(graphed, value)
        case ast.Tuple() | ast.List() | ast.Set():
            for value in node.elts:
                yield from _places(graphed, value)
        case ast.BinOp():
            yield from _places(graphed, node.left)
            yield from _places(graphed, node.right)
        case ast.UnaryOp(op=ast.USub()):
            yield from _places(graphed, node.operand)


class _Graphed:
    """The names that have a graph behind them, in one turn of a loop, or one call of a function, that runs backward."""

    def __init__(self, known: Facts, turn: ast.AST) -> None:
        self.known, self.turn = known, turn
        self.statements = list(statements(turn))
        self._given: dict[Parts, list[ast.expr]] = {}
        self._emptied: set[Parts] = set()
        self._consumed: dict[Parts, int] = {}
        """What backward is called on, with the line."""
        for statement in self.statements:
            self._read(statement)
        self._found: dict[Parts, bool] = {}

    def _read(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    self._given.setdefault(tuple(chain(part)), []).append(statement.value)
        if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in EMPTIED:
                self._emptied.add(tuple(chain(func.value)))
            elif isinstance(func, ast.Attribute) and func.attr in BACKWARD:
                self._consumed |= {tuple(chain(n)): call.lineno for n in self._sources(call, func)}

    def _sources(self, call: ast.Call, func: ast.Attribute) -> Iterator[ast.expr]:
        """``loss`` of ``loss.backward()``, ``scaler.scale(loss).backward()`` and ``accelerator.backward(loss)``."""
        match func.value:
            case ast.Call(args=[ast.Name() | ast.Attribute() as only]):
                yield only
            case ast.BinOp(left=ast.Name() as left):
                yield left
            case ast.Name() | ast.Attribute():
                yield call.args[0] if call.args and self.known.value(call.args[0]).is_tensor else func.value

    def has(self, node: ast.expr) -> bool:
        """Whether a name stands for a tensor that was computed with gradients."""
        parts = tuple(chain(node))
        if not parts or self.known.value(node).kind in ("number", "array", "none"):
            return False
        if parts in self._consumed:
            return all(value.lineno < self._consumed[parts] for value in self._given.get(parts, ()))
        return self._graph(parts) and not any(_ends(value, parts) for value in self._given[parts])

    def _graph(self, parts: Parts) -> bool:
        if parts not in self._found:
            self._found[parts] = False
            self._found[parts] = any(map(self._computed, self._given.get(parts, ())))
        return self._found[parts]

    def _computed(self, node: ast.expr) -> bool:
        """Whether a value is computed from what a model gives, by PyTorch alone."""
        match node:
            case ast.Name():
                return self._graph((node.id,))
            case ast.Attribute():
                return self._graph(tuple(chain(node)))
            case ast.BinOp():
                return self._computed(node.left) or self._computed(node.right)
            case ast.UnaryOp():
                return self._computed(node.operand)
            case ast.Call():
                return self._called(node)
        return False

    def _called(self, call: ast.Call) -> bool:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in ENDS:
            return False
        value = self.known.value(call)
        if not value.is_tensor or value.dtype in ("bool", "int"):
            return False
        if self.known.value(func).kind == "model":
            return not without_gradients(self.known.tree, call)
        if not value.sure:
            return False
        base = [func.value] if isinstance(func, ast.Attribute) else []
        return any(map(self._computed, [*base, *call.args])) and not without_gradients(self.known.tree, call)

    def turns(self, index: ast.expr) -> bool:
        """Whether an index is another one in each turn: counted by the loop, or added to."""
        loop = self.turn
        counted = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()
        added = {chain(s.target)[-1] for s in self.statements if isinstance(s, ast.AugAssign) and chain(s.target)}
        names = {(chain(n) or [""])[-1] for n in walk(index) if isinstance(n, ast.Name | ast.Attribute)}
        return not names.isdisjoint(counted | added)

    def outlives(self, holder: ast.expr) -> bool:
        """Whether what is kept in ``holder`` is there after the turn."""
        while isinstance(holder, ast.Subscript | ast.Call):
            holder = holder.value if isinstance(holder, ast.Subscript) else holder.func
            holder = holder.value if isinstance(holder, ast.Attribute) and holder.attr == "setdefault" else holder
        parts = tuple(chain(holder))
        if not parts or parts in self._emptied or parts in self._consumed:
            return False
        tree = self.known.tree
        home = scope_of(tree, holder).find(parts[0])
        if home is None or (len(parts) > 1 and parts in self._given and isinstance(self.turn, FUNCTIONS)):
            return False
        if len(parts) > 1:
            return all(_adds_itself(value, parts) for value in self._given.get(parts, ()))
        inside = [b.node for b in home.names[parts[0]] if self.turn in tree.ancestors(b.node) and b.kind != "param"]
        if isinstance(self.turn, FUNCTIONS):
            return home.node is not self.turn
        if _is_short(self.known, home.names[parts[0]]):
            return False
        return all(_adds(tree.parents[node], parts) for node in inside)


def _ends(value: ast.expr, parts: Parts) -> bool:
    """``loss.detach()``, ``loss.item()`` of the name itself."""
    calls = (n for n in walk(value) if isinstance(n, ast.Attribute))
    return any((n.attr in ENDS or n.attr == "data") and tuple(chain(n.value)) == parts for n in calls)


def _adds(statement: ast.AST, parts: Parts) -> bool:
    """``total += x`` and ``total = total + x`` bind a name anew and keep what it held."""
    if isinstance(statement, ast.AugAssign):
        return True
    return isinstance(statement, ast.Assign) and _adds_itself(statement.value, parts)


def _adds_itself(value: ast.expr, parts: Parts) -> bool:
    return isinstance(value, ast.BinOp) and parts in (tuple(chain(value.left)), tuple(chain(value.right)))


def _is_short(known: Facts, bindings: list[Binding]) -> bool:
    """``deque(maxlen=100)`` forgets by itself."""
    statements = [known.tree.statement(b.node) for b in bindings if b.kind == "assign"]
    return any(isinstance(n, ast.keyword) and n.arg == "maxlen" for s in statements for n in walk(s))
