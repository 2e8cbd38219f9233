"""What must hold of a new text before it may be written."""

from __future__ import annotations

import ast
import warnings

from torchport.analysis.build import build
from torchport.analysis.scopes import Tree
from torchport.rewrite.comments import comments
from torchport.rewrite.imports import unresolved
from torchport.rewrite.placement import WANTED


def parse(text: str, path: str) -> Tree:
    """The tree of a text. Raises SyntaxError, ValueError, RecursionError or MemoryError, as ``ast.parse`` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(ast.parse(text, filename=path))


def fault(before: str, old: Tree, after: str, new: Tree, path: str, commented: bool) -> str:
    """Why ``after``, parsed as ``new``, may not be written in place of ``before``, or an empty text.

    Comments are compared only where an edit took away or put in a ``#``: no other edit can change one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(new.module, path, "exec", dont_inherit=True)
            except RecursionError:  # a tree made of Python objects has less room than a text
                compile(after, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"the result would not compile ({error})"
    if commented and (why := _lost_comment(before, after)):
        return why
    missing = unresolved(new)
    if missing and (missing := missing - unresolved(old)):
        return f"a name would be used that nothing defines: {', '.join(sorted(missing))}"
    return ""


def _lost_comment(before: str, after: str) -> str:
    import tokenize  # few edits touch a comment

    try:
        same = comments(before) == [text for text in comments(after) if text != WANTED]
    except (tokenize.TokenError, SyntaxError) as error:
        return f"its comments could not be compared ({error})"
    return "" if same else "a comment would be lost or changed"
