"""What a file of settings says: keys and values of YAML, JSON, TOML and INI, read without their libraries.

Comments are left out, and so is text that runs over several lines, unless its key says that it is a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.analysis.launchers import Fact, launcher_facts, package, plain, shell_facts
from torchport.lazy import NamedTuple

COMMANDS = re.compile(
    r"(?:.*_)?(?:runs?|scripts?|commands?|cmds?|args|arguments|entrypoint|launch(?:er)?|exec|shell|setup|recipe)(?:_.*)?",
    re.IGNORECASE,
)
"""Keys whose values are commands."""
DEPENDENCIES = re.compile(r"(?:.*[.-])?(?:dependencies|dependency-groups|requires|install_requires|pip)(?:\..*)?")
"""Keys and sections that list packages."""
OPTIONS = re.compile(r"--?[a-zA-Z]|.*\s--[a-zA-Z]", re.DOTALL)
OPTION = re.compile(r"--?[a-zA-Z][\w.-]*")
FLOW = re.compile(
    r"""(?P<space>\s+)|(?P<comment>\#[^\n]*|//[^\n]*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<mark>[{}\[\],])
    |(?P<colon>:(?=[\s"'\[{]|$))
    |(?P<plain>[^\s,\[\]{}:="'](?:[^,\[\]{}:=\n"']|:(?!\s)|=(?!\s))*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
KEY = re.compile(r"(\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s#\"'\[\]{},|>&*!%@`][^\n#]*?)[ \t]*:(?=\s|$)[ \t]*")
DASH = re.compile(r"-(?:[ \t]+|(?=\r?$))", re.MULTILINE)
TAGS = re.compile(r"(?:[&!][^\s,]*[ \t]+)+")
SECTION = re.compile(r"[ \t]*\[{1,2}[ \t]*([^\[\]\n]+)\]{1,2}[ \t]*(?:[#;].*)?")
PAIR = re.compile(r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s#;=:\[\"'][^=:\n#]*?)[ \t]*[=:][ \t]*")


class Setting(NamedTuple):
    """A value with the last keys around it, its own at the end; an item of a list has those of the list."""

    keys: tuple[str, ...]
    value: str
    start: int
    end: int
    is_block: bool = False
    """Lines of text, which are a script where the key says so."""


def settings_facts(text: str, suffix: str) -> Iterator[Fact]:
    """What a file asks for, in order; ``suffix`` says in which language it is."""
    if suffix == ".txt":
        yield from _requirements(text)
        return
    if suffix == ".json":
        settings, _ = _flow(text, 0, ())
    else:
        settings = list(_yaml(text) if suffix in (".yaml", ".yml") else _ini(text))
    for number, setting in enumerate(settings):
        yield from _facts(setting)
        after = settings[number + 1] if number + 1 < len(settings) else None
        if after and after.keys == setting.keys and OPTION.fullmatch(setting.value) and after.value[:1] != "-":
            yield Fact("setting", setting.value, plain(after.value), setting.start, after.end)


def _facts(setting: Setting) -> Iterator[Fact]:
    keys, value, start, end, is_block = setting
    name = keys[-1] if keys else ""
    around = keys[-2] if len(keys) > 1 else ""
    command = COMMANDS.fullmatch(name.replace("-", "_")) is not None
    if is_block:
        if command:
            yield from (f._replace(start=f.start + start, end=f.end + start) for f in launcher_facts(value))
        return
    yield Fact("setting", name, plain(value), start, end, around)
    if any(DEPENDENCIES.fullmatch(key) for key in keys[-2:]):
        yield package(value, start, end)
        yield package(name, start, end)._replace(value=value)
    if command or OPTIONS.match(value) or re.match(r"[A-Z][A-Z0-9_]+=", value):
        yield from shell_facts(value, start)


def _requirements(text: str) -> Iterator[Fact]:
    """The packages of a ``requirements.txt``, and the options of its lines."""
    for line in re.finditer(r"^[ \t]*([^\s#][^\n]*?)[ \t\r]*(?:\s#[^\n]*)?$", text, re.MULTILINE):
        if line[1].startswith("-"):
            yield from shell_facts(line[1], line.start(1))
        else:
            yield package(line[1], line.start(1), line.end(1))


def _yaml(text: str) -> Iterator[Setting]:
    """The scalars of a YAML file. ``around`` holds the keys that the line stands under, with their columns."""
    around: list[tuple[int, str]] = []
    position = 0
    while position < len(text):
        end = _line_end(text, position)
        at = _skip_blanks(text, position, end)
        if at >= end or text[at] in "#%" or text.startswith(("---", "..."), at):
            position = end + 1
            continue
        column, dashed = at - position, False
        while dash := DASH.match(text, at, end):
            around = [entry for entry in around if entry[0] < column or (entry[0] == column and not dashed)]
            at, dashed = dash.end(), True
            column = at - position
        key = KEY.match(text, at, end)
        if not dashed or key:
            around = [entry for entry in around if entry[0] < column]
        base = column
        if key:
            around.append((column, _unquoted(key[1])))
            at = key.end()
        if tags := TAGS.match(text, at, end):
            at = tags.end()
        keys = tuple(name for _, name in around)
        if at < end and text[at] in "|>":
            block_end = _block_end(text, end + 1, base if key else base - 1)
            yield Setting(keys, text[end + 1 : block_end], end + 1, block_end, is_block=True)
            position = block_end
            continue
        if at < end and text[at] in "[{":
            found, end = _flow(text, at, keys)
            yield from found
            end = _line_end(text, end)
        elif at < end and text[at] != "#" and (key or dashed or _continues_command(keys)):
            value, start = _scalar(text, at, end)
            yield Setting(keys, value, start, start + len(value))
        position = end + 1


def _continues_command(keys: tuple[str, ...]) -> bool:
    """Whether a line with neither key nor dash goes on with a command."""
    return bool(keys) and COMMANDS.fullmatch(keys[-1].replace("-", "_")) is not None


def _line_end(text: str, position: int) -> int:
    found = text.find("\n", position)
    return found if found >= 0 else len(text)


def _skip_blanks(text: str, position: int, end: int) -> int:
    while position < end and text[position] in " \t\r":
        position += 1
    return position


def _block_end(text: str, position: int, column: int) -> int:
    """Where the lines end that stand further right than ``column``."""
    while position < len(text):
        end = _line_end(text, position)
        at = _skip_blanks(text, position, end)
        if at < end and at - position <= column:
            break
        position = end + 1
    return min(position, len(text))


def _scalar(text: str, at: int, end: int) -> tuple[str, int]:
    """A value on one line, without its quotes and a comment after it, and where it starts."""
    quote = text[at]
    if quote in "\"'":
        close = text.find(quote, at + 1, end)
        return text[at + 1 : close if close > 0 else end], at + 1
    return re.split(r"\s[#;]", text[at:end], maxsplit=1)[0].rstrip(), at


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _flow(text: str, position: int, outer: tuple[str, ...]) -> tuple[list[Setting], int]:
    """The scalars from a bracket on, and where its counterpart ends; JSON, and the flow style of YAML and TOML."""
    found: list[Setting] = []
    around: list[tuple[str, ...]] = []
    keys, key, end = outer, "", len(text)
    tokens = (t for t in FLOW.finditer(text, position) if t.lastgroup not in ("space", "comment"))
    for token, following in _pairs(tokens):
        value = token[0]
        if token.lastgroup in ("text", "plain"):
            scalar = _unquoted(value) if token.lastgroup == "text" else value.rstrip()
            if following in (":", "="):
                key = scalar
                continue
            start = token.start() + (token.lastgroup == "text")
            found.append(Setting((*keys, key) if key else keys, scalar, start, start + len(scalar)))
        elif value in ("{", "["):
            around.append(keys)
            keys = (*keys[-1:], key) if key else keys  # more are not asked for, and nesting may be deep
        elif value in ("}", "]"):
            keys = around.pop() if around else outer
            if not around:
                end = token.end()
                break
        elif value != ",":
            continue
        key = ""
    return found, end


def _pairs(tokens: Iterator[re.Match[str]]) -> Iterator[tuple[re.Match[str], str]]:
    """Each token with the text of the next one."""
    last = next(tokens, None)
    for token in tokens:
        assert last is not None
        yield last, token[0]
        last = token
    if last is not None:
        yield last, ""


def _ini(text: str) -> Iterator[Setting]:
    """The values of TOML and INI. A line that is indented and has no key goes on with the value before it."""
    section, key = "", ""
    position = 0
    while position < len(text):
        end = _line_end(text, position)
        at = _skip_blanks(text, position, end)
        if at >= end or text[at] in "#;":
            position = end + 1
            continue
        if head := SECTION.fullmatch(text[position:end].rstrip()):
            section, key = _unquoted(head[1].strip()), ""
            position = end + 1
            continue
        pair = PAIR.match(text, at, end)
        if pair and (at == position or not key or text[at] in "\"'" or "=" in pair[0]):
            key, at = _unquoted(pair[1]), pair.end()
        keys = (section, key) if section else (key,)
        quotes = text[at : at + 3]
        if quotes in ('"""', "'''"):
            close = text.find(quotes, at + 3)
            close = close if close >= 0 else len(text)
            yield Setting(keys, text[at + 3 : close], at + 3, close, is_block=True)
            end = _line_end(text, close)
        elif at < end and text[at] in "[{":
            found, last = _flow(text, at, keys)
            yield from found
            end = _line_end(text, last)
        elif at < end and key:
            value, start = _scalar(text, at, end)
            yield Setting(keys, value, start, start + len(value))
        position = end + 1
