"""Bytes of a Python file to text and back, without losing one byte: encoding cookie, byte-order mark, line ends."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat

from torchport.lazy import NamedTuple, pattern
from torchport.model import Problem

MAX_BYTES = 5_000_000
"""Larger files are data or machine output; they are reported, not read."""

UTF8_BOM = codecs.BOM_UTF8
UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_COOKIE = pattern(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_BLANK_OR_COMMENT = pattern(rb"[ \t\f]*(?:#.*)?\r?$", re.ASCII)
_LONE_CR = pattern(r"\r(?!\n)")
_GENERATED = b"@" + b"generated"


class Source(NamedTuple):
    """One file, decoded. ``text`` has no byte-order mark; its line ends are those of the file."""

    path: str
    text: str
    encoding: str
    bom: bool


def read_bytes(path: str) -> bytes | Problem:
    """The content of a regular file of at most MAX_BYTES bytes."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return Problem("is a folder: expected a file; give the folder itself to take all files in it")
        if not stat.S_ISREG(status.st_mode):
            return Problem("is not a regular file (a pipe, a socket or a device): expected a Python file on disk")
        if status.st_size > MAX_BYTES:
            return Problem(_too_large(status.st_size))
        with io.FileIO(path) as file:
            return file.readall()
    except FileNotFoundError:
        return Problem("is gone: it was listed a moment ago and does not exist now; run again")
    except OSError as error:
        why = error.strerror or str(error)
        return Problem(f"cannot be read ({why}): expected a readable file; check its permissions and its disk")


def _too_large(size: int) -> str:
    limit = MAX_BYTES // 1_000_000
    return f"is too large ({size / 1e6:.1f} MB): files of at most {limit} MB are read; split or --exclude it"


def is_generated(data: bytes) -> bool:
    """Whether one of the first ten lines carries the marker of generated code."""
    head = data.split(b"\n", 10)[:10]
    return any(_GENERATED in line for line in head)


def decode(path: str, data: bytes) -> Source | Problem:
    """Decode as Python itself does (PEP 263), and refuse what Python or an editor would read in another way."""
    if data.startswith(UTF16_BOMS):
        return Problem("is UTF-16: Python reads UTF-8 or the encoding of a cookie; save the file as UTF-8", line=1)
    bom = data.startswith(UTF8_BOM)
    body = data[len(UTF8_BOM) :] if bom else data
    if b"\0" in body:
        at = body.index(b"\0")
        return Problem(f"has a NUL byte at byte {at + len(data) - len(body)}: expected text", line=_line_of(body, at))
    cookie = _cookie(body)
    if isinstance(cookie, Problem):
        return cookie
    encoding = cookie or "utf-8"
    if bom and encoding != "utf-8":
        return Problem(f"starts with a UTF-8 byte-order mark but its cookie says {encoding}: remove one", line=1)
    text = _text(body, encoding, len(data) - len(body), named=cookie is not None)
    if isinstance(text, Problem):
        return text
    return _line_end_problem(text) or Source(path, text, encoding, bom)


def encode(source: Source, new_text: str) -> bytes:
    """The bytes of ``new_text`` in the file's own encoding, the exact inverse of ``decode``.

    Raises UnicodeEncodeError where ``new_text`` has a character that this encoding lacks.
    """
    body = new_text.encode(source.encoding)
    return UTF8_BOM + body if source.bom else body


def encoded(source: Source, new_text: str) -> bytes | Problem:
    """As ``encode``, with a Problem where the file's encoding lacks a character."""
    try:
        return encode(source, new_text)
    except UnicodeEncodeError as error:
        what = f"the new text has a character that {source.encoding} lacks ({error.object[error.start]!r})"
        return Problem(f"{what}: left as it was; save the file as UTF-8")


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _cookie(body: bytes) -> str | Problem | None:
    """The encoding named in the first two lines, as Python's codec registry calls it; None where there is none."""
    for number, line in enumerate(body.split(b"\n", 2)[:2], start=1):
        if b"coding" in line and (match := _COOKIE.match(line)):
            return _known(match[1].decode("ascii"), number)
        if number == 1 and not _BLANK_OR_COMMENT.match(line):
            return None
    return None


def _known(name: str, line: int) -> str | Problem:
    try:
        info = codecs.lookup(_without_line_end_suffix(name))
    except LookupError:
        return Problem(f"names an unknown encoding, {name!r}: expected one that Python knows, such as utf-8", line=line)
    if not getattr(info, "_is_text_encoding", True):
        return Problem(f"names {name!r}, which is not an encoding of text: expected one such as utf-8", line=line)
    return "utf-8" if info.name == "utf-8-sig" else info.name


def _without_line_end_suffix(name: str) -> str:
    """Emacs writes ``utf-8-unix`` and ``latin-1-dos``; Python reads these two families by their beginning."""
    lowered = name.lower().replace("_", "-")
    for known in ("utf-8", "latin-1", "iso-8859-1", "iso-latin-1"):
        if lowered == known or lowered.startswith(known + "-"):
            return "utf-8" if known == "utf-8" else "latin-1"
    return name


def _text(body: bytes, encoding: str, shift: int, *, named: bool) -> str | Problem:
    """Decode; ``shift`` is the length of the byte-order mark, so that offsets are those of the file."""
    try:
        text = body.decode(encoding)
        same = text.encode(encoding) == body
    except UnicodeDecodeError as error:
        hint = "correct the cookie" if named else "save it as UTF-8, or add a cookie such as # -*- coding: latin-1 -*-"
        what = f"is not valid {encoding.upper()} at byte {error.start + shift}: expected text in that encoding; {hint}"
        return Problem(what, line=_line_of(body, error.start))
    except UnicodeError as error:
        return Problem(f"cannot be decoded as {encoding} ({error}): save it as UTF-8", line=1)
    if not same:
        return Problem(f"does not come back the same from {encoding}: save it as UTF-8", line=1)
    return text


def _line_end_problem(text: str) -> Problem | None:
    match = _LONE_CR.search(text) if "\r" in text else None
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    return Problem(
        "has a carriage return that is no part of a CRLF: Python and editors count its lines differently;"
        " convert the line ends to LF or CRLF",
        line=line,
    )
