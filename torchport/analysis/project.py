"""What one file has to know of the others: found by a byte search, before any file is parsed.

Only a file in which the search finds a device's name that cannot move, such as ``"cuda:0"`` in a test, is looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchport.analysis.elsewhere import stepping
from torchport.analysis.own_classes import Own, OwnClasses
from torchport.lazy import NamedTuple, pattern

if TYPE_CHECKING:
    from torchport.analysis.held import Held

MODULE = pattern(rb"[\w.]*")
NUMBERED = pattern(rb"""["']cuda:["']|[=!]=\s*["']cuda:\d|["']cuda:\d["']\s*[=!]=|\bin\b[^\n]*["']cuda:\d""")
STAYS = tuple(
    (word, pattern(text))
    for word, text in (
        (b"strip(", rb"""strip\(["']cuda"""),
        (b"cuda=", rb"""dict\([^)\n]*\bcuda="""),
        (b'"xla"', rb'"xla"'),
        (b"'xla'", rb"'xla'"),
        (b'"tpu"', rb'"tpu"'),
        (b"'tpu'", rb"'tpu'"),
        (b"case ", rb"""case [^\n]*["']cuda"""),
        (b"Enum)", rb"""Enum\)[^#]{0,2000}?=\s*["']cuda["']"""),
    )
)
"""Each with a word without which it is not looked for: as one expression they take ten times as long."""
LAUNCHES = pattern(rb"@(?:triton|helion)\b|\b(?:triton|helion|cuda)\.(?:jit|kernel)\b|\bfrom[ \t]+(?:triton|helion)\b")
DEEP = pattern(rb"[(\[{]{40}")
"""Brackets so deep are left to the processes that may die of them."""
CALLED = pattern(rb"\b(?<!\.)(?<!def )([a-z_]\w{4,}+)\(")
"""A call of a plain name that is not one of a short builtin."""
UNINDENTED = pattern(rb"\n[^\s#)\]}]")


class ProjectFacts(NamedTuple):
    """What the files of a project say together."""

    own: tuple[Own, ...] = ()
    """Classes with a method or property of the name of one of a tensor's."""
    imported: frozenset[str] = frozenset()
    """The last names of the modules that files import."""
    held: tuple[Held, ...] = ()
    """Names that files share and whose value one of them cannot move."""
    kernels: frozenset[tuple[str, str]] = frozenset()
    """Functions and classes that launch kernels, each with a module or a package through which it may be imported."""
    scripted: frozenset[tuple[str, str]] = frozenset()
    """Functions and classes that TorchScript compiles for another file, each with the last name of its module."""
    loaded: frozenset[str] = frozenset()
    """Functions that only data sets of the project call: on the host, once per sample. Only lint asks for them."""
    stepping: frozenset[str] = frozenset()
    """Functions that take an optimizer's step and leave the loop to other files."""
    turning: frozenset[str] = frozenset()
    """Those of them that a loop of the project calls."""


class Collector:
    """Gathers the facts of a project from the bytes of its files, one after the other."""

    def __init__(self) -> None:
        self._own = OwnClasses()
        self._imported: set[str] = set()
        self._held: list[Held] = []
        self._kernels: set[tuple[str, str]] = set()
        self._scripted: set[tuple[str, str]] = set()
        self._stepping: set[str] = set()

    def add(self, blob: bytes, path: str = "") -> None:
        """Take one file into account. ``path`` is named where another file has to stay because of it."""
        for word in (b"from ", b"import "):
            for piece in blob.split(word)[1:]:
                if match := MODULE.match(piece):
                    self._imported.add(match[0].rpartition(b".")[2].decode(errors="replace"))
        self._own.add(blob)
        if may_hold(blob):
            from torchport.analysis.held import held_names

            self._held += held_names(blob.decode(errors="replace"), path)
        self._kernels |= kernels_in(blob, path)
        self._scripted |= scripted_in(blob)
        self._stepping |= stepping(blob)

    def facts(self) -> ProjectFacts:
        """What was gathered."""
        held = tuple(self._held)
        own, imported = self._own.all(), frozenset(self._imported)
        kernels, scripted = frozenset(self._kernels), frozenset(self._scripted)
        return ProjectFacts(own, imported, held, kernels, scripted, stepping=frozenset(self._stepping))


def called_in(blob: bytes) -> tuple[set[str], set[str]]:
    """What is called by a plain name in ``blob``: by its data sets, and by the rest of a file that may hold steps."""
    steps = b"def forward(" in blob or b".backward(" in blob
    loaded: set[str] = set()
    stepped: set[str] = set()
    if not steps and b"Dataset" not in blob:
        return loaded, stepped
    for piece in blob.split(b"\nclass "):
        start = 0
        if b"Dataset" in piece[: piece.find(b":")].partition(b"(")[2]:
            end = UNINDENTED.search(piece)
            start = end.start() if end else len(piece)
            loaded |= {name.decode() for name in CALLED.findall(piece, 0, start)}
        if steps:
            stepped |= {name.decode() for name in CALLED.findall(piece, start)}
    return loaded, stepped


def scripted_in(blob: bytes) -> set[tuple[str, str]]:
    """What ``blob`` imports and has TorchScript compile: ``ProjectFacts.scripted``."""
    if b"jit.script" not in blob:
        return set()
    from torchport.analysis.scripting import scripted_names

    return scripted_names(blob)


def kernels_in(blob: bytes, path: str) -> set[tuple[str, str]]:
    """What in ``blob`` launches kernels for CUDA, as other files may import it: ``ProjectFacts.kernels``."""
    if not (b"triton" in blob or b"helion" in blob or b"cuda.jit" in blob):
        return set()
    if not LAUNCHES.search(blob) or DEEP.search(blob):
        return set()
    from torchport.analysis.kernels import kernel_names

    return kernel_names(blob.decode(errors="replace"), path)


def may_hold(blob: bytes) -> bool:
    """Whether ``blob`` has a device's name in it that cannot move, so that other files may have to leave theirs."""
    named = b'"cuda' in blob or b"'cuda" in blob
    if not named:
        return False
    stays = any(NUMBERED.search(lines) for lines in _around(blob, b"cuda:")) or any(
        word in blob and stays.search(blob) for word, stays in STAYS
    )
    return stays and not DEEP.search(blob)


def _around(blob: bytes, word: bytes) -> Iterator[bytes]:
    """The lines that hold ``word``, each with the one before and the one after it."""
    at = blob.find(word)
    while at != -1:
        start = blob.rfind(b"\n", 0, max(blob.rfind(b"\n", 0, at), 0)) + 1
        end = blob.find(b"\n", blob.find(b"\n", at) + 1 or len(blob))
        yield blob[start : end if end != -1 else len(blob)]
        at = blob.find(word, at + 1)
