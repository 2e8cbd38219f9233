"""What modules do otherwise on a TPU where no shim mends it: parameters made anew, statistics, normalisation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import chain, line_mark
from torchport.model import Edit, Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.rename import in_annotation
from torchport.rewrite.statements import block_of

SWITCH = "torch.__future__.set_swap_module_params_on_conversion"
BREAKS = ("torch.nn.utils.weight_norm", "torch.nn.utils.weight_norm.weight_norm")
RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
TIED = (
    "the move to the device makes new parameters, so these two come apart; {} would keep them, but {} raises under it: "
    "tie them again after the move"
)
BACK = (
    "the module comes back with new parameters, and the optimizer that was made before goes on with the old ones; save "
    "{{name: value.cpu() for name, value in module.state_dict().items()}} and leave the module where it is"
)
EARLY = "the move on {} makes new parameters, and this optimizer goes on with the old ones; build it after the move"
BATCH_NORMS = tuple(
    f"torch.nn.{name}"
    for name in (
        *(f"{kind}BatchNorm{dim}" for kind in ("", "Lazy") for dim in ("1d", "2d", "3d")),
        "SyncBatchNorm",
        "functional.batch_norm",
    )
)
LAYER_NORMS = tuple(
    f"torch.nn.{name}"
    for name in (
        "LayerNorm",
        "functional.layer_norm",
        "Transformer",
        "TransformerEncoderLayer",
        "TransformerDecoderLayer",
    )
)
AUTOCASTS = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")


def new_parameters(rule: Rule, context: Context) -> Iterator[Finding]:
    """Tied weights, and optimizers built before the move: one switch of PyTorch keeps the objects."""
    found = [*_ties(context), *_early_optimizers(context), *_round_trips(context)]
    if not found or any(True for _ in context.calls(SWITCH)):
        return
    why = _breaks(context)
    for node, moved in found:
        if why:
            text = _reason(node, moved, why)
            yield context.leave(rule, node, text)
        else:
            yield _switched(rule, context, node)


def _reason(node: ast.stmt, moved: ast.stmt | None, why: str) -> str:
    if moved is None:
        return TIED.format(SWITCH, why)
    return BACK.format() if moved is node else EARLY.format(line_mark(moved.lineno))


def _breaks(context: Context) -> str:
    """What would raise under the switch, or an empty text."""
    if any(True for _ in context.uses(*BREAKS)):
        return "moving a module with weight_norm"
    loads = any(True for _ in context.methods("load_state_dict"))
    if loads and any(True for _ in context.uses(*RECURRENT)):
        return "load_state_dict of a recurrent module"
    return ""


def _switched(rule: Rule, context: Context, node: ast.stmt) -> Finding:
    """The switch, behind the imports at the head of the file."""
    text = context.text
    new = f"{context.spell.torch}{SWITCH.removeprefix('torch')}(True)"
    body = context.tree.module.body
    start = 1 if ast.get_docstring(context.tree.module, clean=False) is not None else 0
    imports = [*body[start:]]
    last = next((i for i, s in enumerate(imports) if not isinstance(s, ast.Import | ast.ImportFrom)), len(imports))
    if last == 0:
        return context.leave(rule, node, f"call {new} before the module is moved to the device")
    line = text.line(text.span(imports[last - 1])[1])
    newline = text.newline(line)
    place = text.starts[line] if line < len(text.starts) else len(text.bytes)
    edit = Edit(place, place, f"{newline}{new}{newline}")
    return context.edited(rule, node, [edit], new, needs=("torch",))


def _ties(context: Context) -> Iterator[tuple[ast.stmt, None]]:
    """``self.head.weight = self.embedding.weight``."""
    if not any(name == "torch" or name.startswith("torch.") for name in context.resolved):
        return
    for assign in context.tree.every(ast.Assign):
        target, value = assign.targets[0], assign.value
        if (
            isinstance(target, ast.Attribute)
            and isinstance(value, ast.Attribute)
            and target.attr == value.attr
            and target.attr in ("weight", "bias")
            and chain(target)[:-1] != chain(value)[:-1]
            and context.qualify(value) is None
        ):
            yield assign, None


def _round_trips(context: Context) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """``torch.save(net.cpu().state_dict(), path)`` and then ``net.cuda()`` in one function: a module, not a tensor."""
    for call, func in context.methods("cpu"):
        module, taken = chain(func.value), context.tree.parents[call]
        if not module or not (isinstance(taken, ast.Expr) or getattr(taken, "attr", "") == "state_dict"):
            continue
        around = context.tree.function(call)
        for later, attribute in context.methods("cuda", "to"):
            statement = context.tree.parents[later]
            if (
                isinstance(statement, ast.Expr)
                and later.lineno > call.lineno
                and chain(attribute.value) == module
                and _moves(later, module)
                and context.tree.function(later) is around
            ):
                yield statement, statement
                break


def _early_optimizers(context: Context) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """``optimizer = SGD(model.parameters())`` and then ``model.cuda()`` in the same block."""
    for call, func in context.methods("parameters"):
        model = chain(func.value)
        optimizer = next(
            (
                n
                for n in context.tree.ancestors(call)
                if isinstance(n, ast.Call)
                and isinstance(n.func, ast.Name | ast.Attribute)
                and (name := context.qualify(n.func)) is not None
                and name.name.startswith("torch.optim.")
            ),
            None,
        )
        if not model or optimizer is None:
            continue
        statement = context.tree.statement(optimizer)
        block = block_of(context.tree, statement)
        for later in block[block.index(statement) + 1 :] if statement in block else []:
            if any(_moves(n, model) for n in ast.walk(later)):
                yield statement, later
                break


def _moves(node: ast.AST, model: list[str]) -> bool:
    """``model.cuda()`` or ``model.to(device)``; a dtype alone moves nothing."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if chain(node.func)[:-1] != model or node.func.attr not in ("cuda", "to"):
        return False
    return node.func.attr == "cuda" or bool(node.args or node.keywords)


