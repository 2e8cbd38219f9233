"""Comments are never lost: found with Python's own tokenizer, since LibCST is not there to ask."""

from __future__ import annotations

import io


def comments(text: str) -> list[str]:
    """All comments, sorted: an edit may move one, never lose it. Raises tokenize.TokenError or SyntaxError."""
    import tokenize  # a file that stays as it is needs none

    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)
