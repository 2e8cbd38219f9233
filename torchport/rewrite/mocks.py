"""Names that a file replaces while a test runs: what is asked of them there stays with what is patched."""

from __future__ import annotations

import ast

from torchport.analysis.names import canonical, line_mark
from torchport.analysis.parts import word_of
from torchport.analysis.scopes import FUNCTIONS
from torchport.lazy import words
from torchport.rewrite.context import Context

ASKED = words(
    r"\.(assert_\w+|call_count|called|call_args(_list)?|mock_calls|method_calls|return_value|side_effect|reset_mock)$"
)
"""What a mock has and a function has not."""
AS_MOCK = "it is asked as a mock, which stands in the place of torch.cuda's; patch the name that the program calls now"
REPLACED = "this test puts another in its place on {}; patch the name that the program calls now, and ask that one"
SAID_BY = (b"patch", b"setattr", b"mock")


def why_it_stays(context: Context, node: ast.AST, name: str) -> str:
    """Why ``torch.cuda.NAME`` stays where it is mocked, or nothing."""
    if ASKED.search(name):
        return AS_MOCK
    for function, line in context.once(_replaced).get(name, ()):
        if function is None or function in context.tree.ancestors(node):
            return REPLACED.format(line_mark(line))
    return ""


def _replaced(context: Context) -> dict[str, list[tuple[ast.AST | None, int]]]:
    """Names that are patched by their text or as an attribute of a module, each with the function it is done for."""
    found: dict[str, list[tuple[ast.AST | None, int]]] = {}
    for call in context.tree.calls if any(word in context.text.bytes for word in SAID_BY) else ():
        if name := _patched(context, call):
            decorated = next((d for d in context.tree.definitions if call in d.decorator_list), None)
            around = decorated or context.tree.function(call)
            found.setdefault(name, []).append((around if isinstance(around, FUNCTIONS) else None, call.lineno))
    return found


def _patched(context: Context, call: ast.Call) -> str:
    """What ``patch("torch.x")``, ``patch.object(torch.cuda, "x")`` or ``setattr(torch.cuda, "x", y)`` replaces."""
    if word_of(call.func) not in ("patch", "object", "setattr") or not call.args:
        return ""
    texts = [a.value for a in call.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    first = call.args[0]
    if len(texts) == 1 and isinstance(first, ast.Name | ast.Attribute):
        owner = context.qualify(first)
        return canonical(f"{owner.name}.{texts[0]}") if owner is not None else ""
    return canonical(texts[0]) if texts and texts[0].startswith("torch.") else ""