def batch_norm(rule: Rule, context: Context) -> Iterator[Finding]:
    """Once in a file: modules whose running statistics the back end does not keep right."""
    uses = sorted((node for node, _ in context.uses(*BATCH_NORMS)), key=lambda n: (n.lineno, n.col_offset))
    if uses:
        yield context.leave(rule, uses[0], rule.reason)


def layer_norm(rule: Rule, context: Context) -> Iterator[Finding]:
    """Once in a file, for the first with weights; a note where the file itself switches no autocast on."""
    uses = [node for node, _ in context.uses(*LAYER_NORMS) if _has_weights(context, node)]
    if uses:
        first = min(uses, key=lambda n: (n.lineno, n.col_offset))
        autocast = any(_switches_on(call) for call in context.calls(*AUTOCASTS))
        yield context.leave(rule, first, rule.reason, effect=None if autocast else "none")


def _has_weights(context: Context, node: ast.expr) -> bool:
    """Whether a layer with weights is made or handed on; ``isinstance`` and annotations make none."""
    call = context.tree.parents[node]
    if in_annotation(context, node) or (isinstance(call, ast.Tuple) and _is_asked(context.tree.parents[call])):
        return False
    if not (isinstance(call, ast.Call) and call.func is node):
        return not _is_asked(call)
    values = {k.arg: k.value for k in call.keywords}
    if context.named(node, "torch.nn.functional.layer_norm"):
        weight = call.args[2] if len(call.args) > 2 else values.get("weight")
        return weight is not None and not (isinstance(weight, ast.Constant) and weight.value is None)
    affine = values.get("elementwise_affine")
    return not (isinstance(affine, ast.Constant) and affine.value is False)


ASKED = "it is only asked for, which runs everywhere"


def made(rule: Rule, context: Context) -> Iterator[Finding]:
    """Notes: classes of the rule that are only asked for, ``isinstance(m, SyncBatchNorm)``, run everywhere."""
    for node, _ in context.uses(*rule.match):
        parent = context.tree.parents[node]
        if _is_asked(parent) or (isinstance(parent, ast.Tuple) and _is_asked(context.tree.parents[parent])):
            context.claimed.add(node)
            yield context.leave(rule, node, ASKED, effect="none")


def _is_asked(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
    )


def _switches_on(call: ast.Call) -> bool:
    """Whether an autocast is one for the accelerator, and not switched off where it is written."""
    values = {k.arg: k.value for k in call.keywords}
    device = call.args[0] if call.args else values.get("device_type")
    off = values.get("enabled")
    return not (isinstance(device, ast.Constant) and device.value in ("cpu", False)) and not (
        isinstance(off, ast.Constant) and off.value is False
    )
