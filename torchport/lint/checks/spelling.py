"""How a file writes what a fix needs."""

from __future__ import annotations

import ast

from torchport.rewrite.context import Context


def torch_name(context: Context) -> str:
    """What PyTorch is called in this file, or nothing where it is not imported by that name alone."""
    for name, bindings in context.tree.scope.names.items():
        if len(bindings) == 1 and bindings[0].target == "torch" and isinstance(bindings[0].node, ast.Import):
            return name
    return ""
