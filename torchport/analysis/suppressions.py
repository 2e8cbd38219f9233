"""Comments that silence findings: ``# torchport: ignore[TP701] reason`` and ``# torchport: skip-file reason``."""

from __future__ import annotations

import io
import re
import token as kinds
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.lazy import NamedTuple, pattern

if TYPE_CHECKING:
    import tokenize

MARK = "torchport:"
COMMENT = pattern(r"#\s*torchport:\s*(?P<verb>[\w-]*)(?:\s*\[(?P<codes>[^\]]*)\])?(?P<reason>.*)", re.DOTALL)
SKIP_FILE = pattern(r"^[ \t]*#\s*torchport:\s*skip-file\b", re.MULTILINE)
REASON = " \t:-\N{EM DASH}\N{EN DASH}"
"""What may stand before a reason."""
VERBS = ("ignore", "skip-file")
OPEN = frozenset({kinds.NL, kinds.COMMENT, kinds.INDENT, kinds.DEDENT, kinds.NEWLINE, kinds.ENCODING})


class Suppression(NamedTuple):
    """One comment. Lines and columns count from 1, columns in characters."""

    line: int
    column: int
    end_column: int
    covers: int
    """The line that it silences: its own, or the next one with code where it stands alone on its line."""
    verb: str
    codes: tuple[str, ...]
    """Codes, beginnings of codes, or names of rules; none means every rule."""
    reason: str

    def names(self, code: str, name: str) -> bool:
        """Whether it is about the rule of this code and name."""
        return not self.codes or any(code.startswith(word.upper()) or word.lower() == name for word in self.codes)


def suppressions(text: str) -> list[Suppression]:
    """All of them, in order. Raises tokenize.TokenError or SyntaxError."""
    return list(_read(text)) if MARK in text else []


def suppressions_in_settings(text: str) -> list[Suppression]:
    """All of them in a file whose comments begin with ``#``, as those of YAML, TOML and of the shell do."""
    found = []
    lines = re.split(r"\r\n|\n|\r", text) if MARK in text else []
    for number, line in enumerate(lines, 1):
        match = COMMENT.search(line)
        if match is None or not (match.start() == 0 or line[match.start() - 1].isspace()):
            continue
        covers = number
        if not line[: match.start()].strip():
            rest = enumerate(lines[number:], number + 1)
            covers = next((n for n, other in rest if other.strip() and not other.lstrip().startswith("#")), number)
        codes = tuple(word.strip() for word in (match["codes"] or "").split(",") if word.strip())
        reason = match["reason"].strip(REASON)
        found.append(Suppression(number, match.start() + 1, len(line) + 1, covers, match["verb"], codes, reason))
    return found


def skips_file(text: str) -> bool:
    """Whether the file asks to be left alone; found without parsing it."""
    return MARK in text and SKIP_FILE.search(text) is not None


def _read(text: str) -> Iterator[Suppression]:
    import tokenize  # few files have such a comment

    waiting: list[tuple[tokenize.TokenInfo, re.Match[str]]] = []
    code_line = 0
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == kinds.COMMENT:
            if match := COMMENT.search(token.string):
                if code_line == token.start[0]:
                    yield _suppression(token, match, code_line)
                else:
                    waiting.append((token, match))
        elif token.type not in OPEN:
            code_line = token.end[0]
            yield from (_suppression(*pair, token.start[0]) for pair in waiting)
            waiting.clear()
    yield from (_suppression(*pair, pair[0].start[0]) for pair in waiting)


def _suppression(token: tokenize.TokenInfo, match: re.Match[str], covers: int) -> Suppression:
    codes = tuple(word.strip() for word in (match["codes"] or "").split(",") if word.strip())
    reason = match["reason"].strip(REASON)
    line, column = token.start
    start = column + match.start()
    return Suppression(line, start + 1, column + len(token.string) + 1, covers, match["verb"], codes, reason)
