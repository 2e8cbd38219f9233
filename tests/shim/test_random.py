"""Seeds and generator states."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import torch

from torchport import shim


def drawn() -> list[float]:
    values = torch.rand(4, device=shim.device())
    shim.sync()
    return [round(v, 6) for v in values.tolist()]


def after(seed: Callable[[int], object], value: int) -> list[float]:
    seed(value)
    return drawn()


def test_torch_manual_seed_reaches_the_device() -> None:
    first = after(shim.torch_manual_seed, 3)
    assert after(shim.torch_manual_seed, 3) == first
    assert after(shim.torch_manual_seed, 4) != first
    shim.torch_manual_seed(3)
    on_cpu = torch.rand(2)
    assert shim.torch_manual_seed(3) is torch.default_generator
    assert torch.equal(torch.rand(2), on_cpu)


@pytest.mark.parametrize("seed", [shim.manual_seed, shim.manual_seed_all])
def test_the_cuda_seeds_reach_the_device_alone(seed: Callable[[int], None], name: str) -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    seed(5)
    assert torch.equal(torch.rand(2), expected)
    if name != "cpu":
        assert after(seed, 5) == after(seed, 5)
        assert after(seed, 5) != after(seed, 6)
        assert shim.initial_seed() == 6


def test_negative_and_large_seeds() -> None:
    for seed in (-1, 2**63 - 1, 0):
        shim.torch_manual_seed(seed)
        assert len(set(drawn())) > 1


def test_random_seeds_differ(name: str) -> None:
    shim.seed()
    first = drawn()
    shim.seed_all()
    assert drawn() != first


def test_states_round_trip_through_a_file(tmp_path: object) -> None:
    shim.torch_manual_seed(11)
    drawn()
    state = shim.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    path = f"{tmp_path}/state.pt"
    shim.save({"rng": state}, path)
    first = drawn()
    assert drawn() != first
    shim.set_rng_state(shim.load(path)["rng"])
    assert drawn() == first


def test_states_of_all_devices(name: str) -> None:
    states = shim.get_rng_state_all()
    assert len(states) == (0 if name == "cpu" else 1)
    first = drawn()
    shim.set_rng_state_all(states)
    assert (drawn() == first) is (name != "cpu")


@pytest.mark.parametrize("size", [3, 8, 16, 5056])
def test_a_foreign_state_is_left_alone_with_a_notice(size: int, caplog: pytest.LogCaptureFixture) -> None:
    before = shim.get_rng_state()
    if before.numel() == size or (size, before.numel()) in ((8, 16), (16, 8)):
        pytest.skip("a state of this size is the back end's own, or one of the two that CUDA takes")
    with caplog.at_level(logging.WARNING, "torchport.shim"):
        shim.set_rng_state(torch.zeros(size, dtype=torch.uint8))
    assert torch.equal(shim.get_rng_state(), before)
    assert any("not a generator state" in r.getMessage() and __file__ in r.getMessage() for r in caplog.records)


def test_a_forked_generator_leaves_the_others_alone() -> None:
    shim.torch_manual_seed(5)
    want = torch.rand(2, device=shim.device()).tolist()
    shim.torch_manual_seed(5)
    with shim.fork_rng():
        shim.torch_manual_seed(6)
        torch.rand(3, device=shim.device()), torch.rand(3)
    assert torch.rand(2, device=shim.device()).tolist() == want


@pytest.mark.parametrize("draw", ["rand", "randn", "randperm", "randint", "normal_", "bernoulli"])
def test_a_generator_gives_the_same_numbers_again(draw: str) -> None:
    def numbers() -> list[float]:
        generator = shim.Generator("cuda")
        generator.manual_seed(4)
        device = shim.device()
        made = {
            "rand": lambda: torch.rand(5, device=device, generator=generator),
            "randn": lambda: torch.randn(5, device=device, generator=generator),
            "randperm": lambda: torch.randperm(5, device=device, generator=generator),
            "randint": lambda: torch.randint(99, (5,), device=device, generator=generator),
            "normal_": lambda: torch.empty(5, device=device).normal_(generator=generator),
            "bernoulli": lambda: torch.bernoulli(torch.full((40,), 0.5).to(device), generator=generator),
        }[draw]()
        return made.cpu().tolist()

    first = numbers()
    torch.rand(3, device=shim.device())
    assert numbers() == first
    assert len(set(first)) > 1


def test_a_generator_of_the_cpu_stays_one() -> None:
    assert shim.Generator("cpu").device.type == "cpu"
