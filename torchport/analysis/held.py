"""Values that several files share: what one of them cannot move, the others leave."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator

from torchport.analysis.build import build
from torchport.analysis.devices import SETTINGS, Key, Use
from torchport.analysis.flows import ADDED_OPTIONS, option
from torchport.analysis.groups import Groups, Members, grouped
from torchport.analysis.names import chain, qualify
from torchport.analysis.parameters import Signatures, last_name
from torchport.analysis.scopes import Tree
from torchport.analysis.uses import find_uses
from torchport.lazy import NamedTuple, pattern
from torchport.project.paths import stem_of

LINE = pattern(r"@(\d+)@")
ELSEWHERE = "it carries one value with {!r} in {}, line {}, which cannot be rewritten: {}"


class Held(NamedTuple):
    """A shared name whose value cannot move: of an attribute, a constant, or ``function(parameter)``."""

    name: str
    path: str
    line: int
    reason: str


def held_names(text: str, path: str) -> list[Held]:
    """The shared names of one file whose groups stay; none where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = build(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    signatures = Signatures(tree)
    groups, members = grouped(tree, tree, find_uses(tree, signatures), signatures)
    own = {name for name, _ in _options(tree)}
    found = []
    for name, key in _shared(tree, path):
        blocker = _blocker(members.get(groups.find(key), []))
        if blocker is not None and name not in own:  # who makes an option reads it as well, most likely
            found.append(Held(name, path, blocker.text.line, LINE.sub(r"\1", blocker.reason)))
    return list({item.name: item for item in found}.values())


def hold_with_others(tree: Tree, path: str, groups: Groups, members: Members, held: Iterable[Held]) -> None:
    """Make fast the groups of this file whose shared names another file holds."""
    known = {item.name: item for item in held if item.path != path}
    if not known:
        return
    for name, key in _shared(tree, path):
        group = members.get(groups.find(key), [])
        if name in known and group and _blocker(group) is None:
            _hold(group, known[name])
    for group in members.values():
        for use in group:
            if (name := _handed_to(tree, use)) in known and use.role != "fixed":
                _hold([use], known[name])


def _hold(group: list[Use], item: Held) -> None:
    for use in group:
        use.role, use.reason = "fixed", ELSEWHERE.format(item.name, item.path, item.line, item.reason)


def _blocker(group: list[Use]) -> Use | None:
    return next((use for use in group if use.role == "fixed"), None)


def _handed_to(tree: Tree, use: Use) -> str:
    """``library.run(device)`` for the text of ``run(device="cuda")``, where ``run`` is imported from ``library``."""
    call = use.consumer
    if use.role != "argument" or not isinstance(call, ast.Call):
        return ""
    keyword = next((k.arg for k in call.keywords if use.text.node in ast.walk(k.value)), None)
    found = qualify(tree, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
    return f"{'.'.join(found.name.split('.')[-2:])}({keyword})" if found is not None else ""


def _shared(tree: Tree, path: str) -> Iterator[tuple[str, Key]]:
    """Names through which other files may have the value of a key, and the key."""
    yield from _options(tree)
    for attribute in tree.attributes:
        parts = chain(attribute.value)
        if parts and SETTINGS.search(parts[-1]):
            yield attribute.attr, ("attribute", attribute.attr)
    for around in tree.classes:
        if SETTINGS.search(around.name):
            targets = [getattr(s, "target", None) or getattr(s, "targets", [None])[0] for s in around.body]
            yield from ((t.id, ("attribute", t.id)) for t in targets if isinstance(t, ast.Name))
    stem = stem_of(path)
    for name, bindings in tree.scope.names.items():
        binding = bindings[0]
        if binding.kind == "import" and not binding.target.startswith("torch"):
            yield ".".join(binding.target.split(".")[-2:]), (id(tree.scope), name)
        elif binding.kind == "assign":
            yield f"{stem}.{name}", (id(tree.scope), name)
    for definition in tree.definitions:
        owner = tree.parents[definition]
        makes = isinstance(owner, ast.ClassDef) and definition.name == "__init__"
        name = owner.name if makes and isinstance(owner, ast.ClassDef) else definition.name
        if makes or owner is tree.module:
            arguments = definition.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield f"{stem}.{name}({argument.arg})", (id(tree.scopes[definition]), argument.arg)


def _options(tree: Tree) -> Iterator[tuple[str, Key]]:
    for call in tree.calls:
        if last_name(call.func) in ADDED_OPTIONS:
            yield from ((key[1], key) for key in option(call))
