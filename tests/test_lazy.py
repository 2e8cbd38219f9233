"""Patterns and modules that are made at their first use do what others do."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from torchport.lazy import METHODS, NamedTuple, pattern, words


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


@pytest.mark.parametrize("text", ["optimizer", "my_Optimizer", "OPTIMIZER", "optimizers", "x", ""])
def test_words_are_found_in_capitals_as_well(text: str) -> None:
    ours, theirs = words(r"(^|_)optimizer$"), re.compile(r"(^|_)optimizer$", re.IGNORECASE)
    assert bool(ours.search(text)) == bool(theirs.search(text))
    assert bool(ours.fullmatch(text)) == bool(theirs.fullmatch(text))


def test_no_letters_are_left_out() -> None:
    """What the letters of a pattern keep from it would not have been a match: of no name in this project."""
    folder = Path(__file__).parent.parent
    names = {name for path in folder.glob("torchport/**/*.py") for name in re.findall(r"\w+", path.read_text())}
    modules = [importlib.import_module(f"torchport.analysis.{name}") for name in ("devices", "loops", "parts")]
    made = [each for module in modules for each in vars(module).values() if hasattr(each, "letters")]
    assert sum(each.letters != ("",) for each in made) > 5
    for each in made:
        assert not [name for name in names if bool(each.search(name)) != bool(each.compiled.search(name.lower()))]


class Point(NamedTuple):
    """A place."""

    x: int
    y: int | None = 0

    @property
    def far(self) -> bool:
        """Whether it is."""
        return self.x > 9


class Reference(typing.NamedTuple):
    """A place."""

    x: int
    y: int | None = 0


def test_a_named_tuple_is_what_typing_makes() -> None:
    assert (Point(1), Point(1, y=2), Point(10).far, Point(1)._replace(x=3)) == ((1, 0), (1, 2), True, (3, 0))
    assert repr(Point(1)) == "Point(x=1, y=0)"
    copied = pickle.loads(pickle.dumps(Point(1)))
    assert type(copied) is Point
    assert copied == Point(1)
    assert typing.get_type_hints(Point) == typing.get_type_hints(Reference) == {"x": int, "y": int | None}
    for name in ("_fields", "_field_defaults", "__match_args__", "__module__", "__doc__", "__mro__"):
        ours, theirs = (str(getattr(kind, name)).replace(kind.__name__, "") for kind in (Point, Reference))
        assert ours == theirs, name
    assert Point.__qualname__ == "Point"
    with pytest.raises(TypeError, match="'x'"):
        Point()  # type: ignore[call-arg]


def python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


HELD_BACK = "import sys; from torchport.lazy import load_when_used; sys.modules.pop('colorsys', None); "
HELD_BACK += "load_when_used('colorsys'); import colorsys; "


def test_a_module_is_loaded_when_something_of_it_is_used() -> None:
    told = "'ONE_THIRD' in vars(colorsys)"
    assert python(f"{HELD_BACK} print({told}); colorsys.rgb_to_hsv(1, 0, 0); print({told})") == "False\nTrue"
    assert python(f"{HELD_BACK} from colorsys import rgb_to_hsv; print(rgb_to_hsv(1, 0, 0))") == "(0.0, 1.0, 1)"
    assert python(
        f"{HELD_BACK} print(getattr(colorsys, 'nothing', 'nothing'), colorsys is sys.modules['colorsys'])"
    ) == ("nothing True")


def test_a_module_that_is_loaded_already_or_does_not_exist_is_left_alone() -> None:
    program = "import sys, math; from torchport.lazy import load_when_used; "
    program += "load_when_used('math'); load_when_used('no_such_module'); "
    assert python(f"{program} print(sys.modules['math'] is math, 'no_such_module' in sys.modules)") == "True False"
