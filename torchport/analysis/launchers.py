"""What a launcher asks for, word by word: shell scripts, Makefiles, Dockerfiles, and commands inside files of settings.

Nothing is run or expanded. Comments are left out, and so is what a script only prints.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal

from torchport.lazy import NamedTuple

FactKind = Literal["setting", "command", "package", "image"]

TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<space>(?:[^\S\n]|\\\r?\n)+)
    |(?P<end>[\n;&|()]+)
    |(?P<redirect>[<>]+)
    |(?P<word>(?:"(?:\\.|[^"\\])*"|'[^']*'|\$\((?:[^()]|\([^()]*\))*\)|\$\{[^{}]*\}|`[^`]*`|\\[^\r\n]|[^\s"'\\;&|<>()`])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)")
RUNS_HEREDOC = re.compile(r"\b(bash|sh|zsh|sbatch|srun|ssh)\b|\.(sh|sbatch|slurm)\b")
SHEBANG = re.compile(r"\s*#!.*sh\b")
ASSIGNED = re.compile(r"\+{0,2}([A-Za-z_@/][\w.@/-]*)\+?=(.*)", re.DOTALL)
"""``NAME=value`` of a shell, ``trainer.accelerator=gpu`` of Hydra."""
NAME = re.compile(r"[A-Za-z_]\w*")
MAKE_ASSIGNS = ("=", ":=", "::=", "?=", "+=")
_BEFORE = """
if then else elif while until do ! { sudo env exec time nohup export declare local readonly typeset set unset
RUN CMD ENTRYPOINT ENV ARG LABEL"""
_PRINTING = "echo printf cat : [ [[ test grep egrep sed awk cd mkdir rm cp mv ls git log which type hash command #"
BEFORE_COMMAND = frozenset(_BEFORE.split())
PRINTS = frozenset(_PRINTING.split())
"""Commands whose arguments are texts or names of files, or that only ask whether a program is there."""
INSTALLS = frozenset(("install", "add", "download", "wheel", "freeze", "uninstall"))
INSTALLERS = re.compile(r"pip[\d.]*|conda|mamba|micromamba|uv|poetry|pdm")
REQUIREMENT = re.compile(r"(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)\s*(.*)", re.DOTALL)
REPOSITORY = re.compile(r"(?:[^@]*@\s*)?git\+[^#]*?/([\w.-]+?)(?:\.git)?(?:[@#].*)?")
SUBSTITUTED = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`")
QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", re.DOTALL)
DEFAULT = re.compile(r"\$\{(?:\w+:?[-=]|oc\.env:\w+,)(.*)\}", re.DOTALL)
DIRECTIVE = re.compile(r"^#(?:SBATCH|PBS|BSUB)\b", re.MULTILINE)


class Fact(NamedTuple):
    """A key or an option with its value, or a word of a command. ``start`` and ``end`` count characters of the text."""

    kind: FactKind
    name: str
    value: str
    start: int
    end: int
    of: str = ""
    """The command that an option is given to, or the key around a key."""


class _Word(NamedTuple):
    """A word as it stands, from ``at`` on, and without quotes and brackets, from ``start`` to ``end``."""

    raw: str
    at: int
    text: str
    start: int
    end: int


def launcher_facts(text: str) -> Iterator[Fact]:
    """What a script asks for, in order."""
    for directive in DIRECTIVE.finditer(text):
        line_end = text.find("\n", directive.end())
        yield from _command(_words(text, directive.start() + 1, line_end if line_end >= 0 else len(text)))
    yield from shell_facts(_without_prose(text), 0)


def shell_facts(text: str, shift: int) -> Iterator[Fact]:
    """The same for a piece of text that stands ``shift`` characters from the start of its file."""
    words: list[_Word] = []
    opened = ""
    for token in TOKEN.finditer(text):
        if token.lastgroup == "word":
            words.append(_word(token[0], token.start() + shift))
        elif token.lastgroup == "end":
            if not (token[0].startswith((")", "|")) and opened != "(" and _is_pattern(words)):
                yield from _command(words)
            words, opened = [], token[0][-1]
    yield from _command(words)


def _without_prose(text: str) -> str:
    """A here-document that is printed or handed to another program becomes blanks; one that a shell runs stays."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.strip(), []).append(number)
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        started = HEREDOC.search(line) if "<<" in line else None
        after = ends.get(started["end"], []) if started else []
        at = bisect_left(after, number)
        if at == len(after):
            continue
        if not RUNS_HEREDOC.search(line) and not SHEBANG.match(lines[number]):
            lines[number : after[at] + 1] = [" " * len(inner) for inner in lines[number : after[at] + 1]]
        number = after[at] + 1
    return "\n".join(lines)


def _is_pattern(words: Sequence[_Word]) -> bool:
    """``--fp16)`` of a ``case``: what a script takes is not what it is given."""
    return len(words) == 1 and words[0].raw.startswith("-") and "=" not in words[0].raw


def _words(text: str, start: int, end: int) -> list[_Word]:
    found = (t for t in TOKEN.finditer(text, start, end) if t.lastgroup == "word")
    return [_word(token[0], token.start()) for token in found]


def _word(raw: str, at: int) -> _Word:
    """A word without its quotes, and without the brackets and commas of a list in a Dockerfile."""
    bare, start = raw, at
    if raw[:1] == "[" or raw[-1:] in (",", "]"):
        start += len(raw) - len(raw.lstrip("["))
        bare = raw.lstrip("[").rstrip(",]")
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
        return _Word(raw, at, bare[1:-1], start + 1, start + len(bare) - 1)
    return _Word(raw, at, bare, start, start + len(bare))


def _command(words: Sequence[_Word]) -> Iterator[Fact]:
    """The facts of one command. An option's value is the next word, or its own part after ``=``."""
    words = [word for word in words if word.text or word.raw in PRINTS]
    installs = next((n for n, word in enumerate(words[:5]) if word.text in INSTALLS), 0)
    packages = any(INSTALLERS.fullmatch(word.text) for word in words[:installs]) and words[installs].text != "uninstall"
    if words and words[0].text == "FROM":
        yield from (Fact("image", word.text, "", word.start, word.end) for word in words[1:] if "=" not in word.text)
        return
    head = ""
    for number, word in enumerate(words):
        yield from _inner(word)
        if not head:
            if assigned := _assigned(words, number):
                yield assigned
                if assigned.end > word.end:
                    return
                continue
            if word.text in BEFORE_COMMAND:
                continue
            if word.raw.startswith("-") or not ASSIGNED.fullmatch(word.text):
                head = word.text.rpartition("/")[2]
                if word.raw in PRINTS or head in PRINTS:
                    return
        following = words[number + 1] if number + 1 < len(words) else None
        if packages and number > installs and not word.raw.startswith("-"):
            yield package(word.text, word.start, word.end)
        yield from _fact(word, following, head, installs > 0)


def _assigned(words: Sequence[_Word], number: int) -> Fact | None:
    """``DEVICE ?= cuda`` of a Makefile, ``ENV NAME value`` of a Dockerfile, ``export NAME``."""
    word, after = words[number], words[number + 1 : number + 3]
    before = words[number - 1].text if number else ""
    if not NAME.fullmatch(word.text):
        return None
    if after and after[0].text in MAKE_ASSIGNS:
        value = after[1].text if len(after) > 1 else ""
        return Fact("setting", word.text, plain(value), word.start, after[-1].end)
    if before == "ENV" and after:
        return Fact("setting", word.text, plain(after[0].text), word.start, after[0].end)
    return Fact("setting", word.text, "", word.start, word.end) if before in ("export", "unset") else None


def _fact(word: _Word, following: _Word | None, head: str, installs: bool) -> Iterator[Fact]:
    text = word.text
    if text.startswith("-"):
        name, given, value = text.partition("=")
        end = word.end
        if not given:
            value = "true"
            if following is not None and not following.raw.startswith("-"):
                value, end = following.text, following.end
        yield Fact("setting", name, plain(value), word.start, end, head)
    elif match := ASSIGNED.fullmatch(text):
        yield Fact("setting", match[1], plain(match[2]), word.start, word.end, head)
    elif not installs and not text.startswith("$"):
        yield Fact("command", text.rpartition("/")[2], "", word.start, word.end, head)


def package(text: str, start: int, end: int) -> Fact:
    """What is asked of an installer: ``torch==2.1.0+cu118``, ``nvidia::cuda-nvcc=11``, ``git+https://.../apex``."""
    if repository := REPOSITORY.fullmatch(text):
        return Fact("package", repository[1].lower(), text, start, end)
    match = REQUIREMENT.match(text)
    name, rest = (match[1], match[2]) if match else ("", text)
    return Fact("package", name.lower().replace("_", "-"), rest, start, end)


def _inner(word: _Word) -> Iterator[Fact]:
    """Commands inside a word: ``$(nvidia-smi -L)``, ``"torchrun --nproc_per_node 8 ..."``, ``ARGS="--fp16 ..."``."""
    texts = [match for match in QUOTED.finditer(word.raw) if re.search(r"\s", match[0])]
    for match in texts:
        yield from shell_facts(match[0][1:-1], word.at + match.start() + 1)
    for match in SUBSTITUTED.finditer(word.raw):
        if not any(text.start() < match.start() < text.end() for text in texts):
            group = 1 if match[1] is not None else 2
            yield from shell_facts(match[group], word.at + match.start(group))


def plain(value: str) -> str:
    """A value without quotes; ``${DEVICE:-cuda}`` and ``${oc.env:DEVICE,cuda}`` are what they are by default."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    default = DEFAULT.fullmatch(value)
    return plain(default[1]) if default else value
