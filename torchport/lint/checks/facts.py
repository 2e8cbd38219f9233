"""What the checks of one file share: its values, how often its places run, its calls by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchport.analysis.evaluate import Flow
from torchport.analysis.hot import Heat, Heats
from torchport.analysis.scopes import FUNCTIONS, Tree
from torchport.analysis.values import UNKNOWN, Origin, Value
from torchport.model import Effect, Finding, Rule
from torchport.rewrite.context import Context


class Facts:
    """Everything is found out when a check asks for it."""

    def __init__(self, tree: Tree, path: str = "", loaded: frozenset[str] = frozenset()) -> None:
        self.tree = tree
        self.is_test = _is_test_file(path) and any(map(_tests, (*tree.definitions, *tree.imports)))
        self.flow = Flow(tree)
        self.heats = Heats(self.flow, loaded)
        self._heat: dict[ast.AST, Heat] = {}
        self.varying: dict[ast.AST, Origin] = {}
        """Where the changes of a number come from, as far as a check has asked."""
        self.numbered: list[tuple[ast.expr, list[ast.expr]]] | None = None
        """Places with numbers that may be others in each step, once a check has asked for them."""
        self.unsteady: dict[object, bool] = {}
        """Whether a name, or an attribute of a class, may be a number that changes, by its form alone."""

    @cached_property
    def indexed(self) -> list[ast.Subscript]:
        """Subscripts without those of types, ``Optional[int]``."""
        return [node for node in self.tree.every(ast.Subscript) if not self.flow.is_defined(node.value)]

    def named(self, *names: str) -> list[ast.Call]:
        """Calls whose last part is one of ``names``."""
        called = self.tree.called()
        return [call for name in names if name in called for call in called[name]]

    def value(self, node: ast.expr | None) -> Value:
        """What ``node`` may be."""
        try:
            return self.flow.value(node)
        except RecursionError:
            self.flow.forget()
            return UNKNOWN

    def heat(self, node: ast.AST) -> Heat:
        """How often ``node`` runs; of a file of tests only what stands in a loop that trains counts as a step."""
        if node not in self._heat:
            try:
                self._heat[node] = self._in_test(node) if self.is_test else self.heats.heat(node)
            except RecursionError:
                self.flow.forget()
                self._heat[node] = ""
        return self._heat[node]

    def _in_test(self, node: ast.AST) -> Heat:
        if not any(parent in self.heats.loops and self._trains(parent) for parent in self.tree.ancestors(node)):
            return ""
        return self.heats.heat(node)

    def _trains(self, loop: ast.AST) -> bool:
        return any(loop in self.tree.ancestors(call) for call in self.named("backward"))


def _is_test_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name == "conftest.py" or name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))


def _tests(node: ast.AST) -> bool:
    """``def test_loss():`` and ``import pytest``: a script that tests a model is called ``test_net.py`` as well."""
    if isinstance(node, FUNCTIONS):
        return node.name.startswith("test_")
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")]
    return any((name or "").partition(".")[0] in ("pytest", "unittest") for name in names)


def moved_after(tree: Tree, node: ast.AST) -> bool:
    """``x[i].to(device)``: what is moved afterwards is on the host."""
    parent = tree.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in ("to", "cuda")


def statements(turn: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a loop or function, without those of functions and classes inside it."""
    stack: list[ast.AST] = [*reversed(turn.body)]  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        inner = (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.stmt | ast.ExceptHandler | ast.match_case))
        stack += reversed(list(inner))


_LATEST: list[Facts] = []


def facts(context: Context) -> Facts:
    """The facts of the file that is looked at; those of the file before are let go."""
    if not _LATEST or _LATEST[0].tree is not context.tree:
        _LATEST[:] = [Facts(context.tree, context.path, context.project.loaded)]
    return _LATEST[0]


def report(
    rule: Rule, context: Context, node: ast.expr | ast.stmt, reason: str = "", *, perhaps: bool = False,
    effect: Effect | None = None,
) -> Finding:  # fmt: skip
    """A finding that is left for a person."""
    finding = context.leave(rule, node, reason or rule.reason, effect=effect)
    return finding._replace(perhaps=True) if perhaps else finding
