"""What one use of a device string becomes."""

from __future__ import annotations

import ast

from torchport.analysis.devices import NAMED, SETTINGS, Use, key_of
from torchport.analysis.groups import TESTS
from torchport.analysis.names import chain
from torchport.rewrite.context import Context, New
from torchport.rewrite.guards import is_available
from torchport.rewrite.options import converted

TAKES_DEVICE = ("torch.set_default_device", "torch.load", "torch.jit.load")


def new_text(context: Context, use: Use) -> list[New]:
    """What becomes of one use; a whole choice by availability becomes one call."""
    node, spell = use.text.node, context.spell
    if use.role == "slice":
        return [_beginning(context, use)]
    if use.role == "case" and spell.portable:
        return _case(context, use)
    if use.role in TESTS:
        word = spell.compared(context.source(node))
        return [New(node, word if use.text.index is None else _with_colon(word, context), spell.portable)]
    if use.role == "device":
        call = use.consumer
        assert isinstance(call, ast.Call)
        return [_device_call(context, use, call)]
    index, like = use.text.index or "", context.source(node)
    as_device = use.role == "to" or (use.role == "argument" and _torch_argument(context, use))
    choice = _choice(context, node)
    if use.yardstick and choice is None and not index:
        return [New(node, spell.compared(like), spell.portable)]
    if spell.portable and _is_environment(context, use):
        assert isinstance(use.consumer, ast.Call)
        return [as_typed(context, use.consumer)]
    text = spell.place(index, like) if as_device else spell.text(index, like)
    return [New(choice or node, text)]


def _with_colon(word: str, context: Context) -> str:
    """What stands before a number: ``"xla:"``."""
    return f'f"{{{word}}}:"' if context.spell.portable else f"{word[:-1]}:{word[-1]}"


def as_typed(context: Context, node: ast.expr) -> New:
    """A text that a user may have written, as the name of the device that is there."""
    return New(node, f"shim.device_string({context.source(node)})")


def _is_environment(context: Context, use: Use) -> bool:
    """``os.environ.get("DEVICE", "cuda")``: what is set outside is read in the same way as the default."""
    call = use.consumer
    return (
        isinstance(call, ast.Call)
        and context.named(call.func, "os.getenv", "os.environ.get")
        and call.args[1:] == [use.text.node]
        and isinstance(use.text.node, ast.Constant)
    )


def settings_read(context: Context, names: set[str]) -> list[New]:
    """``config["device"]`` as a user has typed it, where the file reads it and nothing in the file sets it."""
    names = names - converted(context) if names else names
    if not names:
        return []
    if any(isinstance(k, ast.Constant) and k.value in names for d in context.tree.every(ast.Dict) for k in d.keys):
        return []
    reads: list[ast.expr] = []
    for node in context.tree.names:
        read = context.tree.parents[node]
        if isinstance(read, ast.Attribute) and read.attr == "get":
            read = context.tree.parents[read]
        if not isinstance(read, ast.Subscript | ast.Call):
            continue
        key = key_of(context.tree, read, context.tree.scope)
        if key is None or key[1] not in names or (isinstance(read, ast.Call) and len(read.args) > 1):
            continue
        if isinstance(read, ast.Subscript) and not isinstance(read.ctx, ast.Load):
            return []
        around = context.tree.parents[read]
        if not isinstance(around, ast.Call) or not (
            _is_typed(context, around) or _becomes_typed(context, around, read)
        ):
            reads.append(read)
    return [as_typed(context, read) for read in reads]


def _is_typed(context: Context, call: ast.Call) -> bool:
    return context.named(call.func, "torchport.shim.device_string", "torchport.shim.device")


def is_setting(node: ast.expr) -> bool:
    """``config["device"]``, ``cfg.get("device", "cpu")``, ``opt.device``: what a file of settings may say is "cuda"."""
    match node:
        case (
            ast.Subscript(value=base, slice=ast.Constant(value=str() as name))
            | ast.Call(func=ast.Attribute(attr="get", value=base), args=[ast.Constant(value=str() as name), *_])
            | ast.Attribute(value=base, attr=name)
        ):
            return bool(SETTINGS.search((chain(base) or [""])[-1])) and bool(NAMED.search(name))
    return False


def _becomes_typed(context: Context, call: ast.Call, read: ast.expr) -> bool:
    """``torch.device(config["device"])``, which becomes ``shim.device`` by another rule."""
    return is_setting(read) and context.named(call.func, "torch.device")


def _beginning(context: Context, use: Use) -> New:
    """``device[:4] == "cuda"`` asks how the name begins."""
    node = use.consumer
    assert isinstance(node, ast.Compare)
    sliced = node.left if node.comparators[0] is use.text.node else node.comparators[0]
    assert isinstance(sliced, ast.Subscript)
    word = context.spell.compared(context.source(use.text.node))
    text = f"{context.source(sliced.value)}.startswith({word})"
    if isinstance(node.ops[0], ast.NotEq):
        around = context.tree.parents[node]
        text = f"(not {text})" if isinstance(around, ast.Compare | ast.BinOp | ast.UnaryOp) else f"not {text}"
    return New(node, text, context.spell.portable)


