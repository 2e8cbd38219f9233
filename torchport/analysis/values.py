"""What an expression may be, as far as the file shows it: a tensor and where it lives, a number, an array, a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from torchport.lazy import NamedTuple

Kind = Literal[
    "tensor", "output", "number", "array", "list", "dict", "text", "loader", "model", "optimizer", "shape", "none",
    "device", "other", "unknown",
]  # fmt: skip
Where = Literal["", "device", "host"]
Dtype = Literal["", "bool", "int", "float", "double"]
Origin = Literal["", "data", "loop", "random"]


class Value(NamedTuple):
    """``output`` is what a model gives: a tensor, or something whose parts are tensors."""

    kind: Kind
    where: Where = ""
    """Of a tensor: on the device, on the host, or not known."""
    dtype: Dtype = ""
    items: tuple[Value, ...] = ()
    """Of a tuple its parts; of a list, a dict or a loader one value that stands for all."""
    fixed: bool = False
    """Whether ``items`` are the parts one by one."""
    sure: bool = True
    """Whether the file proves it, and does not only make it likely."""
    origin: Origin = ""
    """Of a number: read from a tensor, counted by a loop, drawn at random; of a tensor, what its shape comes from."""
    scalar: bool = False
    """Of a tensor: known to have no dimensions."""

    @property
    def is_tensor(self) -> bool:
        """A tensor, for certain or most likely."""
        return self.kind in ("tensor", "output")

    @property
    def on_device(self) -> bool:
        """A tensor that is not known to live on the host."""
        return self.is_tensor and self.where != "host"


UNKNOWN = Value("unknown")
NONE = Value("none")
NUMBER = Value("number")
TEXT = Value("text")
OTHER = Value("other")
ARRAY = Value("array")
SHAPE = Value("shape")
MODEL = Value("model")
TENSOR = Value("tensor")
ON_DEVICE = Value("tensor", "device")
ON_HOST = Value("tensor", "host")
HOST_BATCH = Value("output", "host", sure=False)
READ = Value("number", origin="data")


def sequence(item: Value) -> Value:
    """A list, set or iterator whose elements are all ``item``."""
    return Value("list", items=(item,))


def parts(*items: Value) -> Value:
    """A tuple of these values."""
    return Value("list", items=items, fixed=True)


def element(value: Value, index: int | None = None) -> Value:
    """What an iteration over ``value``, or an index of it, gives."""
    match value.kind:
        case "list" | "dict" | "loader":
            if not value.items:
                return UNKNOWN
            if value.fixed and index is not None:
                return value.items[index] if -len(value.items) <= index < len(value.items) else UNKNOWN
            return join(value.items)
        case "tensor" | "output":
            return value._replace(kind="tensor", items=(), fixed=False)
        case "shape":
            return NUMBER
        case "array":
            return ARRAY
        case "model":
            return Value("model", sure=value.sure)
        case "text":
            return TEXT
        case _:
            return UNKNOWN


def join(values: Iterable[Value]) -> Value:
    """What holds of all of them. None is left out, since code that uses the value has made sure of it."""
    found = None
    for value in values:
        if value.kind == "none":
            continue
        found = value if found is None or found == value else _join(found, value)
        if found.kind == "unknown":
            return UNKNOWN
    return NONE if found is None else found


def _join(one: Value, other: Value) -> Value:
    if {one.kind, other.kind} == {"tensor", "number"}:
        return (one if one.is_tensor else other)._replace(sure=False)
    if one.is_tensor and other.is_tensor:
        return Value(
            "tensor" if one.kind == other.kind == "tensor" else "output",
            where=one.where if one.where == other.where else "",
            dtype=one.dtype if one.dtype == other.dtype else "",
            sure=one.sure and other.sure,
            origin=one.origin or other.origin,
            scalar=one.scalar and other.scalar,
        )
    if one.kind != other.kind:
        return UNKNOWN
    items: tuple[Value, ...] = ()
    fixed = one.fixed and other.fixed and len(one.items) == len(other.items)
    if fixed:
        items = tuple(join(pair) for pair in zip(one.items, other.items, strict=True))
    elif one.items and other.items:
        items = (join((*one.items, *other.items)),)
    elif one.items or other.items:
        items = (join(one.items or other.items),)  # an empty list is filled later
    return Value(one.kind, items=items, fixed=fixed, sure=one.sure and other.sure, origin=one.origin or other.origin)


def combined(values: Iterable[Value], dtype: Dtype | None = None) -> Value:
    """What an operation on these gives where one is a tensor: on the device if one of them is there."""
    tensors = [value for value in values if value.is_tensor]
    if not tensors:
        return UNKNOWN
    places = {value.where for value in tensors}
    where: Where = "device" if "device" in places else "" if "" in places else "host"
    kinds = {value.dtype for value in tensors}
    if dtype is None:
        dtype = tensors[0].dtype if len(kinds) == 1 else ""
    origins: list[Origin] = [value.origin for value in tensors if value.origin]
    origin: Origin = origins[0] if origins else ""
    sure = any(value.sure for value in tensors)
    return Value("tensor", where, dtype, sure=sure, origin=origin, scalar=all(value.scalar for value in tensors))
