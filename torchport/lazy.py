"""What is made at its first use, or made fast: a run over one file uses little of all patterns, modules and tuples."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import namedtuple
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile`` returns, by its methods; what is wrong in ``text`` shows at the first use.

    Raises re.error, at the first use, where ``text`` is no regular expression.
    """
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


def words(text: str, *letters: str) -> re.Pattern[str]:
    """A pattern in lower case that is held against a name in lower case, to be asked whether it is in there.

    To compile it takes a quarter of the time that ``re.IGNORECASE`` does. Each match has one of ``letters``: as long as
    no name has one, it is not compiled at all. Raises re.error as ``pattern`` does.
    """
    return cast("re.Pattern[str]", _Lower(text, letters or ("",)))


class _Later:
    """Has no methods until one is asked for; from then on they are those of the compiled pattern itself."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for method in METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)


class _Lower(_Later):
    """The same for what is asked of a name in lower case."""

    def __init__(self, text: str, letters: tuple[str, ...]) -> None:
        super().__init__(text, 0)
        self.letters = letters

    def search(self, text: str) -> re.Match[str] | None:
        """As that of a pattern."""
        name = text.lower()
        for letters in self.letters:
            if letters in name:
                return self.compiled.search(name)
        return None

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As that of a pattern."""
        name = text.lower()
        for letters in self.letters:
            if letters in name:
                return self.compiled.fullmatch(name)
        return None

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(*self._given)


def load_when_used(name: str) -> None:
    """Have a module of the standard library loaded when something of it is used, not when it is imported."""
    spec = importlib.util.find_spec(name)
    if name not in sys.modules and spec is not None:
        module = _Unloaded(name)
        module.__spec__, module.__loader__ = spec, spec.loader
        sys.modules[name] = module


class _Unloaded(ModuleType):
    """``importlib.util.LazyLoader`` does the same, but up to Python 3.11 ``import`` itself loads what it holds back."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class _TupleMaker(type):
    """``typing.NamedTuple`` does the same, but compiles each annotation, which takes as long as all the rest."""

    def __new__(cls, name: str, _: tuple[type, ...], body: dict[str, Any]) -> Any:
        fields = body["__annotations__"]
        defaults = [body.pop(field) for field in fields if field in body]
        made = namedtuple(name, fields, defaults=defaults, module=body.pop("__module__"))  # type: ignore[misc]
        for key, value in body.items():
            setattr(made, key, value)
        return made


if not TYPE_CHECKING:
    NamedTuple = type.__new__(_TupleMaker, "NamedTuple", (), {"__doc__": "As in ``typing``."})
