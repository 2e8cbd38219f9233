"""What is not changed in a call or an import stays as it is written, wherever blanks, comments and brackets stand."""

from __future__ import annotations

import ast

import pytest

from torchport.rewrite.calls import Arg, TooDeep, argument, change_call, change_method, with_keyword, with_value
from torchport.rewrite.imports import without

MANY = "f(\r\n    a,  # first, (one\r\n    *b ,\r\n    k = (c),  # k = 2\r\n    ** d,\r\n)"


def _without_first(old: list[Arg]) -> list[Arg]:
    return old[1:]


def _without_last(old: list[Arg]) -> list[Arg]:
    return old[:-1]


def _with_one_more(old: list[Arg]) -> list[Arg]:
    return [*old, argument("1", "n")]


def _named(old: list[Arg]) -> list[Arg]:
    return [with_keyword(a, f"k{i}") for i, a in enumerate(old)]


@pytest.mark.parametrize(
    "source", ["f()", "f( )", "f(\n# nothing\n)", "f ( a )", "(f) (a,)", "f(x for x in (y) )", "f(é, 'ü', z)", MANY]
)
def test_unchanged(source: str) -> None:
    assert change_call(source, None, lambda old: old) == change_call(source) == source


@pytest.mark.parametrize(
    ("source", "change", "new"),
    [
        ("g(a, b)", _without_first, "f(b)"),
        ("g(a, b)", _without_last, "f(a)"),
        ("g(a)", _without_last, "f()"),
        ("g()", _with_one_more, "f(n=1)"),
        ("g(a)", _with_one_more, "f(a, n=1)"),
        ("(g) (a,b,)", _with_one_more, "f (a,b,n=1,)"),
        ("g((a), *b)", _without_last, "f((a))"),
        ("g(\n    a,  # why\n    b\n)", _without_last, "f(\n    a\n)"),
        ("g(\n    a,  # why\n    b,\n)", _with_one_more, "f(\n    a,  # why\n    b,  # why\n    n=1,\n)"),
        ("g(a, c = (b))", _named, "f(k0=a, k1=(b))"),
        ("g(lambda a, b=(1, 2): (a), [x, y], d)", _without_first, "f([x, y], d)"),
        ("g(x for x in y if (x))", _with_one_more, "f(x for x in y if (x), n=1)"),
        (MANY, _without_first, "f(\r\n    *b ,\r\n    k = (c),  # k = 2\r\n    ** d,\r\n)"),
    ],
)
def test_changed(source: str, change: object, new: str) -> None:
    assert change_call(source, "f", change) == new  # type: ignore[arg-type]


def test_value_keeps_its_keyword_and_its_comma() -> None:
    assert change_call("f(k = (a) , j=b)", None, lambda old: [with_value(old[0], "c"), old[1]]) == "f(k = c , j=b)"


def test_value_over_lines_has_brackets() -> None:
    assert change_call("f()", None, lambda _: [argument("a +\n b")]) == "f((a +\n b))"


@pytest.mark.parametrize(
    ("source", "new"),
    [
        ("x.cuda()", "x.to(d)"),
        ("(x . # cuda\n cuda )(1)", "(x . # cuda\n to )(d)"),
        ("ä(cuda).cuda (\n)", "ä(cuda).to (\nd)"),
    ],
)
def test_method(source: str, new: str) -> None:
    assert change_method(source, "to", lambda _: [argument("d")]) == new


def test_too_deep() -> None:
    with pytest.raises(TooDeep, match="brackets"):
        change_call(f"f({'[' * 151}{']' * 151})", "g")


@pytest.mark.parametrize(
    ("source", "new"),
    [
        ("from a import b, c as d, e", "from a import b, e"),
        ("from a import (b,\n    c as d , # why\n    e,\n)", "from a import (b,\n    e,\n)"),
        ("from a import (  b,\r\n  e, c as d)", "from a import (  b,\r\n  e)"),
        ("import a.b , c as d", "import a.b"),
    ],
)
def test_import(source: str, new: str) -> None:
    assert without(source, [ast.alias("c", "d")]) == new
