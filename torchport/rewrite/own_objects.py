"""Whether ``x.cuda()`` and ``x.is_cuda`` speak of an object of a class of the project, not of a tensor or a module."""

from __future__ import annotations

import ast

from torchport.analysis.own_classes import Own
from torchport.analysis.scopes import Binding, dotted
from torchport.lazy import pattern
from torchport.rewrite.context import Context

ASKED = """
contiguous data_ptr dim dtype flatten new new_empty new_full new_ones new_tensor new_zeros numel permute requires_grad
reshape shape size storage stride sum transpose unsqueeze view view_as"""
TENSOR = frozenset(ASKED.split())
"""What is asked of tensors, and hardly of anything else that can be moved."""
COPIES = ("copy.copy", "copy.deepcopy")
ANYTHING = ("torch.load", "torch.hub.load", "torch.utils.data", "torch.package")
"""Functions and modules of PyTorch that hand out objects of the program."""
WORDS = pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
SHORTEST = 4


def own_class(context: Context, node: ast.Attribute) -> str:
    """The class of the project that the object before ``.cuda`` or ``.is_cuda`` may be of; empty if it is of none."""
    own = [item for item in context.project.own if item.method == node.attr]
    if not own or _is_another(context, node, node.value, {item.name for item in own}) or _does_more(context, node, own):
        return ""
    if named := sorted({item.name for item in own} & context.once(_names)):
        return named[0]
    if isinstance(node.value, ast.Attribute):
        if related := [item.name for item in own if _related(node.value.attr, item.name)]:
            return min(related)
        values = context.once(_assigned).get(node.value.attr, [])
        return own[0].name if any(_is_unseen(context, value) for value in values) else ""
    if not isinstance(node.value, ast.Name):
        return ""
    outside = any(b.kind == "param" or _bound_unseen(context, b.node) for b in bindings(context, node, node.value.id))
    return own[0].name if outside else ""


def _names(context: Context) -> set[str]:
    """Names that the file reads, imports or gives to its classes."""
    read = {n.id for n in context.tree.names if isinstance(n, ast.Name)}
    return read | {c.name for c in context.tree.classes} | set(context.tree.scope.names)


def _related(attribute: str, name: str) -> bool:
    """``self.embedder`` and ``SentenceEmbedder``, ``self.data_bag`` and ``Bag``: one says the other's word."""
    words = [part for part in attribute.lower().split("_") if len(part) >= SHORTEST]
    parts = [word.lower() for word in WORDS.findall(name)]
    ends = {"".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
    return name.lower() in attribute.lower() or any(word in ends for word in words)


def _is_another(context: Context, node: ast.AST, value: ast.expr, own: set[str]) -> bool:
    """Whether ``value`` is certainly made by PyTorch, or is of a class that is none of ``own``."""
    if isinstance(value, ast.Call):
        found = context.qualify(value.func) if isinstance(value.func, ast.Name | ast.Attribute) else None
        if found is not None and (found.name.startswith("torch.") or found.name in COPIES):
            if found.name in COPIES:
                return bool(value.args) and _is_another(context, node, value.args[0], own)
            return not found.doubt and not found.name.startswith(ANYTHING)
        if found is None and isinstance(value.func, ast.Attribute):
            return isinstance(value.func.value, ast.Call) and _is_another(context, node, value.func.value, own)
        last = found.name.rpartition(".")[2] if found is not None else dotted(value.func)
        return last.lstrip("_")[:1].isupper() and "." not in last and last not in own and not last.isupper()
    if isinstance(value, ast.Name):
        bound = bindings(context, node, value.id)
        return _asked_for_tensor(context, node, value) or (
            bool(bound) and all(_binds_another(context, b, value.id, own) for b in bound)
        )
    if isinstance(value, ast.Attribute) and dotted(value):
        values = context.once(_assigned).get(value.attr, [])
        return bool(values) and all(not isinstance(v, ast.Name) and _is_another(context, v, v, own) for v in values)
    return False


def _binds_another(context: Context, binding: Binding, name: str, own: set[str]) -> bool:
    if binding.kind == "param":
        note = getattr(binding.node, "annotation", None)
        return isinstance(note, ast.expr) and context.named(note, "torch.Tensor", "torch.nn.Parameter")
    parent = context.tree.parents.get(binding.node)
    if not isinstance(parent, ast.Assign) or binding.node not in parent.targets:
        return False
    moved = isinstance(parent.value, ast.Call) and dotted(parent.value.func).startswith(f"{name}.")
    return moved or (not isinstance(parent.value, ast.Name) and _is_another(context, parent, parent.value, own))


def _asked_for_tensor(context: Context, node: ast.AST, value: ast.Name) -> bool:
    """``if torch.is_tensor(x): x.cuda()`` and ``isinstance(x, torch.Tensor) and x.is_cuda``."""
    child = node
    for parent in context.tree.ancestors(node):
        tests: list[ast.expr] = []
        if isinstance(parent, ast.If | ast.IfExp):
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            tests = [parent.test] if child in body else []
        elif isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
            tests = parent.values
        if any(_asks_for_tensor(context, test, value.id) for test in tests):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        child = parent
    return False


def _asks_for_tensor(context: Context, test: ast.expr, name: str) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks_for_tensor(context, value, name) for value in test.values)
    if not isinstance(test, ast.Call) or not test.args or dotted(test.args[0]) != name:
        return False
    kind = test.args[1] if len(test.args) == 2 and dotted(test.func) == "isinstance" else None
    return context.named(test.func, "torch.is_tensor") or (kind is not None and context.named(kind, "torch.Tensor"))


