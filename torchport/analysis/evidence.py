"""What the uses of a name show of its value where nothing else tells."""

from __future__ import annotations

import ast
from functools import cached_property

from torchport.analysis import operations as ops
from torchport.analysis.index import Index
from torchport.analysis.names import chain
from torchport.analysis.operations import ARRAYS_OR_TENSORS, ONLY_MODELS, ONLY_TENSORS, TWO_TENSORS
from torchport.analysis.reaching import scope_of
from torchport.analysis.scopes import Binding, Scope, walk
from torchport.analysis.values import HOST_BATCH, MODEL, ON_DEVICE, ON_HOST, TENSOR, Value
from torchport.analysis.wording import is_like_model, is_mover

COMPARISONS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Evidence(Index):
    """The uses of one file, read for what they show."""

    def by_use(self, home: Scope, name: str) -> Value | None:
        """What the uses of a name show that nothing else tells of."""
        moves = False
        found = None
        for node in self.uses(home, name):
            parent = self.tree.parents[node]
            if isinstance(node, ast.Attribute):
                first = node
                while isinstance(first.value, ast.Attribute):
                    first = first.value
                if first.attr in ONLY_MODELS:
                    return MODEL
                called = isinstance(parent, ast.Call) and parent.func is node
                moves = moves or (first.attr in ("to", "cuda") and called)
                found = found or self._by_attribute(first.attr, called)
            elif isinstance(parent, ast.Call) and parent.func is node:
                return Value("model", sure=False) if is_like_model(name) else None
            elif found is None and self._handed_to_torch(node):
                found = TENSOR
        if moves and any(self._is_turn(binding) for binding in home.names[name]):
            return HOST_BATCH if found is None else ON_HOST
        return found

    @cached_property
    def moved_names(self) -> dict[tuple[Scope | None, str], list[ast.Name]]:
        """Names that are moved to the device under the same name, ``x = x.cuda()``, outside of any ``forward``."""
        found: dict[tuple[Scope | None, str], list[ast.Name]] = {}
        called = self.tree.called()
        movers = [name for name in called if is_mover(name)]
        for call in (call for name in ("cuda", "to", *movers) for call in called.get(name, ())):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in ("cuda", "to") and isinstance(func.value, ast.Name):
                moved = [func.value] if func.attr == "cuda" or _names_device(call) else []
            elif is_mover((chain(func) or [""])[-1]):
                moved = [argument for argument in call.args if isinstance(argument, ast.Name)]
            else:
                continue
            function = self.tree.function(call)
            if not moved or getattr(function, "name", "forward") == "forward":
                continue
            statement = self.tree.statement(call)
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            taken = {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}
            for name in moved:
                if name.id in taken:
                    found.setdefault((scope_of(self.tree, name).find(name.id), name.id), []).append(name)
        return found

    def before_move(self, value: Value, node: ast.Name, home: Scope, bindings: list[Binding]) -> Value:
        """``value``, on the host if a statement further down moves ``node``, or what it has become by then."""
        if value.where or value.kind not in ("unknown", "tensor", "output"):
            return value
        if node.id == "batch_sizes":  # of a packed sequence: they are always on the CPU
            return HOST_BATCH if value.kind == "unknown" else value._replace(where="host")
        for use in self.moved_names.get((home, node.id), ()):
            move = self.tree.statement(use)
            before = [node, *(binding.node for binding in bindings)]
            if all(_line(n) < move.lineno for n in before) and self.tree.parents[move] in self.tree.ancestors(node):
                return HOST_BATCH if value.kind == "unknown" else value._replace(where="host")
        return value

    def _by_attribute(self, attribute: str, called: bool) -> Value | None:
        """What has such an attribute, or a method of that name."""
        if attribute in ("backward", "grad_fn"):
            return ON_DEVICE
        if attribute in ONLY_TENSORS and (attribute != "cuda" or called):
            return TENSOR
        return TENSOR if attribute in ARRAYS_OR_TENSORS and not self.has_arrays else None

    def _is_turn(self, binding: Binding) -> bool:
        """Whether a name is what a loop gets in each turn: moved to the device there, it comes from the host."""
        parent = self.tree.parents.get(binding.node)
        while isinstance(parent, (ast.Tuple, ast.List)):
            parent = self.tree.parents.get(parent)
        return isinstance(parent, ast.For)

    def _handed_to_torch(self, node: ast.expr) -> bool:
        """``F.relu(x)`` and ``F.cross_entropy(x[keep], y)``: functions of PyTorch take tensors."""
        parent = self.tree.parents[node]
        if isinstance(parent, ast.Compare) and not isinstance(parent.ops[0], COMPARISONS):
            node, parent = parent, self.tree.parents[parent]
            if isinstance(parent, ast.Subscript) and parent.slice is node:
                return not self.has_arrays  # x[y > 0]: a number or a list cannot stand there
        elif isinstance(parent, ast.Subscript) and parent.value is node:
            if self.is_mask(parent.slice) or (not self.has_arrays and self._is_comparison(parent.slice)):
                return True
            node, parent = parent, self.tree.parents[parent]
        if not isinstance(parent, ast.Call) or node not in parent.args[:2]:
            return False
        name = self.name_of(parent.func)
        both = node is parent.args[0] or name.rpartition(".")[2] in TWO_TENSORS or name.endswith("_loss")
        return both and takes_tensors(name)

    def is_mask(self, node: ast.expr) -> bool:
        """Whether an index is a tensor of bools, for certain."""
        raise NotImplementedError

    def _is_comparison(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            made = self.made_by(node)
            return len(made) == 1 and isinstance(made[0], ast.Compare)
        return isinstance(node, ast.Compare)

    def made_by(self, node: ast.expr) -> list[ast.expr]:
        """What is assigned to a name in any place of its scope, moves to a device taken off."""
        if not isinstance(node, ast.Name):
            return []
        home = scope_of(self.tree, node).find(node.id)
        found = []
        for binding in home.names[node.id] if home is not None else ():
            parent = self.tree.parents.get(binding.node)
            if isinstance(parent, ast.Assign) and binding.node in parent.targets:
                value = parent.value
                while (
                    isinstance(value, ast.Call)
                    and isinstance(value.func, ast.Attribute)
                    and value.func.attr in ops.MODEL_METHODS
                ):
                    value = value.func.value
                found.append(value)
        return found

    def is_model(self, node: ast.expr) -> bool:
        """Whether the uses of a name show a model: it is called, trained or asked for its parameters."""
        parts_of = chain(node)
        if len(parts_of) > 1 and parts_of[0] == "self":
            last = parts_of[-1]
            return any(
                isinstance(call.func, ast.Attribute)
                and (call.func.attr == last or (call.func.attr in ONLY_MODELS and chain(call.func)[-2:-1] == [last]))
                for call in self.tree.calls
            )
        if not isinstance(node, ast.Name):
            return False
        home = scope_of(self.tree, node).find(node.id)
        for use in self.uses(home, node.id) if home is not None else ():
            parent = self.tree.parents[use]
            if isinstance(use, ast.Name) and isinstance(parent, ast.Call) and parent.func is use:
                return True
            if isinstance(use, ast.Attribute) and ONLY_MODELS & set(chain(use)[1:2]):
                return True
        return False

    def is_asked_as_model(self, call: ast.Call) -> bool:
        """``x.cpu().parameters()``: only a model has such a method."""
        parent = self.tree.parents[call]
        return isinstance(parent, ast.Attribute) and parent.attr in ONLY_MODELS


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _names_device(call: ast.Call) -> bool:
    """``.to(device)`` and ``.to(self.device)``: a device by its name, and not that of another tensor."""
    parts = chain(call.args[0]) if call.args else []
    return "device" in (parts or [""])[-1] and (len(parts) == 1 or parts[0] in ("self", "args", "cfg", "config", "opt"))


def takes_tensors(name: str) -> bool:
    """Whether a function of this name computes with tensors."""
    if name.startswith(ops.COMPUTES):
        return name.islower()
    last = name.removeprefix("torch.")
    return (
        name.startswith("torch.")
        and "." not in last
        and last.islower()
        and last not in ops.NOT_TENSORS
        and last not in ops.FACTORIES
        and last not in ops.PLAIN
    )
