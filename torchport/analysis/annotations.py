"""What a type annotation says of a value."""

from __future__ import annotations

import ast

from torchport.analysis.index import Index
from torchport.analysis.names import chain
from torchport.analysis.values import (
    ARRAY,
    HOST_BATCH,
    MODEL,
    NONE,
    NUMBER,
    SHAPE,
    TENSOR,
    TEXT,
    UNKNOWN,
    Value,
    join,
    parts,
    sequence,
)

ANNOTATIONS = {
    "int": NUMBER, "float": NUMBER, "bool": NUMBER, "str": TEXT, "torch.Tensor": TENSOR, "numpy.ndarray": ARRAY,
    "torch.nn.Module": MODEL, "torch.device": Value("device"), "torch.Size": SHAPE, "torch.optim.Optimizer":
    Value("optimizer"), "torch.LongTensor": TENSOR, "torch.FloatTensor": TENSOR, "torch.BoolTensor":
    Value("tensor", dtype="bool"), "torch.utils.data.DataLoader": Value("loader", items=(HOST_BATCH,)),
    "Tensor": TENSOR,
}  # fmt: skip


def annotated(index: Index, node: ast.expr) -> Value:
    """What an annotation says of a value."""
    name = index.name_of(node) or (node.id if isinstance(node, ast.Name) else "")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
    if name in ANNOTATIONS:
        return ANNOTATIONS[name]
    if isinstance(node, ast.BinOp):
        return join((annotated(index, node.left), annotated(index, node.right)))
    if isinstance(node, ast.Constant) and node.value is None:
        return NONE
    if isinstance(node, ast.Subscript):
        base = chain(node.value)[-1:] or [""]
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match base[0]:
            case "Optional" | "Union" | "Final":
                return join(annotated(index, part) for part in inner)
            case "List" | "list" | "Sequence" | "Iterable" | "Iterator":
                return sequence(annotated(index, inner[0]))
            case "Dict" | "dict" | "Mapping":
                return Value("dict", items=(annotated(index, inner[-1]),))
            case "Tuple" | "tuple":
                return parts(*(annotated(index, part) for part in inner))
    return UNKNOWN
