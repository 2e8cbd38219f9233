"""Seeds and generator states."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
