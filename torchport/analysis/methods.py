"""What a call of a method gives, by what its object is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchport.analysis import calling
from torchport.analysis import operations as ops
from torchport.analysis.names import chain
from torchport.analysis.values import (
    ARRAY,
    MODEL,
    NONE,
    NUMBER,
    ON_DEVICE,
    READ,
    SHAPE,
    TEXT,
    UNKNOWN,
    Value,
    element,
    parts,
    sequence,
)

if TYPE_CHECKING:
    from torchport.analysis.evaluate import Flow


TRANSFORMS = ("torchaudio.", "torchvision.transforms.")
"""Modules that prepare data: that one is called makes no step."""
COMPUTING = ("encod", "decod", "embed", "forward", "feature", "logits", "project")
"""Methods of a module that is not seen which most likely give tensors; another, as ``test``, may give numbers."""


def method(flow: Flow, node: ast.Call, func: ast.Attribute) -> Value:
    """A call of a method."""
    name = func.attr
    if (definition := flow.runs.get(node)) is not None:
        found = calling.returned(flow, definition)
        return found if found.kind != "unknown" else calling.called(flow, node)
    if name in ("register_buffer", "register_parameter") and len(node.args) > 1:
        found = flow.value(node.args[1])
        return found._replace(where="device") if found.is_tensor else ON_DEVICE
    if name in ("add_module", "register_module"):
        return MODEL
    base = flow.value(func.value)
    match base.kind:
        case "tensor" | "output":
            return _tensor_method(flow, node, name, base)
        case "array":
            return Value("number") if name in ("item", "size") else ARRAY
        case "number" | "text" | "shape":
            return NUMBER if base.kind == "shape" else base
        case "list" | "dict" | "loader":
            return _container_method(node, name, base)
        case "model":
            return _model_method(flow, node, func, name)
    return _unknown_method(flow, node, func, name)


def _tensor_method(flow: Flow, node: ast.Call, name: str, base: Value) -> Value:
    if not base.sure and name not in ops.OF_TENSORS:
        return UNKNOWN
    tensor = base._replace(kind="tensor", items=(), fixed=False)
    match name:
        case "item":
            return READ
        case "tolist":
            return sequence(READ) if not base.scalar else READ
        case "numpy":
            return ARRAY
        case "cpu":
            return tensor._replace(where="host")
        case "cuda":
            return tensor._replace(where="device")
        case "to" | "type":
            return _moved(flow, node, tensor)
        case "backward":
            return NONE
        case "get" | "items" | "keys" | "values" if base.kind == "output":
            return Value("output", base.where, sure=False)
    if name in ops.LIKE:
        return Value("tensor", base.where, calling.dtype_of(flow, node, name))
    others = [flow.value(a) for a in node.args]
    if any(o.is_tensor and o.where == "device" for o in others):
        tensor = tensor._replace(where="device")
    return calling.operation(flow, node, name, tensor, node.args)


def _moved(flow: Flow, node: ast.Call, tensor: Value) -> Value:
    """``x.to(...)``: a place, a dtype, or another tensor whose place and dtype it takes."""
    given = [*node.args[:2], *(k.value for k in node.keywords if k.arg in ("device", "dtype", "other"))]
    for argument in given:
        names = chain(argument)
        if names[:1] == ["torch"] and len(names) == 2 and names[1] in calling.DTYPES:
            tensor = tensor._replace(dtype=calling.DTYPES[names[1]])
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            tensor = tensor._replace(where="host" if argument.value == "cpu" else "device")
        elif names[-1:] in (["dtype"], ["torch_dtype"]) or isinstance(argument, ast.Constant):
            continue
        elif isinstance(argument, ast.Attribute) and argument.attr == "device":
            where = flow.value(argument.value).where
            tensor = tensor._replace(where=where or "device")
        elif (value := flow.value(argument)).is_tensor:
            tensor = tensor._replace(where=value.where, dtype=value.dtype)
        elif _is_cpu(flow, argument):
            tensor = tensor._replace(where="host")
        else:
            tensor = tensor._replace(where="device")
    return tensor


def _makes_object(flow: Flow, node: ast.expr) -> bool:
    """``Net()``, ``models.Net(8)``: a class, by its name, that is not of PyTorch and not called after tensors."""
    if not isinstance(node, ast.Call) or flow.name_of(node.func).startswith(("torch.", *TRANSFORMS)):
        return False
    name = (chain(node.func) or [""])[-1]
    return len(name) > 1 and name[0].isupper() and name != "Variable" and not name.endswith("Tensor")


def _is_cpu(flow: Flow, argument: ast.expr) -> bool:
    """``torch.device("cpu")``, also under a name."""
    if isinstance(argument, ast.Name):
        values = flow.made_by(argument)
        return bool(values) and all(not isinstance(v, ast.Name) and _is_cpu(flow, v) for v in values)
    if isinstance(argument, ast.Call):
        return any(isinstance(a, ast.Constant) and a.value == "cpu" for a in argument.args)
    return isinstance(argument, ast.Constant) and argument.value == "cpu"


def _container_method(node: ast.Call, name: str, base: Value) -> Value:
    match name:
        case "values" | "copy":
            return sequence(element(base)) if base.kind == "dict" else base
        case "items":
            return sequence(parts(TEXT, element(base)))
        case "keys":
            return sequence(TEXT)
        case "get" | "pop" | "setdefault":
            return element(base)
        case "index" | "count":
            return NUMBER
    return UNKNOWN


def _model_method(flow: Flow, node: ast.Call, func: ast.Attribute, name: str) -> Value:
    if name in ops.MODEL_METHODS:
        return flow.value(func.value)
    match name:
        case "parameters" | "buffers":
            return sequence(ON_DEVICE)
        case "named_parameters" | "named_buffers":
            return sequence(parts(TEXT, ON_DEVICE))
        case "state_dict":
            return Value("dict", items=(ON_DEVICE,))
        case "modules" | "children":
            return sequence(MODEL)
        case "forward":
            return Value("output", "device")
    if any(part in name.lower() for part in COMPUTING):
        return Value("output", "device", sure=False)
    return calling.called(flow, node)


def _unknown_method(flow: Flow, node: ast.Call, func: ast.Attribute, name: str) -> Value:
    """A method of something unknown: its name may say that it is a tensor."""
    tensor = Value("tensor")
    match name:
        case "item":
            return READ
        case "cpu":
            return Value("tensor", "host")
        case "numpy":
            return ARRAY
        case "tolist":
            return sequence(READ)
        case "cuda" | "to":
            if flow.is_model(func.value):
                return MODEL
            if _makes_object(flow, func.value):
                parent = flow.tree.parents[node]
                target = parent.targets[0] if isinstance(parent, ast.Assign) else func.value
                return MODEL if flow.is_model(target) else UNKNOWN
            return _moved(flow, node, tensor) if name == "to" else tensor._replace(where="device")
        case "size":
            return NUMBER if node.args else SHAPE
    if name in ops.ONLY_TENSORS and name != "backward":
        return calling.operation(flow, node, name, tensor, node.args)
    if name in ops.REDUCTIONS and any(k.arg in ("dim", "keepdim") for k in node.keywords):
        return calling.operation(flow, node, name, tensor, node.args)
    return calling.called(flow, node)
