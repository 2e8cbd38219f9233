"""Seeds and generator states."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def manual_seed(seed: int) -> None:
    """torch.cuda.manual_seed: seed the generator of the accelerator; nothing without one."""
    backend().seed_accelerator(int(seed))


def manual_seed_all(seed: int) -> None:
    """torch.cuda.manual_seed_all: seed the generators of all accelerators of this process."""
    backend().seed_accelerator(int(seed))


def seed() -> None:
    """torch.cuda.seed: seed the generator of the accelerator with a random number."""
    backend().seed_accelerator(int.from_bytes(os.urandom(7), "little"))


def seed_all() -> None:
    """torch.cuda.seed_all."""
    seed()


def initial_seed() -> int:
    """The seed that the generator of the accelerator was last given."""
    return backend().initial_seed()


def torch_manual_seed(seed: int) -> torch.Generator:
    """torch.manual_seed, which also reaches the accelerator. Returns the default CPU generator."""
    backend().seed_everything(int(seed))
    return torch.default_generator


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