def _case(context: Context, use: Use) -> list[New]:
    """``case "cuda":`` becomes ``case _ if device == ...:``, since a pattern cannot hold a call."""
    case = use.consumer
    assert isinstance(case, ast.match_case)
    match = context.tree.parents[case]
    assert isinstance(match, ast.Match)
    subject, pattern, word = context.source(match.subject), case.pattern, context.spell.compared()
    test = f"{subject} == {word}"
    if isinstance(pattern, ast.MatchOr):
        parts = [p.value for p in pattern.patterns if isinstance(p, ast.MatchValue)]
        words = [word if part is use.text.node else context.source(part) for part in parts]
        test = f"{subject} in ({', '.join(words)})"
    if case.guard is None:
        return [New(pattern, f"_ if {test}")]
    guard = context.source(case.guard)
    simple = isinstance(case.guard, ast.Name | ast.Attribute | ast.Call | ast.Compare)
    return [New(pattern, "_", accelerator=False), New(case.guard, f"{test} and {guard if simple else f'({guard})'}")]


def _device_call(context: Context, use: Use, call: ast.Call) -> New:
    """A ``torch.device``; one that is a default is made on import, where ``torch.device("tpu")`` needs a TPU."""
    arguments = [*call.args, *(k.value for k in call.keywords)]
    first = arguments[0]
    index = use.text.index or ""
    if len(arguments) == 2 and first is use.text.node and not index:
        index = context.source(arguments[1])
    if first is use.text.node or _choice(context, use.text.node) is first:
        whole = _choice(context, call, devices=True) if first is use.text.node else None
        if context.spell.portable:
            return New(whole or call, context.spell.device(index))
        like = context.source(use.text.node)
        if context.target == "tpu" and isinstance(context.tree.parents[call], ast.arguments):
            torch = context.spell.torch
            if context.source(call.func) == f"{torch}.device":
                return New(call, f"{torch}.accelerator.current_accelerator()", accelerator=False)
        if whole is None and len(arguments) == 1:
            return New(_choice(context, use.text.node) or use.text.node, context.spell.text(index, like))
        return New(whole or call, f"{context.source(call.func)}({context.spell.text(index, like)})")
    return New(use.text.node, context.spell.text(index, context.source(use.text.node)))


def _choice(context: Context, node: ast.expr, devices: bool = False) -> ast.IfExp | None:
    """``node if torch.cuda.is_available() else "cpu"``, or the same turned round, as a whole.

    For TorchTPU it stays a choice, so that the program still runs on a CPU.
    """
    parent = context.tree.parents[node]
    if not isinstance(parent, ast.IfExp) or context.target == "tpu":
        return None
    if node is parent.orelse and _asks_for_module(context, parent):
        return parent
    test, turned = parent.test, False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, turned = test.operand, True
    if node is not (parent.orelse if turned else parent.body) or not is_available(context, test):
        return None
    other = parent.body if turned else parent.orelse
    if devices:
        if not (isinstance(other, ast.Call) and context.named(other.func, "torch.device") and len(other.args) == 1):
            return None
        other = other.args[0]
    if not isinstance(other, ast.Constant) or other.value != "cpu":
        return None
    context.claimed.add(test.func)  # type: ignore[attr-defined]
    return parent


def _asks_for_module(context: Context, choice: ast.IfExp) -> bool:
    """``torch.accelerator.current_accelerator().type if hasattr(torch, "accelerator") else "cuda"``."""
    asked, chosen = choice.test, choice.body
    return (
        isinstance(asked, ast.Call)
        and isinstance(asked.func, ast.Name)
        and asked.func.id == "hasattr"
        and [getattr(a, "value", None) for a in asked.args[1:]] == ["accelerator"]
        and isinstance(chosen, ast.Attribute)
        and chosen.attr == "type"
    )


def _torch_argument(context: Context, use: Use) -> bool:
    """Whether the argument goes to PyTorch, which takes a device; a function of the program gets a string as before."""
    call = use.consumer
    if not isinstance(call, ast.Call):
        return False
    keyword = next((k.arg for k in call.keywords if use.text.node in ast.walk(k.value)), None)
    if keyword == "device_type":
        return False
    if isinstance(call.func, ast.Name | ast.Attribute) and (found := context.qualify(call.func)):
        if found.name in ("torch.distributed.device_mesh.init_device_mesh", "torch.distributed.init_device_mesh"):
            return False
        if keyword is None and found.name.startswith("torch.") and not found.name.startswith("torch.cuda."):
            return found.name in TAKES_DEVICE
        return found.name.startswith(("torch.", "torchport.shim"))
    return isinstance(call.func, ast.Attribute) and (
        call.func.attr.startswith("new_") or call.func.attr in ("to", "to_empty")
    )
