"""Jupyter notebooks: their code cells as one Python source, and where each of its lines stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchport.lazy import NamedTuple, pattern
from torchport.model import Problem

PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun", "python", "python3"})
"""Cell magics whose cell is Python."""
MAGIC = pattern(r"(?P<indent>\s*)(?:[%!?]|(?P<target>[\w, ]+)=\s*[%!])")
HELP = pattern(r"\s*[\w.%]+\?{1,2}\s*$")


class Notebook(NamedTuple):
    """``lines`` gives the cell, counted from 1 over all cells, and the line in it for each line of ``text``."""

    text: str
    lines: tuple[tuple[int, int], ...]

    def place(self, line: int) -> tuple[int, int]:
        """Cell and line of a line of ``text``."""
        return self.lines[min(line, len(self.lines)) - 1] if self.lines else (0, line)


def read_notebook(data: bytes) -> Notebook | Problem:
    """The Python in a notebook. Magics and shell commands become statements that do nothing, on lines of their own."""
    import json

    try:
        book = json.loads(data)
        if not _is_python(book):
            return Notebook("", ())
        pairs = [pair for number, cell in enumerate(book["cells"], 1) for pair in _lines(number, cell)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Problem(f"is no notebook of version 4 ({type(error).__name__}: {error}): open and save it with Jupyter")
    text = "".join(f"{line}\n" for _, line in pairs)
    return Notebook(text, tuple(place for place, _ in pairs))


def _is_python(book: dict[str, Any]) -> bool:
    meta = book.get("metadata", {})
    language = meta.get("language_info", {}).get("name") or meta.get("kernelspec", {}).get("language") or "python"
    return str(language).lower() == "python"


def _lines(number: int, cell: dict[str, Any]) -> Iterator[tuple[tuple[int, int], str]]:
    """The lines of a code cell with their places."""
    if cell["cell_type"] != "code":
        return
    source = cell["source"]
    lines = (source if isinstance(source, str) else "".join(source)).split("\n")
    first = next((line for line in lines if line.strip()), "")
    foreign = first.startswith("%%") and first[2:].split(maxsplit=1)[:1] not in [[name] for name in PYTHON_MAGICS]
    going_on = False
    for at, line in enumerate(lines, 1):
        plain = line.rstrip("\r")
        if foreign:
            plain = ""
        elif going_on or MAGIC.match(plain) or HELP.match(plain):
            going_on, plain = plain.endswith("\\"), _nothing(plain, going_on)
        yield (number, at), plain


def _nothing(line: str, inside: bool) -> str:
    """A statement in place of a magic or a shell command; what it would assign is unknown."""
    match = None if inside else MAGIC.match(line)
    if match is None or line.lstrip().startswith("%%"):
        return ""
    return f"{match['indent']}{match['target'].strip()} = None" if match["target"] else f"{match['indent']}pass"
