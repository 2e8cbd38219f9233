"""Texts that name CUDA or NCCL and of which no rule has said anything: none is passed over in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context
from torchport.rewrite.reports import shown
from torchport.rewrite.spread import GROUPS

NAME = "cuda-text-elsewhere"
TEXT = pattern(r"cuda(:.*)?|nccl|\w+:nccl(,.*)?|.+,\w+:nccl")
BACKEND = (
    "the migrated init_process_group takes this name for the backend of the device; elsewhere it is a name of CUDA"
)


def passed_over(rule: Rule, found: list[Finding], context: Context) -> Iterator[Finding]:
    """A note for each such text that no finding touches, and more beside something that is left for a person."""
    spans = sorted((f.start, f.end) for f in found)
    starts = [f.start for f in found if f.left_for_a_person]
    for node in context.tree.strings:
        if isinstance(context.tree.parents[node], ast.Expr) or not TEXT.fullmatch(shown(node)):
            continue
        start, end = context.text.span(node)
        if any(a < end and start < b for a, b in spans) or _in_shim(context, node):
            continue
        first, last = context.text.span(context.tree.statement(node))
        beside = any(first <= a < last for a in starts) and not isinstance(context.tree.statement(node), ast.ClassDef)
        nccl = "nccl" in shown(node) and any(True for _ in context.uses(*GROUPS))
        yield context.leave(
            rule, node, BACKEND if nccl else rule.reason, effect=None if beside and not nccl else "none"
        )


def _in_shim(context: Context, node: ast.AST) -> bool:
    """Whether the text is handed to a function of the shim, which reads it, or to a process group that was judged."""
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.stmt):
            return False
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name | ast.Attribute):
            found = context.qualify(parent.func)
            if found is not None and (found.name.startswith("torchport.") or found.name in GROUPS):
                return True
    return False
