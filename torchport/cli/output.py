"""How commands print: results to stdout, everything else to stderr, colour on a terminal only."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO

from torchport.report.text import Style

FAILED = 2
HEAP = 500


class RunFailed(Exception):
    """The run itself failed; the message is one line."""


class WrongUsage(Exception):
    """The options or arguments cannot be meant; the message is one line, to stand below how the command is used."""


def prepare_streams() -> None:
    """Never fail on a character that the terminal cannot show, nor where there is no stream at all (``>&-``)."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence_stdout() -> None:
    """What could not be printed must not raise once more when the interpreter flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def style_for(stream: IO[str]) -> Style:
    """Colour where ``stream`` is a terminal and NO_COLOR is not set, or where FORCE_COLOR is."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return Style(False)
    return Style(bool(os.environ.get("FORCE_COLOR")) or stream.isatty())


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines as they are, colours included."""
    stream = sys.stderr if err else sys.stdout
    for some in _batches(lines):
        stream.write("".join(f"{line}\n" for line in some))
    if err:
        stream.flush()


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines in heaps: each call of ``write`` may be one of the system."""
    rest = iter(lines)
    while some := list(islice(rest, HEAP)):
        yield some


def print_error(message: str) -> None:
    """One line on stderr."""
    word = style_for(sys.stderr).paint("error:", "red")
    print_lines([f"{word} {message}"], err=True)


def print_note(message: str) -> None:
    """One line on stderr."""
    print_lines([f"note: {message}"], err=True)


def print_bytes(data: bytes) -> None:
    """Print bytes as they are: a diff has the encoding of the file."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
