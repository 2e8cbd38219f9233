"""Where a new import goes: next to the import of torch that serves the same uses, and before all of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchport.analysis.scopes import FUNCTIONS, Binding, Tree
from torchport.model import Edit, Finding
from torchport.rewrite.spelling import IMPORTS, SHIM
from torchport.rewrite.text import Text

WANTED = '# noqa: F401  makes the device "xla" known'
"""What is said of an import whose name is not used."""


def shim_name(tree: Tree) -> str:
    """``shim``, or ``torchport_shim`` in a file that binds that name itself."""
    for scope in {tree.scope, *tree.scopes.values()}:
        for binding in scope.names.get("shim", ()):
            if binding.target != SHIM:
                return "torchport_shim"
    return "shim"


def new_imports(tree: Tree, text: Text, findings: Sequence[Finding], shim: str) -> list[Edit]:
    """The import statements that the new text of ``findings`` needs, each once. ``shim`` is the name of the shim."""
    edits: list[Edit] = []
    for module, statement in IMPORTS.items():
        starts = sorted(f.edits[0].start for f in findings if module in f.needs and f.edits)
        if starts:
            name = shim if module == SHIM else module.partition(".")[0]
            line = f"{statement} as {shim}" if module == SHIM and shim != "shim" else statement
            edits += _Placement(tree, text, name, module, line).edits(starts)
    return _joined(edits)


def kept_imports(tree: Tree, text: Text) -> list[Edit]:
    """Says of an import of torch_xla that serves only to make the device known that it is wanted."""
    used = "torch_xla" in tree.chains()
    edits = []
    for node in tree.imports:
        if not used and text.of(node) == IMPORTS["torch_xla"]:
            end = text.span(node)[1]
            if text.line_end(end) == end:
                edits.append(Edit(end, end, f"  {WANTED}"))
    return edits


def written_here(tree: Tree) -> bool:
    """Whether the file imports of torch_xla only what a migration writes: what that left for a person is still left."""
    statements = {ast.unparse(node) for node in tree.imports if "torch_xla" in ast.unparse(node)}
    return statements <= set(IMPORTS.values())


def _joined(edits: list[Edit]) -> list[Edit]:
    """Imports for one place become one edit, since two insertions there would have no order."""
    found: dict[int, str] = {}
    for edit in edits:
        found[edit.start] = found.get(edit.start, "") + edit.text
    return [Edit(start, start, text) for start, text in sorted(found.items())]


class _Placement:
    """Finds for each use the import of torch that it rests on."""

    def __init__(self, tree: Tree, text: Text, name: str, module: str, line: str) -> None:
        self.tree, self.text, self.name, self.module, self.line = tree, text, name, module, line
        self.bodies = [(node, self._body(node)) for node in tree.definitions]
        self.starts: list[int] = []
        self.torch = [node for node in tree.imports if _imports_torch(node) and not _for_types(tree, node)]

    def edits(self, starts: list[int]) -> list[Edit]:
        """Each import once, at most one for the uses of a block."""
        self.starts = starts
        groups: dict[ast.stmt | None, list[int]] = {}
        for start in starts:
            if not self._bound(start):
                groups.setdefault(self._anchor(start), []).append(start)
        found = [self._at(anchor, uses) for anchor, uses in groups.items()]
        return sorted(set(found), key=lambda edit: edit.start)

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
        """The span that runs when the function is called: neither its defaults nor its decorators."""
        return self.text.span(node.body[0])[0], self.text.span(node)[1]

    def _functions(self, start: int) -> list[ast.AST]:
        """Functions whose bodies hold ``start``, the innermost first."""
        holding = [(span[0], node) for node, span in self.bodies if span[0] <= start < span[1]]
        return [node for _, node in sorted(holding, key=lambda pair: -pair[0])]

    def _bound(self, start: int) -> bool:
        """Whether the module is imported already where ``start`` stands."""
        functions = self._functions(start)
        homes = [self.tree.scope, *(self.tree.scopes[node] for node in functions)]
        nodes = [b.node for home in homes for b in home.names.get(self.name, ()) if self._imports(b)]
        imports = [node for node in nodes if isinstance(node, ast.stmt)]
        return any(self.text.span(node)[1] <= start or (functions and self._is_top(node)) for node in imports)

    def _imports(self, binding: Binding) -> bool:
        """``import torch.nn`` binds ``torch`` as well; a submodule has to be imported by its own name."""
        if "." not in self.module or self.module == SHIM:
            return binding.target == self.module
        return isinstance(binding.node, ast.Import) and any(a.name == self.module for a in binding.node.names)

    def _is_top(self, node: ast.stmt) -> bool:
        return self.tree.parents[node] is self.tree.module

    def _anchor(self, start: int) -> ast.stmt | None:
        """The import of torch next to which to import for this use; None for the head of the module."""
        for node in self.torch:
            if self.tree.parents[node] is self.tree.module:
                return self._last_of_run(node)
        for function in self._functions(start):
            uses = [use for use in self.starts if function in self._functions(use)]
            for node in self.torch:
                if self.tree.function(node) is function and self.text.span(node)[0] < uses[0]:
                    return node if self._only_way(node) else None
        for node in self.torch:
            inside = any(isinstance(n, (*FUNCTIONS, ast.ClassDef)) for n in self.tree.ancestors(node))
            if not inside and (self._functions(start) or self.text.span(node)[0] < start):
                return node if self._only_way(node) else None
        return None

    def _only_way(self, node: ast.stmt) -> bool:
        """Whether no other branch of the statement around the import does without it and goes on all the same."""
        for around in self.tree.ancestors(node):
            if isinstance(around, ast.If) and around.orelse:
                return False
            if isinstance(around, ast.Try):
                others = [n for part in (*around.handlers, *around.orelse) for n in ast.walk(part)]
                if node in others or any(n in self.torch for n in others):
                    return False
            if isinstance(around, (*FUNCTIONS, ast.ClassDef)):
                break
        line = self.text.line_text(node.lineno).lstrip()
        return line.startswith((b"import", b"from"))

    def _last_of_run(self, node: ast.stmt) -> ast.stmt:
        """The last import of torch in the run of imports that begins with ``node``, as sorted imports want it."""
        body = self.tree.module.body
        last = node
        for statement in body[body.index(node) :]:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                break
            if statement in self.torch:
                last = statement
        return last

    def _at(self, anchor: ast.stmt | None, uses: list[int]) -> Edit:
        if anchor is None:
            return self._head(uses)
        end = self.text.line_end(self.text.span(anchor)[1])
        same_line = [use for use in uses if self.text.span(anchor)[0] <= use < end]
        local = self.tree.function(anchor) is not None
        early = [use for use in uses if use < end and (local or not self._functions(use))]
        if same_line or not early:
            return self._before(anchor) if same_line else self._after(anchor)
        return self._before(self._statement(early[0]))

    def _statement(self, offset: int) -> ast.stmt:
        """The statement of the module that holds ``offset``."""
        return next(s for s in self.tree.module.body if _first_line(self.text, s) <= offset < self.text.span(s)[1])

    def _head(self, uses: list[int]) -> Edit:
        """After the imports at the head of the module; without any, after its docstring; before any use."""
        body = self.tree.module.body
        docstring = ast.get_docstring(self.tree.module, clean=False) is not None
        last: ast.stmt | None = None
        for statement in body[1:] if docstring else body:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                break
            last = statement
        if last is not None and not any(use < self.text.line_end(self.text.span(last)[1]) for use in uses):
            return self._after(last)
        if docstring and len(body) > 1 and last is None:
            edit = self._after(body[0])
            return Edit(edit.start, edit.end, self.text.newline(1) + edit.text)
        return self._before(body[0])

    def _after(self, statement: ast.stmt) -> Edit:
        place = self.text.line_end(self.text.span(statement)[1])
        newline, indent = self.text.newline(self.text.line(place)), self.text.indent(statement.lineno)
        return Edit(place, place, f"{newline}{indent}{self.line}")

    def _before(self, statement: ast.stmt) -> Edit:
        place = _first_line(self.text, statement)
        line = self.text.line(place)
        return Edit(place, place, f"{self.text.indent(line)}{self.line}{self.text.newline(line)}")


def _first_line(text: Text, statement: ast.stmt) -> int:
    """The start of the line on which a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return text.starts[min([statement.lineno, *(d.lineno for d in decorators)]) - 1]


def _imports_torch(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "torch" for alias in node.names)
    return not node.level and (node.module or "").partition(".")[0] == "torch"


def _for_types(tree: Tree, node: ast.AST) -> bool:
    """Whether the import stands in ``if TYPE_CHECKING:``, which does not run."""
    return any(
        isinstance(n, ast.If) and ast.unparse(n.test).rpartition(".")[2] == "TYPE_CHECKING"
        for n in tree.ancestors(node)
    )
