"""Where code runs once per step: in a loop that trains or evaluates, in a ``forward``, in what these call."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import Literal

from torchport.analysis.calling import returned
from torchport.analysis.evaluate import Flow
from torchport.analysis.index import Function
from torchport.analysis.loops import OPTIMIZER, SCHEDULER
from torchport.analysis.names import chain
from torchport.analysis.reaching import LOOPS
from torchport.analysis.scopes import FUNCTIONS, Scope, walk
from torchport.analysis.wording import is_host_class, is_host_function, is_rare

Heat = Literal["", "computes", "step"]
STEPS = frozenset(("forward", "training_step", "validation_step", "compute_loss", "train_step", "training_losses"))
TESTS = frozenset(("simple_test", "aug_test", "forward_test"))
"""Methods of detectors and segmenters that give their result as arrays."""
OTHER_DEVICES = frozenset(("mps", "cpu", "npu", "xpu", "hpu", "meta"))
SIGNS = frozenset(("backward", "manual_backward", "training_step", "autograd"))
HOLD_MODELS = frozenset(("module", "values", "indices"))
"""Attributes, other than those of a class of the file, under which the flow analysis may find a model."""
SETTLES: frozenset[type[ast.AST]] = frozenset(
    (
        *(ast.Module, ast.ClassDef, *FUNCTIONS, *LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar),
        *(ast.ExceptHandler, ast.match_case, ast.Raise, ast.Assert, ast.IfExp, ast.Call),
    )
)
"""Nodes that tell how often what is in them runs, or that hold a block of statements."""
ABNORMAL = frozenset(("isnan", "isfinite", "isinf"))


class Heats:
    """How often the places of one file run."""

    def __init__(self, flow: Flow, loaded: frozenset[str] = frozenset()) -> None:
        self.flow, self.tree = flow, flow.tree
        self.loaded = loaded
        """Functions that data sets of other files call."""
        self._functions: dict[ast.AST, Heat] = {}
        self._open = 0
        """Functions that are looked at just now: what is found meanwhile may rest on half of the answer."""
        self._statements: dict[ast.AST, Heat] = {}
        self._tests: dict[ast.AST, bool] = {}
        self._turns_back: dict[ast.AST, ast.stmt | None] = {}

    def heat(self, node: ast.AST) -> Heat:
        """Whether ``node`` runs once per step, and how well that is known; nothing where a guard makes it rare."""
        parents, known = self.tree.parents, self._statements
        passed = []
        child = node
        found: Heat | None = None
        while found is None:
            if isinstance(child, ast.stmt):
                found = known.get(child)
                if found is not None:
                    break
                passed.append(child)
            parent = parents.get(child)
            if parent is None:
                found = ""
            else:
                found = self._settled(parent, child) if parent.__class__ in SETTLES else None
                child = parent
        if not self._open:
            known.update(dict.fromkeys(passed, found))
        return found

    def _settled(self, parent: ast.AST, child: ast.AST) -> Heat | None:
        """How often ``child`` runs, where its parent tells."""
        if isinstance(parent, ast.Call):
            return "" if getattr(parent.func, "attr", "") == "warn" else None
        if isinstance(parent, (ast.If, ast.IfExp)):
            if _is_main(parent) or (child is not parent.test and self._rare(parent, child)):
                return ""
        elif isinstance(parent, (ast.ExceptHandler, ast.Raise)):
            return ""
        elif isinstance(parent, ast.Assert):
            return "" if child is parent.msg else None
        if self._skipped(parent, child):
            return ""
        if isinstance(parent, LOOPS):
            turns = child in parent.body or child is getattr(parent, "test", None)
            return "step" if turns and parent in self.loops else None
        if isinstance(parent, FUNCTIONS):
            return self.function(parent) if child in parent.body else ""
        return None

    def _rare(self, branch: ast.If | ast.IfExp, child: ast.AST) -> bool:
        """Whether the branch of an ``if`` that holds ``child`` runs seldom."""
        if child in branch.orelse if isinstance(branch.orelse, list) else child is branch.orelse:
            return False
        if branch not in self._tests:
            self._tests[branch] = self.rare_test(branch.test)
        return self._tests[branch]

    def _skipped(self, parent: ast.AST, child: ast.AST) -> bool:
        """Whether ``if step % 100: continue`` comes before ``child`` in the same block."""
        if parent not in self._turns_back:
            body = getattr(parent, "body", None)
            first = next(filter(_turns_back, body), None) if isinstance(body, list) else None
            self._turns_back[parent] = first
        first = self._turns_back[parent]
        if first is None:
            return False
        body = parent.body  # type: ignore[attr-defined]
        return child in body and body.index(child) > body.index(first)

    def rare_test(self, test: ast.expr, deep: bool = True) -> bool:
        """``step % 100 == 0``, ``if debug``, ``if isnan(loss)``, or a name that was given such a value."""
        match test:
            case ast.BoolOp(op=ast.And()):
                return any(self.rare_test(value, deep) for value in test.values)
            case ast.BoolOp():
                return all(self.rare_test(value, deep) for value in test.values)
            case ast.UnaryOp(op=ast.Not()):
                inner = test.operand
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                    return _wide(inner)
                if isinstance(inner, ast.Attribute) and inner.attr in ("training", "is_cuda"):
                    return inner.attr == "is_cuda"
                return bool(ABNORMAL & _called_names(inner))
            case ast.Compare(ops=[ast.Eq()]):
                sides = [test.left, *test.comparators]
                if is_float16(test):
                    return True
                for side in sides:
                    if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod):
                        return _wide(side)
                    if isinstance(side, ast.Constant) and side.value in OTHER_DEVICES:
                        return True
                counted = [self.flow.value(side) for side in sides]
                return any(v.kind == "number" and v.origin == "loop" for v in counted) and all(
                    v.kind in ("number", "unknown") for v in counted
                )
            case ast.Call() | ast.Compare():
                nodes = walk(test)
                if any(isinstance(n, ast.Constant) and n.value in OTHER_DEVICES for n in nodes):
                    operators = [op for n in nodes if isinstance(n, ast.Compare) for op in n.ops]
                    return not any(isinstance(op, ast.NotEq | ast.NotIn) for op in operators)
                if ABNORMAL & _called_names(test):
                    return True
                return any(is_rare(part) for part in chain(getattr(test, "func", test)))
            case ast.Name():
                if is_rare(test.id):
                    return True
                if deep:
                    values = self.flow.made_by(test)
                    return bool(values) and all(self.rare_test(v, False) for v in values)
            case ast.Attribute():
                return is_rare(test.attr)
        return False

    def function(self, node: Function) -> Heat:
        """Whether a function runs once per step."""
        if node not in self._functions:
            self._functions[node] = ""
            self._open += 1
            try:
                self._functions[node] = self._function(node)
            finally:
                self._open -= 1
        return self._functions[node]

    def _function(self, node: Function) -> Heat:
        owner = self.tree.parents[node]
        if any((chain(d) or [""])[-1] == "script_if_tracing" for d in node.decorator_list):
            return ""
        if isinstance(owner, ast.ClassDef):
            if is_host_class(owner.name) or any(is_host_class((chain(b) or [""])[-1]) for b in owner.bases):
                return ""
            if node.name in STEPS and (owner in self.flow.modules or node.name != "forward" or _is_autograd(owner)):
                return "step"
            if node.name in ("forward", "backward") and _is_autograd(owner):
                return "step"
        if node.name in TESTS or (node.name == "inference" and not any(isinstance(n, LOOPS) for n in walk(node))):
            return ""  # one answer, handed over at the end
        sites = self._sites(node)
        heats = [self.heat(site) for site in sites]
        if heats:
            most = max(heats, key=("", "computes", "step").index)
            return "" if most == "computes" and self._holds_loop(node) else most
        if is_host_function(node.name) or self._holds_loop(node):
            return ""
        if (
            isinstance(owner, ast.Module | ast.ClassDef)
            and node.name.startswith("_") is False
            and node in self.stepping
            and _takes_something(node)
        ):
            return "step"
        return "computes" if node.name not in self.loaded and self._computes(node) else ""

    def _holds_loop(self, node: Function) -> bool:
        """Whether a function has a loop of steps itself: what stands around the loop runs once for all of them."""
        self._find()
        return node in self._with_loops

    def _sites(self, node: Function) -> list[ast.AST]:
        """Where this file runs a function, also as a closure that it hands on."""
        sites: list[ast.AST] = list(self.flow.callers.get(node, ()))
        if not isinstance(self.tree.parents[node], ast.ClassDef):
            for use in self.flow.uses(self.tree.scopes[node].parent, node.name):
                around = self.tree.parents[use]
                if isinstance(around, ast.Call) and use in around.args:
                    sites.append(around)
                elif isinstance(around, ast.keyword):
                    sites.append(self.tree.parents[around])
        return sites

    def _computes(self, node: Function) -> bool:
        """A function that is given tensors and gives tensors back, and that is not called here."""
        if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
            return False
        home = self.tree.scopes[node]
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        given = (self.flow.parameter(home, argument.arg) for argument in arguments)
        if not any(value.is_tensor or value.kind == "unknown" for value in given):
            return False
        result = returned(self.flow, node)
        if not (result.on_device or any(item.on_device for item in result.items)):
            return False
        calls = self.flow.own_calls.get(node, ()) if self.flow.has_arrays else ()
        return not any(self.flow.name_of(call.func).startswith("numpy.") for call in calls)

    @cached_property
    def signs(self) -> list[ast.Call]:
        """Calls that belong to a step: backward, the step of an optimizer, the call of a model."""
        found = []
        modules = self.flow.modules
        for call in self.tree.calls:
            func = call.func
            if isinstance(func, ast.Attribute):
                if func.attr in SIGNS:
                    found.append(call)
                    continue
                if func.attr == "step" and self._steps(call, func):
                    found.append(call)
                    continue
                owner = self.flow.class_of(func.value)
                if owner in modules:
                    continue  # a layer that a module calls is a part of the module's own step
                if owner is None and func.attr not in HOLD_MODELS:
                    continue
            elif not isinstance(func, ast.Name) or self._is_defined(func, self.tree.scopes[call]):
                continue
            elif func.id != "self" and self._in_module(self.tree.scopes[call]):
                continue  # as is one under a name
            handed = [*call.args, *(k.value for k in call.keywords)]
            if handed and self.flow.value(func).kind == "model":
                given = self.flow.value(handed[0])
                if given.is_tensor or given.kind in ("unknown", "dict", "list"):
                    found.append(call)
        return found

    @staticmethod
    def _is_defined(name: ast.Name, scope: Scope) -> bool:
        """Whether a name stands for a builtin, or for functions and classes of the file alone: these are no models."""
        home = scope.find(name.id)
        return home is None or all(binding.kind in ("def", "class") for binding in home.names[name.id])

    def _in_module(self, scope: Scope | None) -> bool:
        """Whether a scope belongs to a module."""
        while scope is not None:
            if scope.kind == "class" and scope.node in self.flow.modules:
                return True
            scope = scope.parent
        return False

    def _steps(self, call: ast.Call, func: ast.Attribute) -> bool:
        name = (chain(func.value) or [""])[-1]
        if SCHEDULER.search(name):
            return False
        return self.flow.value(func.value).kind == "optimizer" or bool(OPTIMIZER.search(name))

    @cached_property
    def stepping(self) -> set[ast.AST]:
        """Functions that do a part of a step outside of any loop of their own: a call of one is a sign as well."""
        self._find()
        return self._stepping

    @cached_property
    def loops(self) -> set[ast.AST]:
        """The innermost loops around the signs of a step."""
        self._find()
        return self._loops

    def _find(self) -> None:
        if hasattr(self, "_with_loops"):
            return
        self._loops: set[ast.AST] = set()
        self._stepping: set[ast.AST] = set()
        waiting: list[ast.AST] = list(self.signs)
        modules = self.flow.modules
        around: set[ast.AST] = set()
        while waiting:
            sign = waiting.pop()
            for parent in self.tree.ancestors(sign):
                if isinstance(parent, LOOPS) and not self._over_modules(parent):
                    self._loops.add(parent)
                    if (function := self.tree.function(parent)) is not None:
                        around.add(function)
                    break
                if isinstance(parent, FUNCTIONS) and not (parent in around or is_host_function(parent.name)):
                    owner = self.tree.parents[parent]
                    is_forward = isinstance(owner, ast.ClassDef) and owner in modules and parent.name == "forward"
                    if parent not in self._stepping and not is_forward:
                        self._stepping.add(parent)
                        waiting += self._sites(parent)
                    break
        self._with_loops = around

    def _over_modules(self, loop: ast.AST) -> bool:
        """``for layer in self.layers`` and ``for optimizer in optimizers`` are parts of one step."""
        if not isinstance(loop, ast.For):
            return False
        turn = self.flow.iterated(loop.iter)
        return any(value.kind in ("model", "optimizer") for value in (turn, *(turn.items if turn.fixed else ())))


def is_float16(test: ast.expr) -> bool:
    """``x.dtype == torch.float16``, which holds for nothing on a TPU, where mixed precision is bfloat16."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq | ast.Is):
        return False
    names = {(chain(side) or [""])[-1] for side in (test.left, *test.comparators)}
    return "dtype" in names and not names.isdisjoint(("float16", "half"))


