"""Functions that take an optimizer's step for a loop of another file: found by a byte search over a project's files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchport.analysis.parts import word_of
from torchport.analysis.scopes import Tree
from torchport.lazy import pattern

STEPS = (b".step(", b".update_params(")
OPTIMIZER = pattern(rb"(optim|scaler|(?<![a-z])opt)\w*(\[[^\]\n]*\])?$", re.IGNORECASE)
HEAD = pattern(rb"(?:async )?(def|for|while)\b[ \t]*(\w*)")
LOOP = b"for"
"""Stands for any loop where the name of a function may stand."""


def stepping(blob: bytes) -> set[str]:
    """Functions of ``blob`` that take a step outside any loop and that it does not call itself.

    Only names of two words or more: ``update`` and ``run`` are called of much else.
    """
    places = [place for word in STEPS for place in _places(blob, word)]
    steps = [place for place in places if OPTIMIZER.search(blob[max(place - 60, 0) : place])]
    around = {_around(blob, place) for place in steps}
    outermost = {name for function in around for name in _callers(blob, function)}
    return {name.decode() for name in outermost if b"_" in name.strip(b"_") and not name.startswith(b"test_")}


def turning(blob: bytes, names: Iterable[str]) -> set[str]:
    """Those of ``names`` that ``blob`` calls in a loop, through functions of its own as well."""
    return {
        name
        for name in names
        if f"{name}(".encode() in blob
        if any(LOOP in _callers(blob, _around(blob, place)) for place in _calls(blob, name.encode()))
    }


def steps_elsewhere(tree: Tree, names: Iterable[str]) -> Iterator[ast.Call]:
    """Calls of functions that take their steps in another file; what this file defines it shows itself."""
    for name in names:
        if all(map(_is_abstract, (d for d in tree.definitions if d.name == name))):
            yield from (call for call in tree.calls_of(name) if word_of(call.func) == name)


def _is_abstract(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is there to be overridden."""
    return all(
        isinstance(s, ast.Raise | ast.Pass) or isinstance(getattr(s, "value", None), ast.Constant)
        for s in function.body
    )


def _callers(blob: bytes, function: bytes) -> set[bytes]:
    """The outermost functions through which a file comes to ``function``, and ``LOOP`` where a loop is on the way."""
    found: set[bytes] = set()
    waiting, seen = [function], {b"", LOOP}
    found.update({function} & {LOOP})
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        around = {_around(blob, place) for place in _calls(blob, name)}
        found.update(around & {LOOP}, () if around else {name})
        waiting += around
    return found


def _calls(blob: bytes, name: bytes) -> Iterator[int]:
    """Where ``name(`` is called, and not that of a base class by ``super``."""
    for place in _places(blob, name + b"("):
        before = blob[max(place - 8, 0) : place]
        if not (before[-1:].isalnum() or before.endswith((b"_", b"def ", b"super()."))):
            yield place


def _places(blob: bytes, word: bytes) -> Iterator[int]:
    place = blob.find(word)
    while place >= 0:
        yield place
        place = blob.find(word, place + 1)


def _around(blob: bytes, place: int) -> bytes:
    """The name of the function around a place; ``LOOP`` where a loop is between, nothing at the level of the module."""
    start = blob.rfind(b"\n", 0, place) + 1
    limit = _indent(blob[start:place])
    while start and limit:
        end = start - 1
        start = blob.rfind(b"\n", 0, end) + 1
        line = blob[start:end]
        if (indent := _indent(line)) >= limit or not line.strip() or line.lstrip().startswith(b"#"):
            continue
        limit = indent
        head = HEAD.match(line, indent)
        if head and head[1] == b"def":
            return head[2]
        if head and b"optim" not in line:
            return LOOP
    return b""


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())
