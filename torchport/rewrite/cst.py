"""The only place that imports LibCST: it parses and changes the one expression or statement that is rewritten.

White space, comments, trailing commas and line breaks inside it are kept by LibCST, everything around it by the splice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from torchport.lazy import pattern

if TYPE_CHECKING:
    import libcst as cst

DEEPEST = 150
"""Brackets deeper than this are left to a person: LibCST's parser takes the process down at some thousands."""
PLAIN = pattern(r"[\w.]+")
"""A chain with nothing in it to keep; LibCST takes longer to be imported than a small file to be examined."""


class TooDeep(ValueError):
    """The expression is nested too deeply to be parsed safely."""


def newline_of(source: str) -> str:
    """How lines end inside an expression."""
    return "\r\n" if "\r\n" in source else "\n"


def parse(source: str) -> cst.BaseExpression:
    """An expression as it stands in a file, also one that goes over lines without brackets of its own."""
    import libcst as cst

    if max(source.count(opening) for opening in "([{") > DEEPEST:
        raise TooDeep(f"more than {DEEPEST} brackets in one expression")
    return cst.parse_expression(f"({source})", cst.PartialParserConfig(default_newline=newline_of(source)))


def code(node: cst.CSTNode, source: str) -> str:
    """What an expression from :func:`parse` has become, without the added brackets, lines ended as in ``source``."""
    import libcst as cst

    return cst.Module([], default_newline=newline_of(source)).code_for_node(node)[1:-1]


def change_call(
    source: str,
    func: str | None = None,
    arguments: Callable[[list[cst.Arg]], list[cst.Arg]] | None = None,
) -> str:
    """``source`` is a call: replace its function by ``func`` and its arguments by what the callback gives."""
    import libcst as cst

    call = cst.ensure_type(parse(source), cst.Call)
    if func is not None:
        call = call.with_changes(func=cst.parse_expression(func))
    if arguments is not None:
        args = list(call.args)
        call = call.with_changes(args=_commas(args, arguments(args)))
    return code(call, source)


def change_method(source: str, name: str, arguments: Callable[[list[cst.Arg]], list[cst.Arg]]) -> str:
    """``source`` is a method call. Give the method another name and other arguments; the receiver stays."""
    import libcst as cst

    call = cst.ensure_type(parse(source), cst.Call)
    func = cst.ensure_type(call.func, cst.Attribute).with_changes(attr=cst.Name(name))
    args = list(call.args)
    return code(call.with_changes(func=func, args=_commas(args, arguments(args))), source)


def replace_name(source: str, new: str) -> str:
    """``source`` is a name or a dotted chain: put ``new`` in its place, brackets and comments around it kept."""
    if PLAIN.fullmatch(source):
        return new
    import libcst as cst

    old = parse(source)
    fresh = cst.parse_expression(new)
    return code(fresh.with_changes(lpar=[*old.lpar, *fresh.lpar], rpar=[*fresh.rpar, *old.rpar]), source)


def argument(value: str, keyword: str | None = None, *, star: str = "") -> cst.Arg:
    """A new argument of a call."""
    import libcst as cst

    expression = cst.parse_expression(f"({value})" if "\n" in value else value)
    if keyword is None:
        return cst.Arg(expression, star=star)  # type: ignore[arg-type]
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(expression, keyword=cst.Name(keyword), equal=equal)


def with_value(arg: cst.Arg, value: str) -> cst.Arg:
    """The argument with another value; its keyword, white space and comma stay."""
    import libcst as cst

    return arg.with_changes(value=cst.parse_expression(value))


def with_keyword(arg: cst.Arg, keyword: str) -> cst.Arg:
    """A positional argument made a keyword."""
    import libcst as cst

    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return arg.with_changes(keyword=cst.Name(keyword), equal=equal)


def source_of(arg: cst.Arg) -> str:
    """The source of an argument's value."""
    import libcst as cst

    return cst.Module([]).code_for_node(arg.value)


def keyword_of(arg: cst.Arg) -> str:
    """The keyword of an argument, or an empty text."""
    return arg.keyword.value if arg.keyword is not None else ""


def _commas(old: list[cst.Arg], new: Iterable[cst.Arg]) -> list[cst.Arg]:
    """Separate the arguments as the old ones were, with or without a comma after the last."""
    import libcst as cst

    args = list(new)
    if not args:
        return []
    last = old[-1].comma if old else cst.MaybeSentinel.DEFAULT
    separator = next((a.comma for a in old[:-1] if isinstance(a.comma, cst.Comma)), None)
    between = separator or cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    fixed = [
        a if isinstance(a.comma, cst.Comma) and a is not old[-1] else a.with_changes(comma=between) for a in args[:-1]
    ]
    end = args[-1].with_changes(comma=last)
    if old and old[-1] is not args[-1]:
        end = end.with_changes(whitespace_after_arg=old[-1].whitespace_after_arg)
    return [*fixed, end]
