"""Notebooks: their Python, and where each line of it stands."""

from __future__ import annotations

import ast
import json

import pytest

from torchport.model import Problem
from torchport.project.notebook import Notebook, read_notebook


def notebook(*cells: str | list[str], kind: str = "code", **metadata: object) -> bytes:
    made = [{"cell_type": kind, "metadata": {}, "source": source, "outputs": []} for source in cells]
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


def read(*cells: str | list[str]) -> Notebook:
    book = read_notebook(notebook(*cells))
    assert isinstance(book, Notebook)
    ast.parse(book.text)
    return book


def test_lines_know_their_cells() -> None:
    book = read("import torch\nx = 1", ["y = 2\n", "z = 3"], "")
    assert book.text == "import torch\nx = 1\ny = 2\nz = 3\n\n"
    assert [book.place(line) for line in (1, 2, 3, 4, 5, 99)] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 1)]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1\n"),
        ("!pip install a \\\n  b\nx = 1", "pass\n\nx = 1\n"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    pass\n    y = 1\n"),
        ("a, b = !ls\nfiles = %sx ls", "a, b = None\nfiles = None\n"),
        ("x.cuda?\nx = 1", "\nx = 1\n"),
        ("?x\nx = 1", "pass\nx = 1\n"),
        ("%%time\nx = 1", "\nx = 1\n"),
        ("\n%%capture out\nx = 1", "\n\nx = 1\n"),
        ("%%bash\nrm -rf build\nif then", "\n\n\n"),
        ("x = 5 %3\ny = f'%s'", "x = 5 %3\ny = f'%s'\n"),
    ],
)
def test_magics_become_statements_that_do_nothing(cell: str, text: str) -> None:
    assert read(cell).text == text


def test_other_cells_and_other_languages_hold_no_python() -> None:
    for data in (notebook("# x.cuda()", kind="markdown"), notebook("x", language_info={"name": "julia"})):
        assert read_notebook(data) == Notebook("", ())


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"cells": 3}', b'{"cells": [{}]}', b"\xff", b"[" * 100_000, b'"x"']
)
def test_what_is_no_notebook_is_a_problem(data: bytes) -> None:
    book = read_notebook(data)
    assert isinstance(book, Problem)
    assert book.message.startswith("is no notebook of version 4")
