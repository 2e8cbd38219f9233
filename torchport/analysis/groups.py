"""Which uses of device texts carry one value, and so move together or not at all."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from torchport.analysis.arguments import ASKED, METHOD
from torchport.analysis.carriers import carriers
from torchport.analysis.devices import Key, Use, key_of
from torchport.analysis.flows import SAME, same_values, scope_around
from torchport.analysis.names import line_mark
from torchport.analysis.parameters import Signatures
from torchport.analysis.scopes import Tree

TESTS = ("test", "slice", "case", "member", "key")
"""Roles of texts that are held against a value: they stay what they were where there is no accelerator."""
NUMBERED = "it asks for one GPU by its number; on a TPU every process has one device"
SPLICED = "it becomes a part of the name of an attribute, which is the same on every device"
KNOWS_XLA = "this file has a branch or an entry for XLA or TPUs of its own, which would no longer be reached"
NAMES_ATTRIBUTE = ("getattr", "hasattr", "setattr", "delattr")
Members = dict[Key | int, list[Use]]


class Groups:
    """Union-find over keys, so that what carries one value is found together."""

    def __init__(self) -> None:
        self.parent: dict[Key, Key] = {}

    def find(self, key: Key) -> Key:
        """The representative of the group of ``key``."""
        self.parent.setdefault(key, key)
        while self.parent[key] != key:
            self.parent[key] = self.parent[self.parent[key]]
            key = self.parent[key]
        return key

    def join(self, keys: tuple[Key, ...]) -> None:
        """Put all ``keys`` in one group."""
        if len(keys) > 1:
            first = self.find(keys[0])
            for key in keys[1:]:
                self.parent[self.find(key)] = first


def grouped(tree: Tree, original: Tree, uses: list[Use], signatures: Signatures) -> tuple[Groups, Members]:
    """The uses by group. ``original`` is the file before the run, which says whether it knows XLA itself."""
    groups, members = Groups(), defaultdict[Key | int, list[Use]](list)
    if not uses:
        return groups, members
    for keys in same_values(tree, signatures):
        groups.join(keys)
    at: dict[ast.AST, Use] = {use.text.node: use for use in uses}
    for use in uses:
        groups.join(use.keys)
        if use.role == "key":
            _check_lookups(tree, use, groups, at)
    yardsticks, knows_xla = _yardsticks(tree), _knows_xla(original)
    in_names = {groups.find(key): reason for key, reason in _in_attribute_names(tree)}
    for number, use in enumerate(uses):
        _check_test(use, knows_xla)
        if in_names and use.keys and (reason := in_names.get(groups.find(use.keys[0]))):
            use.role, use.reason = "fixed", reason
        use.yardstick = not yardsticks.isdisjoint(use.keys)
        members[groups.find(use.keys[0]) if use.keys else number].append(use)
    return groups, members


def _knows_xla(tree: Tree) -> bool:
    """Whether the file itself tells "xla" or "tpu" apart, in a test or as a key."""
    sides = [s for node in tree.every(ast.Compare) for s in (node.left, *node.comparators)]
    sides += [e for s in sides if isinstance(s, ast.Tuple | ast.List | ast.Set) for e in s.elts]
    sides += [key for node in tree.every(ast.Dict) for key in node.keys if key is not None]
    return any(isinstance(s, ast.Constant) and s.value in ("xla", "tpu") for s in sides)


def _in_attribute_names(tree: Tree) -> Iterator[tuple[Key, str]]:
    """Keys of which ``getattr(event, f"self_{device}_time")`` makes the name of an attribute, and why they stay.

    ``getattr(torch, device)`` is a module, of which another rule speaks.
    """
    for call in tree.calls:
        func = call.func
        if isinstance(func, ast.Name) and func.id in NAMES_ATTRIBUTE and len(call.args) > 1:
            owner, name = call.args[:2]
        elif isinstance(func, ast.Attribute) and getattr(func.value, "attr", "") == "__dict__" and call.args:
            owner, name = func, call.args[0]  # module.__dict__.pop(name)
        else:
            continue
        if isinstance(name, ast.Constant) or (isinstance(owner, ast.Name) and owner.id == "torch"):
            continue
        whole = METHOD if isinstance(func, ast.Name) and func.id != "hasattr" else ASKED
        scope, reason = scope_around(tree, call), whole if isinstance(name, ast.Name | ast.Attribute) else SPLICED
        for node in ast.walk(name):
            if isinstance(node, ast.Name | ast.Attribute) and (key := key_of(tree, node, scope)) is not None:
                yield key, reason


def _check_test(use: Use, knows_xla: bool) -> None:
    """Tests that name one GPU, or stand beside one for XLA, cannot be said of another accelerator."""
    if use.role in TESTS and knows_xla:
        use.role, use.reason = "fixed", KNOWS_XLA
    if use.role in TESTS and use.text.index:
        use.role, use.reason = "fixed", NUMBERED


def _yardsticks(tree: Tree) -> set[Key]:
    """Variables and attributes that another value is compared with, none of the two being a text on the spot."""
    found: set[Key] = set()
    for node in tree.every(ast.Compare):
        sides = [node.left, *node.comparators]
        if all(isinstance(o, SAME) for o in node.ops) and not any(isinstance(side, ast.Constant) for side in sides):
            scope = scope_around(tree, node)
            found.update(key for side in sides if (key := key_of(tree, side, scope)) is not None)
    return found


def _check_lookups(tree: Tree, use: Use, groups: Groups, at: dict[ast.AST, Use]) -> None:
    """A key moves only where every look-up in its dictionary is by a device, whose group it then joins."""
    if not isinstance(tree.parents[use.consumer], ast.Assign):
        return
    if isinstance(use.consumer, ast.Call):
        use.role = "fixed"
    for node in tree.names:
        scope = tree.scopes.get(node) or tree.scope
        if not isinstance(node.ctx, ast.Load) or key_of(tree, node, scope) not in use.keys:
            continue
        index = _index(tree, node)
        if index is None:
            use.role, use.reason = "fixed", f"its dictionary is also read in another way, on {line_mark(node.lineno)}"
        elif (constant := at.get(index)) is not None:
            constant.role, constant.keys, constant.reason = "key", use.keys, ""
        else:
            groups.join((use.keys[0], *carriers(tree, index, scope)))


def _index(tree: Tree, node: ast.expr) -> ast.expr | None:
    """What a dictionary is read by, ``table[x]``, ``table.get(x)`` or ``x in table``; None where it is not read so."""
    parent = tree.parents[node]
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return parent.slice
    if isinstance(parent, ast.Compare) and parent.comparators == [node]:
        return parent.left
    call = tree.parents[parent]
    if isinstance(parent, ast.Attribute) and parent.attr == "get" and isinstance(call, ast.Call) and call.args:
        return call.args[0]
    return None
