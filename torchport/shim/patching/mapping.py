"""What a CUDA device stands for here, and the kinds of wrapper that the tables name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from torchport.shim.devices import device as own_device
from torchport.shim.errors import raise_cuda_only
from torchport.shim.loading import is_pin_memory_supported
from torchport.shim.patching.log import Support
from torchport.shim.patching.tables import TRUTHFUL
from torchport.shim.random import Generator as own_generator
from torchport.shim.selection import backend
from torchport.shim.support import BACKENDS, GROUPS

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session

Make = Callable[[Any], Any]
LEVEL: dict[str, dict[str, str]] = {
    name: {
        ours: str(getattr(row, name)).partition(":")[0] for group in GROUPS for row in group.rows for ours in row.names
    }
    for name in BACKENDS
}
"""Back end, name of the shim, and what its table says of it in a word."""


def is_cuda(value: Any) -> bool:
    """Whether ``value``, in the place of a device, means CUDA: "cuda", "cuda:1", a number, a CUDA device."""
    if isinstance(value, str):
        return value == "cuda" or value.startswith("cuda:")
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, int) and not isinstance(value, bool)


def shown(device: Any) -> str:
    """A device as a program would write it."""
    return str(device) if isinstance(device, int) else repr(str(device))


def called_by_torch(depth: int = 2) -> bool:
    """Whether the caller ``depth`` frames up is torch itself or a package that must hear the truth about CUDA."""
    name = str(sys._getframe(depth).f_globals.get("__name__", ""))
    return name.partition(".")[0] in TRUTHFUL


def called_by_shim(depth: int = 2) -> bool:
    return str(sys._getframe(depth).f_globals.get("__name__", "")).startswith("torchport.")


def _in_place_of(original: Any, call: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """What calls ``call`` and else is ``original``: a function, or a class for isinstance and issubclass."""
    if not isinstance(original, type):
        return functools.wraps(original)(lambda *args, **kwargs: call(args, kwargs))

    class StandIn(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return call(args, kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

        def __getattr__(cls, name: str) -> Any:
            return getattr(original, name)

    return StandIn(original.__name__, (), {"__module__": original.__module__, "__doc__": original.__doc__})


class Wrappers:
    """Makes the replacements of one session; each one calls the original once the session is closed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def device(self, value: Any, what: str) -> Any:
        """The device of this back end for a CUDA one, recorded as ``what`` with that device."""
        new = own_device(value)
        self._session.moved = self._session.moved or new.type != "cpu"
        self._session.log.record(f"{what}({shown(value)})", f"{what}({shown(new)})")
        return new

    def by_keyword(self, what: str) -> Make:
        """For functions with ``device=``, some also with ``pin_memory=``."""

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                if self._session.active and kwargs:
                    if kwargs.get("device") is not None and is_cuda(kwargs["device"]):
                        kwargs["device"] = self.device(kwargs["device"], what)
                    if kwargs.get("pin_memory") and not is_pin_memory_supported():
                        kwargs["pin_memory"] = False
                        self.dropped(f"{what}(pin_memory=True)")
                return original(*args, **kwargs)

            return call

        return make

    def by_position(self, what: str, position: int, keyword: str = "device") -> Make:
        """For functions with a device at ``position``, or as ``keyword``."""

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                if self._session.active:
                    if len(args) > position and is_cuda(args[position]):
                        new = self.device(args[position], what)
                        args = (*args[:position], new, *args[position + 1 :])
                    elif kwargs and is_cuda(kwargs.get(keyword)):
                        kwargs[keyword] = self.device(kwargs[keyword], what)
                return original(*args, **kwargs)

            return call

        return make

    def by_type(self, what: str, position: int) -> Make:
        """For functions that take a device type, a string, at ``position`` or as ``device_type=``."""

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                if self._session.active:
                    own = backend().device_type
                    if len(args) > position and args[position] == "cuda":
                        args = (*args[:position], own, *args[position + 1 :])
                        self.same(f"{what}('cuda')", f"{what}({own!r})")
                    elif kwargs.get("device_type") == "cuda":
                        kwargs["device_type"] = own
                        self.same(f"{what}('cuda')", f"{what}({own!r})")
                return original(*args, **kwargs)

            return call

        return make

    def by_shim(self, what: str, name: str, hidden: bool) -> Make:
        """For functions that have a counterpart in the shim; ``hidden`` from torch's own calls."""
        from torchport import shim

        replacement = getattr(shim, name)

        def make(original: Any) -> Any:
            if isinstance(original, type) and isinstance(replacement, type):
                return replacement

            @functools.wraps(original, updated=())
            def call(*args: Any, **kwargs: Any) -> Any:
                if not self._session.active or (called_by_torch() if hidden else called_by_shim()):
                    return original(*args, **kwargs)
                self.same(what, f"shim.{name}")
                return replacement(*args, **kwargs)

            return call

        return make

    def cuda_only(self, name: str, advice: str) -> Make:
        """For what fails without CUDA, each version of torch in its own words: it fails in ours, with the advice."""

        def make(original: Any) -> Any:
            def attempt(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
                try:
                    return original(*args, **kwargs)
                except Exception:
                    if not self._session.active or called_by_torch(3):
                        raise
                    raise_cuda_only(name, advice)

            return _in_place_of(original, attempt)

        return make

    def generator(self, original: Any) -> Any:
        """torch.Generator, for a CUDA device."""

        def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            wanted = args[0] if args else kwargs.get("device")
            if not self._session.active or not is_cuda(wanted):
                return original(*args, **kwargs)
            self.same(f"torch.Generator({shown(wanted)})", "shim.Generator")
            return own_generator(torch.device(wanted))

        return _in_place_of(original, make)

    def current_accelerator(self, original: Any) -> Any:
        """torch.accelerator.current_accelerator, where torch does not know the accelerator."""

        @functools.wraps(original)
        def current(check_available: bool = False) -> Any:
            if not self._session.active or called_by_torch():
                return original(check_available)
            return self.device("cuda", "torch.accelerator.current_accelerator")

        return current

    def by_value(self, value: Any) -> Make:
        """For what is replaced by a thing that is made already."""
        return lambda original: value

    def by_nothing(self, what: str, value: Any) -> Make:
        """For functions that have no meaning off CUDA and whose result nobody needs."""

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                if not self._session.active:
                    return original(*args, **kwargs)
                if not called_by_torch():
                    self.dropped(what)
                return value

            return call

        return make

    def question(self, what: str) -> Make:
        """For functions that ask whether CUDA is there: the truth, unless CUDA is pretended."""

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def call() -> Any:
                truth = original()
                if not self._session.active or called_by_torch():
                    return truth
                devices = max(backend().device_count(), 1)
                return self.answer(what, truth, True if isinstance(truth, bool) else devices)

            return call

        return make

    def answer(self, what: str, truth: Any, pretended: Any) -> Any:
        """What a question is answered, and the record of it."""
        value = pretended if self._session.pretend_cuda else truth
        self._session.log.record(what, repr(value), "emulated" if self._session.pretend_cuda else "kept")
        return value

    def cuda_method(self, device: Any, kind: str) -> Any:
        """The device that ``.cuda(device)`` of a tensor or module means."""
        new = own_device(device)
        self._session.moved = self._session.moved or new.type != "cpu"
        given = "" if device is None else shown(device)
        self._session.log.record(f"{kind}.cuda({given})", f"{kind}.to({shown(new)})")
        return new

    def same(self, old: str, new: str) -> None:
        """Record a call that has a counterpart."""
        self._session.log.record(old, new, self._support(new))

    def dropped(self, old: str) -> None:
        """Record a call, or an argument, that has none."""
        self._session.log.record(old, "nothing", "dropped")

    @staticmethod
    def _support(new: str) -> Support:
        """As the table of the shim says of a name of its own; what has another spelling alone is the same."""
        if not new.startswith("shim."):
            return "same"
        level = LEVEL[backend().name].get(new.removeprefix("shim."), "emulated")
        return "same" if level == "same" else "dropped" if level == "dropped" else "emulated"
