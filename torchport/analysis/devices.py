"""Where device strings stand, what each is used for, and which of them carry one value.

A *use* is the place of one device text. A *key* names a variable, a parameter, an attribute (``args.device``, by its
last name, for the whole file) or a dictionary. Uses that share a key form a group: they move together or not at all.
"""

from __future__ import annotations

import ast
from typing import Literal

from torchport.analysis.literals import DeviceText
from torchport.analysis.names import chain
from torchport.analysis.scopes import Scope, Tree
from torchport.lazy import words

Role = Literal["device", "to", "argument", "value", "test", "slice", "case", "member", "key", "fixed", "unknown"]
"""device: the argument of torch.device. to: the first argument of ``.to``. argument: any other argument that is a
device. value: kept in a variable, a default, a dictionary or returned. test: one side of a test, in whatever form.
slice: compared with the first letters of a name. case: a pattern of ``match``. member: an element of a collection of
device names. key: a key of a dictionary. fixed: stays as it is, and blocks its group. unknown: nothing shows that it
is a device."""

NAMED = words(
    r"device(?!_(backend|vendor|arch|driver|lib))|(?<!split)(?<!tags)(?<!train)(^|_)dev\d*$|^dev_|map_location|(^|_)gpu$",
    *("dev", "map_location", "gpu"),
)
"""Names of what holds a device. A development set (``split_dev``) and a maker of devices (``gpu_vendor``) do not."""
SETTINGS = words(r"(^|_|[a-z])(args?|opts?|options|cfg|config|conf|hparams|params|settings|flags)$")
"""Names of objects that carry settings from one file to another."""
SIBLINGS = frozenset(("cpu", "mps", "xpu", "npu", "hpu", "mlu", "musa", "xla", "tpu", "meta", "gpu"))
Key = tuple[object, str]


class Use:
    """One device text: what it is used for, the nodes that matter, and why it stays where it does.

    ``proof``: the place itself shows that this is a device.
    ``yardstick``: other values are compared with it by its name.
    """

    def __init__(
        self,
        text: DeviceText,
        role: Role,
        consumer: ast.AST,
        keys: tuple[Key, ...] = (),
        proof: bool = False,
        reason: str = "",
        yardstick: bool = False,
    ) -> None:
        self.text, self.role, self.consumer, self.keys = text, role, consumer, keys
        self.proof, self.reason, self.yardstick = proof, reason, yardstick


def key_of(tree: Tree, node: ast.expr, scope: Scope) -> Key | None:
    """The key of a variable or an attribute, or None for anything else."""
    if isinstance(node, ast.Name):
        home = scope.find(node.id) or tree.scope
        return ("attribute", node.id) if home.kind == "class" else (id(home), node.id)
    if isinstance(node, ast.Attribute):
        return ("attribute", node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return ("attribute", node.slice.value)
    return looked_up(node)


def looked_up(node: ast.expr) -> Key | None:
    """The key of ``config.get("device")``, ``os.getenv("DEVICE")`` and ``getattr(args, "device")``."""
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    position = 1 if name == "getattr" else 0
    if name not in ("get", "getenv", "pop", "setdefault", "getattr") or len(node.args) <= position:
        return None
    first = node.args[position]
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    return ("attribute", first.value)


def stripped(node: ast.expr) -> tuple[ast.expr, bool]:
    """The value under a test, and whether it is shown to be a device: ``str(x.device).split(":")[0]`` gives ``x``."""
    proof = False
    while True:
        if isinstance(node, ast.Attribute) and node.attr in ("type", "device"):
            proof = proof or node.attr == "device" or _names_device(node.value)
            if node.attr == "device" and not isinstance(node.value, ast.Attribute | ast.Name):
                return node, True
            if node.attr == "device" and chain(node):
                return node, True
            node = node.value
        elif isinstance(node, ast.NamedExpr):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
            if not node.args:
                return node, proof
            node = node.args[0]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("lower", "strip", "split")
        ):
            node = node.func.value
        elif (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Call)
            and isinstance(node.slice, ast.Constant)
        ):
            node = node.value
        else:
            return node, proof or _names_device(node)


def _names_device(node: ast.expr) -> bool:
    if key := looked_up(node):
        return bool(NAMED.search(key[1]))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return bool(NAMED.search(str(node.slice.value)))
    if isinstance(node, ast.Call):
        node = node.func
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return bool(NAMED.search(name))
