"""What a call gives: of PyTorch by its tables, of the file's own functions by what they return."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from torchport.analysis import operations as ops
from torchport.analysis.evidence import takes_tensors
from torchport.analysis.index import Function, argument_of, keyword, method_of
from torchport.analysis.names import chain
from torchport.analysis.values import (
    ARRAY,
    HOST_BATCH,
    MODEL,
    NONE,
    NUMBER,
    ON_DEVICE,
    OTHER,
    READ,
    SHAPE,
    TEXT,
    UNKNOWN,
    Dtype,
    Value,
    Where,
    combined,
    element,
    join,
    parts,
    sequence,
)

if TYPE_CHECKING:
    from torchport.analysis.evaluate import Flow

CALLERS = 6
GIVEN = frozenset((*dir(builtins), "defaultdict", "OrderedDict", "deepcopy"))
"""Functions of Python whose results are known: most names that are called are none."""
DTYPES: dict[str, Dtype] = {
    "bool": "bool", "long": "int", "int64": "int", "int": "int", "int32": "int", "uint8": "int", "float": "float",
    "float32": "float", "half": "float", "float16": "float", "bfloat16": "float", "float64": "double",
    "double": "double",
}  # fmt: skip


def call(flow: Flow, node: ast.Call) -> Value:
    """The value of a call."""
    name = flow.name_of(node.func)
    if name.startswith("torch.") or name.startswith("torchvision.ops."):
        return _torch(flow, node, name)
    if name.startswith("numpy."):
        return NUMBER if name.rpartition(".")[2] in ("float32", "float64", "int64", "int32") else ARRAY
    if name.startswith(ops.HOST_MODULES):
        return Value("number", origin="random" if name.startswith("random.") else "")
    if isinstance(node.func, ast.Name):
        return _function(flow, node, node.func)
    if isinstance(node.func, ast.Attribute) and not name:
        from torchport.analysis.methods import method

        return method(flow, node, node.func)
    return called(flow, node)


def _torch(flow: Flow, node: ast.Call, name: str) -> Value:
    last = name.rpartition(".")[2]
    if last == "DataLoader":
        return Value("loader", items=(HOST_BATCH,))
    if name.startswith("torch.optim."):
        return OTHER if "lr_scheduler" in name else Value("optimizer")
    if name in ("torch.compile", "torch.jit.script", "torch.jit.trace"):
        return flow.value(node.args[0]) if node.args else OTHER
    if name.startswith("torch.nn.") and not name.startswith(ops.COMPUTES):
        if last in ("Parameter", "Buffer"):
            return combined([flow.value(a) for a in node.args[:1]])._replace(kind="tensor", where="device")
        if last[:1].isupper():
            return MODEL
        if last in ("pad_sequence", "clip_grad_norm_", "get_total_norm"):
            return ON_DEVICE._replace(scalar="norm" in last)
        return UNKNOWN
    if name == "torch.Size":
        return SHAPE
    if name == "torch.device":
        return Value("device")
    if last in ops.FACTORIES and name.count(".") == 1:
        return Value("tensor", place_of(flow, node), dtype_of(flow, node, last))
    if not takes_tensors(name):
        return NUMBER if last in ops.PLAIN else SHAPE if last == "broadcast_shapes" else UNKNOWN
    values = [flow.value(a) for a in node.args]
    values += [v for value in values if value.kind == "list" for v in value.items]
    if last in ops.LIKE:
        return Value(
            "tensor", place_of(flow, node) if keyword(node, "device") else values[0].where, dtype_of(flow, node, last)
        )
    first = next((v for v in values if v.is_tensor), Value("tensor"))
    return operation(flow, node, last, combined([*values, first]), node.args[1:])


def operation(flow: Flow, node: ast.Call, name: str, base: Value, rest: list[ast.expr]) -> Value:
    """What an operation of PyTorch gives, as a function or as a method."""
    if name in ops.HOST_BOOLS:
        return READ
    if name in ops.PLAIN:
        return SHAPE if name == "size" and not rest else NUMBER
    tensor = base._replace(kind="tensor", items=(), fixed=False, sure=True, scalar=False)
    has_dim = bool(rest) or any(k.arg in ("dim", "axis") for k in node.keywords)
    if name in ops.BOOLEAN:
        return tensor._replace(dtype="bool", scalar=name in ops.REDUCTIONS and not has_dim)
    if name in ops.LISTS:
        return sequence(tensor)
    index = tensor._replace(dtype="int")
    if name in ops.PAIRS or (name in ops.PAIR_WITH_DIM and has_dim and not _tensor_argument(flow, rest)):
        return parts(tensor, index)
    if name == "where" and not rest:
        return sequence(index._replace(origin="data"))
    if name in ("nonzero", "argwhere", "flatnonzero", "masked_select", "unique", "unique_consecutive", "bincount"):
        found = (tensor if name == "masked_select" or "unique" in name else index)._replace(origin="data")
        several = any(k.arg in ("return_counts", "return_inverse", "as_tuple") for k in node.keywords)
        return sequence(found) if several else found
    if name in ops.INTEGER:
        return index._replace(scalar=name in ops.REDUCTIONS and not has_dim)
    if name in ops.REDUCTIONS:
        integer = base.dtype in ("bool", "int") and name == "sum"
        scalar = not has_dim or (name.endswith(("_loss", "entropy", "kl_div")) and keyword(node, "reduction") is None)
        return tensor._replace(dtype="int" if integer else base.dtype, scalar=scalar)
    if name in ops.FLOATS:
        return tensor._replace(dtype="float", scalar=base.scalar)
    if name == "double":
        return tensor._replace(dtype="double")
    return tensor._replace(scalar=base.scalar and name in ("detach", "clone", "abs", "sqrt", "reshape"))


def _tensor_argument(flow: Flow, rest: list[ast.expr]) -> bool:
    return bool(rest) and flow.value(rest[0]).is_tensor


def place_of(flow: Flow, node: ast.Call) -> Where:
    """Where a factory puts what it makes."""
    device = keyword(node, "device")
    if device is None or (isinstance(device, ast.Constant) and device.value in (None, "cpu")):
        return "host"
    if isinstance(device, ast.Call) and any(isinstance(a, ast.Constant) and a.value == "cpu" for a in device.args):
        return "host"
    if isinstance(device, ast.Attribute) and device.attr == "device":
        return flow.value(device.value).where if flow.value(device.value).is_tensor else "device"
    return "device"


def dtype_of(flow: Flow, node: ast.Call, name: str) -> Dtype:
    given = keyword(node, "dtype")
    if given is not None:
        parts_of = chain(given)
        return DTYPES.get(parts_of[-1], "") if parts_of[:1] == ["torch"] else ""
    if name in ops.INTEGER:
        return "int"
    return "float" if name in ("rand", "randn", "zeros", "ones", "empty", "linspace") else ""


def _function(flow: Flow, node: ast.Call, function: ast.Name) -> Value:
    """A call of a plain name: a builtin, a class or function of the file, a model, or something unknown."""
    arguments = [flow.value(a) for a in node.args]
    if function.id in GIVEN and (given := _given(flow, node, function.id, arguments)) is not None:
        return given
    if (definition := flow.runs.get(node)) is not None:
        found = returned(flow, definition)
        return found if found.kind != "unknown" else called(flow, node)
    for owner in flow.modules:
        if owner.name == function.id:
            return MODEL
    return called(flow, node)


def _given(flow: Flow, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
    """What a builtin gives, and None for one that may be a name of the file as well."""
    first = arguments[0] if arguments else UNKNOWN
    match name:
        case "float" | "int" | "bool" | "len" | "round" if first.is_tensor or first.origin == "data":
            return READ if name != "len" else NUMBER
        case "float" | "int" | "len" | "isinstance" | "hasattr" | "range" | "bool" | "id" | "ord" | "hash":
            return sequence(Value("number", origin="loop")) if name == "range" else Value("number", origin=first.origin)
        case "str" | "repr" | "format" | "type":
            return TEXT
        case "list" | "tuple" | "sorted" | "set" | "reversed":
            return sequence(element(first)) if arguments else Value("list")
        case "sum":
            return element(first)
        case "max" | "min" | "abs" | "pow":
            return join(arguments) if len(arguments) != 1 or name == "abs" else element(first)
        case "dict" | "defaultdict" | "OrderedDict":
            return Value("dict")
        case "print" | "setattr":
            return NONE
        case "next":
            return flow.iterated(node.args[0]) if node.args else UNKNOWN
        case "getattr" | "super" | "open" | "iter":
            return UNKNOWN
        case "deepcopy":
            return first
    return None


def called(flow: Flow, node: ast.Call) -> Value:
    """A call of a value: a model gives tensors; what else is given tensors on the device most likely does as well."""
    value = flow.value(node.func)
    if value.kind == "model":
        return _model_output(flow, node, node.func)
    if value.kind in ("number", "text"):
        return UNKNOWN
    arguments = [flow.value(a) for a in node.args]
    if any(a.is_tensor and a.where == "device" and a.sure for a in arguments) and value.kind == "unknown":
        return Value("output", "device", sure=False)
    return UNKNOWN


def _model_output(flow: Flow, node: ast.Call, function: ast.expr) -> Value:
    owner = flow.class_of(function.value) if isinstance(function, ast.Attribute) else None
    if owner is not None and isinstance(function, ast.Attribute):
        layers = flow.assigned.get((owner, function.attr), [])
        names = [flow.name_of(v.func) if isinstance(v, ast.Call) else "" for v in layers]
        if names and all(name.startswith("torch.nn.") for name in names):
            last = names[0].rpartition(".")[2]
            if last in ops.TUPLE_LAYERS:
                return parts(ON_DEVICE, Value("output", "device"))
            return ON_DEVICE if last != "Sequential" else Value("output", "device")
    for bound in flow.made_by(function):
        if isinstance(bound, ast.Call):
            name = flow.name_of(bound.func)
            if name.startswith("torch.nn.") and name.rpartition(".")[2] not in ops.TUPLE_LAYERS:
                return ON_DEVICE._replace(scalar=name.endswith("Loss"))
            if isinstance(bound.func, ast.Name):
                for cls in flow.modules:
                    if cls.name == bound.func.id and (forward := method_of(cls, "forward")) is not None:
                        found = returned(flow, forward)
                        if found.kind != "unknown":
                            return found
    return Value("output", "device")


def returned(flow: Flow, function: Function) -> Value:
    """What a function of the file gives back."""
    return flow.once(function, lambda function: _results(flow, function), UNKNOWN)


def _results(flow: Flow, function: Function) -> Value:
    if function in flow.generators:
        return UNKNOWN
    return join(map(flow.value, flow.results.get(function, ())))


def from_callers(flow: Flow, function: Function, name: str) -> Value:
    """What the calls in this file hand to a parameter, where they agree."""
    found: list[Value] = []
    for site in flow.callers.get(function, ())[:CALLERS]:
        given = argument_of(function, site, name)
        if given is not None:
            found.append(flow.value(given))
    return join(found) if found else UNKNOWN
