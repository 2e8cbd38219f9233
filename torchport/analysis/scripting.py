"""What TorchScript compiles, as far as a file shows it: decorated or handed over, and all that it calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchport.analysis.names import qualify
from torchport.analysis.scopes import Tree, dotted, walk
from torchport.lazy import pattern
from torchport.project.paths import folder_of, stem_of

SCRIPTS = frozenset(
    f"torch.jit.{name}" for name in ("script", "script_method", "script_if_tracing", "export", "interface", "_overload")
)
NOT_COMPILED = frozenset(("torch.jit.unused", "torch.jit.ignore"))
HANDED = pattern(rb"\bjit\.script\(\s*([A-Za-z_][\w.]*)")
DECORATED = pattern(rb"^[ \t]*@[\w.]*\bjit\.script\w*[^\n]*\n", re.MULTILINE)
CALLED = pattern(rb"(?<![\w.])([A-Za-z_][\w.]*)\(")
UNINDENTED = pattern(rb"\n[^\s#)\]}]")
IMPORTED = pattern(rb"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
NAME = pattern(rb"([A-Za-z_]\w*)(?:[ \t]+as[ \t]+(\w+))?")
Compiled = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def scripted(tree: Tree, elsewhere: Iterable[str] = ()) -> list[Compiled]:
    """Functions and classes that are compiled; ``elsewhere`` are names of the file that another file compiles."""
    nodes: list[Compiled] = [*tree.definitions, *tree.classes]
    names = {*elsewhere}
    found: list[Compiled] = []
    for node in nodes:
        decorators = _qualified(tree, node.decorator_list)
        if decorators & SCRIPTS or (
            isinstance(node, ast.ClassDef) and "torch.jit.ScriptModule" in _qualified(tree, node.bases)
        ):
            found.append(node)
        if "torch.jit._overload" in decorators:
            names.add(node.name)  # what is compiled has the same name and follows
    for call in tree.calls_of("script"):
        if "torch.jit.script" in _qualified(tree, [call.func]):
            names |= {name for argument in call.args for name in _handed_over(tree, argument)}
    found += [
        n for n in nodes if n not in found and n.name in names and tree.function(n) is None and tree.owner(n) is None
    ]
    return _with_callees(tree, found, nodes)


def scripted_names(blob: bytes) -> set[tuple[str, str]]:
    """Functions and classes that a file imports and has compiled, each with the last name of its module."""
    asked = set(HANDED.findall(blob))
    for match in DECORATED.finditer(blob):
        head = blob.find(b":\n", match.end())
        end = UNINDENTED.search(blob, head if head != -1 else match.end())
        asked |= {*CALLED.findall(blob, match.end(), end.start() if end else len(blob))}
    found = set()
    for match in IMPORTED.finditer(blob) if asked else ():
        module = match[1].rpartition(b".")[2]
        for name, other in NAME.findall(match[2]):
            here = other or name
            found |= {(name, module)} if here in asked else set()
            found |= {(called[len(here) + 1 :], name) for called in asked if called.startswith(here + b".")}
    return {(name.decode(), module.decode()) for name, module in found if b"." not in name}


def compiled_elsewhere(known: Iterable[tuple[str, str]], path: str) -> set[str]:
    """Names of the file at ``path`` that other files have compiled."""
    home = stem_of(path), folder_of(path)
    return {name for name, module in known if module in home}


def _qualified(tree: Tree, nodes: Iterable[ast.expr]) -> set[str]:
    plain = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute)]
    return {found.name for n in plain if (found := qualify(tree, n)) is not None}


def _handed_over(tree: Tree, argument: ast.expr) -> Iterator[str]:
    """``f`` of ``script(f)``, ``Net`` of ``script(Net())`` and of ``net = Net()`` before ``script(net)``."""
    if isinstance(argument, ast.Call):
        yield dotted(argument.func)
    elif isinstance(argument, ast.Name):
        yield argument.id
        for assign in tree.every(ast.Assign):
            if isinstance(assign.value, ast.Call) and any(dotted(t) == argument.id for t in assign.targets):
                yield dotted(assign.value.func)


def _with_callees(tree: Tree, found: list[Compiled], nodes: list[Compiled]) -> list[Compiled]:
    """Those and what of the file they call, make or derive from, however deep."""
    if not found:
        return found
    for node in found:
        called = {dotted(n.func) for n in walk(node) if isinstance(n, ast.Call)}
        called |= {dotted(base) for base in node.bases} if isinstance(node, ast.ClassDef) else set()
        owner = tree.owner(node)
        for other in nodes:
            around = tree.owner(other)
            reached = around is owner if around is not None else tree.function(other) in (None, node)
            name = other.name if around is None else f"self.{other.name}"
            if (
                reached
                and name in called
                and other not in found
                and not _qualified(tree, other.decorator_list) & NOT_COMPILED
            ):
                found.append(other)
    return found
