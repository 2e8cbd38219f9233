"""Changes the function, the name of the method or the arguments of one call, in its text.

What is not changed stays as it is written: white space, comments, line breaks, the comma after the last argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from torchport.lazy import NamedTuple, pattern
from torchport.rewrite.text import Text

DEEPEST = 150
"""Brackets deeper than this are left to a person: a parser that goes down with them may not come back."""
_BLANK = rb"(?:[\s\\]|#[^\r\n]*[\r\n])*"
BLANK = pattern(_BLANK)
"""White space, line breaks and comments."""
OPENING = pattern(rb"(?:%b\))*(%b\()" % (_BLANK, _BLANK))
CLOSING = pattern(rb"(?:%b\))*" % _BLANK)
COMMA = pattern(rb"%b,%b" % (_BLANK, _BLANK))
STAR = pattern(rb"\*+%b" % _BLANK)
KEYWORD = pattern(rb"(\w+)(%b=%b)" % (_BLANK, _BLANK))


class TooDeep(ValueError):
    """The expression is nested too deeply to be parsed safely."""


class Arg(NamedTuple):
    """An argument as it is written, with what stands around it."""

    value: str
    keyword: str = ""
    equal: str = "="
    star: str = ""
    comma: str = ""
    """With the white space around it; empty after the last argument."""
    after: str = ""
    """What stands between the last argument and the closing bracket."""


Change = Callable[[list[Arg]], list[Arg]]


class _Call(NamedTuple):
    """The text of a call in pieces; the method is the last name of the function, if that is an attribute."""

    receiver: str
    method: str
    brackets: str
    opening: str
    arguments: list[Arg]

    def text(self, function: str, arguments: Iterable[Arg]) -> str:
        written = (f"{a.star}{a.keyword}{a.keyword and a.equal}{a.value}{a.comma}{a.after}" for a in arguments)
        return f"{function}{self.opening}{''.join(written)})"


def change_call(source: str, func: str | None = None, arguments: Change | None = None) -> str:
    """``source`` is a call: replace its function by ``func`` and its arguments by what the callback gives.

    Raises TooDeep.
    """
    call = _parse(source)
    function = call.receiver + call.method + call.brackets if func is None else func
    return call.text(function, _changed(call, arguments))


def change_method(source: str, name: str, arguments: Change) -> str:
    """``source`` is a method call. Give the method another name and other arguments; the receiver stays.

    Raises TooDeep.
    """
    call = _parse(source)
    return call.text(call.receiver + name + call.brackets, _changed(call, arguments))


def argument(value: str, keyword: str = "") -> Arg:
    """A new argument of a call."""
    return Arg(f"({value})" if "\n" in value else value, keyword)


def with_value(arg: Arg, value: str) -> Arg:
    """The argument with another value; its keyword, white space and comma stay."""
    return arg._replace(value=value)


def with_keyword(arg: Arg, keyword: str) -> Arg:
    """The argument under a keyword, or under another one."""
    return arg._replace(keyword=keyword, equal="=")


def _parse(source: str) -> _Call:
    """A call as it stands in a file, also one that goes over lines without brackets of its own."""
    if max(source.count(opening) for opening in "([{") > DEEPEST:
        raise TooDeep(f"more than {DEEPEST} brackets in one expression")
    text = Text(f"({source})")
    call = ast.parse(text.bytes, mode="eval").body
    assert isinstance(call, ast.Call)
    whole, stop = text.bytes, text.span(call)[1] - 1
    end = text.span(call.func)[1]
    name = end - len(call.func.attr.encode()) if isinstance(call.func, ast.Attribute) else end
    opening = OPENING.match(whole, end)
    assert opening is not None
    at = _skip(BLANK, whole, opening.end(), stop)
    pieces = (whole[1:name], whole[name:end], whole[end : opening.start(1)], whole[opening.start(1) : at])
    found = []
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for node in sorted(given, key=lambda n: (n.lineno, n.col_offset)):
        arg, at = _argument(text, node, at, stop)
        found.append(arg)
    receiver, method, brackets, before = (piece.decode() for piece in pieces)
    return _Call(receiver, method, brackets, before, found)


def _skip(what: re.Pattern[bytes], whole: bytes, start: int, stop: int) -> int:
    found = what.match(whole, start, stop)
    return found.end() if found is not None else start


def _argument(text: Text, node: ast.expr | ast.keyword, start: int, stop: int) -> tuple[Arg, int]:
    """The argument from ``start``, and where the next one starts; ``stop`` is the closing bracket of the call."""
    whole = text.bytes
    value = _skip(STAR, whole, start, stop)
    word = KEYWORD.match(whole, start, stop) if isinstance(node, ast.keyword) and node.arg is not None else None
    keyword, equal = (word[1], word[2]) if word is not None else (b"", b"=")
    value = word.end() if word is not None else value
    if isinstance(node, ast.GeneratorExp) and text.span(node)[1] > stop:  # alone, it takes the brackets of the call
        node = [node.generators[-1].iter, *node.generators[-1].ifs][-1]
    end = _skip(CLOSING, whole, text.span(node)[1], stop)
    comma = _skip(COMMA, whole, end, stop)
    following = _skip(BLANK, whole, comma, stop)
    star = whole[start:value] if word is None else b""
    pieces = whole[value:end], keyword, equal, star, whole[end:comma], whole[comma:following]
    return Arg(*(piece.decode() for piece in pieces)), following


def _changed(call: _Call, change: Change | None) -> list[Arg]:
    """The arguments, separated as the old ones were, with or without a comma after the last."""
    old = call.arguments
    args = change([*old]) if change is not None else old
    if not args or change is None:
        return args
    between = next((a.comma for a in old[:-1]), ", ")
    fixed = [a if a.comma and a is not old[-1] else a._replace(comma=between) for a in args[:-1]]
    end = args[-1]._replace(comma=old[-1].comma if old else "")
    if old and old[-1] is not args[-1]:
        end = end._replace(after=old[-1].after)
    return [*fixed, end]
