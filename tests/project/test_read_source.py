"""Bytes to text and back: what is read is written back byte for byte, and what cannot be read says why."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from torchport.model import Problem
from torchport.project.source import MAX_BYTES, Source, decode, encode, is_generated, read_bytes

READABLE = {
    "empty": b"",
    "plain": b"x = 1\n",
    "no newline at the end": b"x = 1",
    "trailing blanks": b"x = 1  \n   \n",
    "crlf": b"x = 1\r\ny = 2\r\n",
    "lf and crlf mixed": b"x = 1\ny = 2\r\n",
    "form feeds": b"x = 1\n\x0c\ndef f():\n\x0c    return 1\n",
    "byte-order mark": codecs.BOM_UTF8 + b"x = 1\n",
    "byte-order mark and crlf": codecs.BOM_UTF8 + b"x = 1\r\n",
    "byte-order mark and nothing": codecs.BOM_UTF8,
    "byte-order mark and cookie": codecs.BOM_UTF8 + b"# -*- coding: utf-8 -*-\nx = '\xc3\xa9'\n",
    "utf-8": "x = 'Grüße 🔥'\n".encode(),
    "line separators that are no line ends": "x = '\u2028\x85\x1c'\n".encode(),
    "latin-1 cookie": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    "cookie in line 2": b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\nx = '\xe9'\n",
    "cookie after a blank line": b"\n# coding=cp1252\nx = '\x80'\n",
    "emacs cookie": b"# -*- coding: latin-1-dos -*-\r\nx = '\xe9'\r\n",
    "gbk cookie": "# coding: gbk\nx = '中文'\n".encode("gbk"),
    "shift_jis cookie": "# coding: shift_jis\nx = 'テスト'\n".encode("shift_jis"),
    "no cookie in line 3": b"x = 1\ny = 2\n# coding: latin-1\n",
    "no cookie after code": b"x = 1\n# coding: latin-1\n",
}


@pytest.mark.parametrize("data", READABLE.values(), ids=READABLE.keys())
def test_comes_back_byte_for_byte(data: bytes) -> None:
    source = decode("a.py", data)
    assert isinstance(source, Source)
    assert encode(source, source.text) == data
    assert not source.text.startswith("\ufeff")


def test_text_is_decoded_with_the_cookie() -> None:
    source = decode("a.py", READABLE["cookie in line 2"])
    assert isinstance(source, Source)
    assert source.encoding == "iso8859-1"
    assert "é" in source.text


@pytest.mark.parametrize("name", ["no cookie in line 3", "no cookie after code"])
def test_a_late_cookie_is_none(name: str) -> None:
    source = decode("a.py", READABLE[name])
    assert isinstance(source, Source)
    assert source.encoding == "utf-8"


def test_new_text_keeps_encoding_and_mark() -> None:
    latin = decode("a.py", READABLE["latin-1 cookie"])
    marked = decode("a.py", READABLE["byte-order mark"])
    assert isinstance(latin, Source)
    assert isinstance(marked, Source)
    assert encode(latin, "x = 'ü'\n") == b"x = '\xfc'\n"
    assert encode(marked, "y = 2\n") == codecs.BOM_UTF8 + b"y = 2\n"
    with pytest.raises(UnicodeEncodeError):
        encode(latin, "x = '中'\n")


UNREADABLE = {
    "invalid utf-8": (b"x = 1\ny = '\xe9'\n", 2, ["not valid UTF-8 at byte 11", "coding: latin-1"]),
    "invalid utf-8 after a mark": (codecs.BOM_UTF8 + b"y = '\xe9'\n", 1, ["at byte 8"]),
    "wrong cookie": (b"# coding: ascii\nx = '\xe9'\n", 2, ["not valid ASCII at byte 21", "correct the cookie"]),
    "unknown cookie": (b"#!/bin/sh\n# coding: utf-9\n", 2, ["unknown encoding, 'utf-9'", "such as utf-8"]),
    "cookie of no text": (b"# coding: base64\nx = 1\n", 1, ["'base64'", "not an encoding of text"]),
    "mark against cookie": (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, ["byte-order mark", "iso8859-1"]),
    "nul byte": (b"x = 1\ny = '\0'\n", 2, ["NUL byte at byte 11", "expected text"]),
    "utf-16": ("x = 'cuda'\n".encode("utf-16"), 1, ["UTF-16", "save the file as UTF-8"]),
    "lone carriage returns": (b"x = 1\ry = 2\r", 1, ["carriage return", "convert the line ends"]),
    "cr, crlf and lf mixed": (b"x = 1\r\ny = 2\nz = 3\rw = 4\n", 3, ["carriage return"]),
    "cr before crlf": (b"x = 1\r\r\n", 1, ["carriage return"]),
    "encoding that does not come back": (b"# coding: iso2022_jp\nx = '\x1b(B\x1b(B'\n", 1, ["save it as UTF-8"]),
}


@pytest.mark.parametrize(("data", "line", "parts"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_says_why_in_one_line(data: bytes, line: int, parts: list[str]) -> None:
    problem = decode("a.py", data)
    assert isinstance(problem, Problem)
    assert problem.line == line
    assert not problem.fatal
    assert "\n" not in problem.message
    for part in parts:
        assert part in problem.message


def test_python_reads_what_is_read_here() -> None:
    """Every readable sample is one that Python itself decodes to the same constants."""
    for data in READABLE.values():
        source = decode("a.py", data)
        assert isinstance(source, Source)
        there, here = {}, {}
        exec(compile(data, "a.py", "exec"), there)
        exec(compile(source.text, "a.py", "exec"), here)
        assert there.get("x") == here.get("x")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    problem = read_bytes(str(tmp_path))
    assert isinstance(problem, Problem)
    assert "is a folder: expected a file" in problem.message


def test_a_vanished_file(tmp_path: Path) -> None:
    problem = read_bytes(str(tmp_path / "gone.py"))
    assert isinstance(problem, Problem)
    assert "is gone" in problem.message


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    problem = read_bytes(str(tmp_path / "pipe.py"))
    assert isinstance(problem, Problem)
    assert "not a regular file" in problem.message


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.py"
    file.touch()
    os.truncate(file, MAX_BYTES)
    assert isinstance(read_bytes(str(file)), bytes)
    os.truncate(file, MAX_BYTES + 100_000)
    problem = read_bytes(str(file))
    assert isinstance(problem, Problem)
    assert "too large (5.1 MB): files of at most 5 MB" in problem.message


def test_generated_marker_counts_in_the_first_ten_lines() -> None:
    marker = b"# @" + b"generated by a tool\n"
    assert is_generated(b"\n" * 9 + marker)
    assert not is_generated(b"\n" * 10 + marker)
    assert not is_generated(b"")