def _takes_something(node: Function) -> bool:
    return any(a.arg not in ("self", "cls", "args", "cfg", "config") for a in node.args.args)


def _is_main(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and getattr(node.test.left, "id", "") == "__name__"
    )


def _is_autograd(owner: ast.ClassDef) -> bool:
    return any((chain(base) or [""])[-1] == "Function" for base in owner.bases)


def _wide(node: ast.BinOp) -> bool:
    """``step % n``: not where ``n`` is one or two."""
    return not (isinstance(node.right, ast.Constant) and node.right.value in (1, 2))


def _called_names(node: ast.AST) -> set[str]:
    return {(chain(n.func) or [getattr(n.func, "attr", "")])[-1] for n in walk(node) if isinstance(n, ast.Call)}


def _turns_back(statement: ast.stmt) -> bool:
    """``if step % 100: continue`` and ``if not should_log(step): return``: the rest of the block runs seldom."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return isinstance(statement.body[-1], ast.Continue | ast.Return) and _mostly(statement.test)


def _mostly(test: ast.expr) -> bool:
    """A test that holds in most steps, by its form."""
    match test:
        case ast.BoolOp(op=ast.Or()):
            return any(map(_mostly, test.values))
        case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(left=ast.BinOp(op=ast.Mod()) as rest, ops=[ast.Eq()])):
            return _wide(rest)
        case ast.UnaryOp(op=ast.Not()):
            asked = test.operand.func if isinstance(test.operand, ast.Call) else test.operand
            return any(is_rare(part) for part in chain(asked))
        case ast.Compare(ops=[ast.NotEq() | ast.Gt()]):
            test = test.left
    return isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod)
