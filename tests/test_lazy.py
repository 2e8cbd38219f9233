"""Patterns that are compiled at their first use do what compiled ones do."""

from __future__ import annotations

import copy
import re

import pytest

from torchport.lazy import METHODS, pattern


@pytest.mark.parametrize("name", METHODS)
def test_each_method_is_that_of_the_compiled_pattern(name: str) -> None:
    arguments = ("_", "ab1cd22") if name == "sub" else ("ab1cd22",)
    ours, theirs = (getattr(made, name)(*arguments) for made in (pattern(r"\d+"), re.compile(r"\d+")))
    if name == "finditer":
        ours, theirs = [found.span() for found in ours], [found.span() for found in theirs]
    assert str(ours) == str(theirs)


def test_it_is_compiled_once_and_only_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    plain = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or plain(*given))
    made = pattern(r"x+", re.IGNORECASE)
    assert compiled == []
    assert [bool(made.search(text)) for text in ("aXXb", "x", "y")] == [True, True, False]
    assert compiled == [(r"x+", re.IGNORECASE)]


def test_bytes_and_errors() -> None:
    assert pattern(rb"\w").findall(b"ab") == [b"a", b"b"]
    with pytest.raises(re.error):
        pattern("(").search("")
    with pytest.raises(AttributeError, match="flags"):
        pattern("a").flags  # noqa: B018
    assert copy.copy(pattern("a")).search("a")