def _does_more(context: Context, node: ast.Attribute, own: list[Own]) -> bool:
    """Whether more is asked of the object than those classes have: ``x.view(..)``, ``model.parameters()``."""
    name = dotted(node.value)
    if not name:
        return False
    function = context.tree.function(node) if isinstance(node.value, ast.Name) else None
    asked = {
        parts[0]
        for other in _chains(context, name.partition(".")[0])
        if (function is None or context.tree.function(other) is function) and other.lineno <= node.lineno
        for text in [dotted(other)]
        if text.startswith(f"{name}.") and (parts := text[len(name) + 1 :].split("."))
    } - {node.attr}
    return all(asked & (TENSOR - o.words) or (o.closed and asked - o.words) for o in own)


def _chains(context: Context, base: str) -> list[ast.Name | ast.Attribute]:
    return context.tree.chains().get(base, [])


def bindings(context: Context, node: ast.AST, name: str) -> list[Binding]:
    """Where ``name``, read at ``node``, gets its values."""
    inner = next((n for n in (node, *context.tree.ancestors(node)) if n in context.tree.scopes), None)
    home = (context.tree.scopes[inner] if inner is not None else context.tree.scope).find(name)
    return home.names[name] if home is not None else []


def _assigned(context: Context) -> dict[str, list[ast.expr]]:
    """What the file assigns to attributes, by their name, of whatever object."""
    found: dict[str, list[ast.expr]] = {}
    for assign in context.tree.every(ast.Assign):
        for target in assign.targets:
            if isinstance(target, ast.Attribute):
                found.setdefault(target.attr, []).append(assign.value)
    return found


def _is_unseen(context: Context, value: ast.expr) -> bool:
    """Whether where a value comes from is not seen here: a parameter, a copy of one, the result of a function."""
    if isinstance(value, ast.Name):
        bound = bindings(context, value, value.id)
        return any(b.kind == "param" or _bound_unseen(context, b.node) for b in bound)
    if not isinstance(value, ast.Call):
        return False
    found = context.qualify(value.func) if isinstance(value.func, ast.Name | ast.Attribute) else None
    if found is None:
        return isinstance(value.func, ast.Name) and value.func.id.islower()
    if found.name in COPIES:
        return bool(value.args) and _is_unseen(context, value.args[0])
    return not found.name.startswith("torch") and found.name.rpartition(".")[2].islower()


def _bound_unseen(context: Context, target: ast.AST) -> bool:
    """Whether a name is bound to an item of a loop, a part of a tuple, or the result of a function of another file."""
    parent = context.tree.parents.get(target)
    if isinstance(parent, ast.For | ast.Tuple | ast.comprehension):
        return True
    return isinstance(parent, ast.Assign) and isinstance(parent.value, ast.Call) and _is_unseen(context, parent.value)
