"""Seeds and generator states."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend, is_chosen


def manual_seed(seed: int) -> None:
    """torch.cuda.manual_seed: seed the generator of the accelerator; nothing without one, or in a worker."""
    if not _is_worker():
        backend().seed_accelerator(int(seed))


def manual_seed_all(seed: int) -> None:
    """torch.cuda.manual_seed_all: seed the generators of all accelerators of this process."""
    manual_seed(seed)


def seed() -> None:
    """torch.cuda.seed: seed the generator of the accelerator with a random number."""
    manual_seed(int.from_bytes(os.urandom(7), "little"))


def seed_all() -> None:
    """torch.cuda.seed_all."""
    seed()


def initial_seed() -> int:
    """The seed that the generator of the accelerator was last given."""
    return backend().initial_seed()


def torch_manual_seed(seed: int) -> torch.Generator:
    """torch.manual_seed, which also reaches the accelerator. Returns the default CPU generator."""
    if _is_worker():
        return torch.default_generator.manual_seed(int(seed))
    backend().seed_everything(int(seed))
    return torch.default_generator


def _is_worker() -> bool:
    """Whether this process has no device of its own: a worker of a DataLoader, or forked off one that uses the device.

    torch.cuda seeds the CPU alone there. A runtime that starts or is reached there hangs, or takes the device away.
    """
    return _forked_off or torch.utils.data.get_worker_info() is not None


_used = _forked_off = False


def _before_fork() -> None:
    global _used
    _used = is_chosen() and backend().accelerator and backend().is_initialized()


def _after_fork() -> None:
    global _forked_off
    _forked_off = _forked_off or _used


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def Generator(device: Any = "cuda") -> torch.Generator:
    """torch.Generator for a CUDA name or device: one for tensors on the accelerator, on CUDA with its number.

    PyTorch/XLA has none of its own; one of the CPU serves it, and draws the numbers that the CPU draws.
    """
    chosen = backend()
    wanted = torch.device(device)
    if wanted.type not in ("cuda", chosen.device_type) or chosen.native is not None:
        return torch.Generator(wanted)
    return chosen.generator()


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, *, device_type: str = "cuda") -> Iterator[None]:
    """torch.random.fork_rng: within, random numbers are drawn without moving the generators on for what follows.

    ``devices`` are CUDA's, and all of CUDA's where None; elsewhere the generator of the process's device is meant.
    """
    if backend().native is not None or not enabled or device_type not in ("cuda", backend().device_type):
        with torch.random.fork_rng(devices, enabled, device_type=device_type):
            yield
        return
    on_device = backend().accelerator and (devices is None or len(list(devices)) > 0)
    state = torch.get_rng_state()
    device_state = backend().get_rng_state() if on_device else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if device_state is not None:
            backend().set_rng_state(device_state)


def get_rng_state(device: Any = "cuda") -> torch.Tensor:
    """The state of the accelerator's generator (of the CPU's without one): a uint8 CPU tensor."""
    return backend().get_rng_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "cuda") -> None:
    """Restore a state. One that another back end wrote is left alone, with a notice."""
    try:
        backend().set_rng_state(new_state)
    except (RuntimeError, TypeError, ValueError) as error:
        notice(
            f"set_rng_state: not a generator state of {backend().name}, so random numbers go on as they are: {error}"
        )


def get_rng_state_all() -> list[torch.Tensor]:
    """One state for each device of this process; empty without an accelerator."""
    return [backend().get_rng_state()] if backend().accelerator else []


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restore what ``get_rng_state_all`` gave; of several devices the first is taken."""
    for state in list(new_states)[:1]:
        if backend().accelerator:
            set_rng_state(state)
