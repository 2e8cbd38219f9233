"""Errors that a program catches, and those that say what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import torch

from torchport import shim

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_memory_that_runs_out_is_caught_on_every_back_end(run: Run, name: str) -> None:
    if name == "cuda":
        pytest.skip("CUDA raises the class itself")
    result = run("""
import os
import torch
from torchport import shim
from torchport.shim.errors import is_out_of_memory

def fill():
    if not shim.is_available():
        raise torch.OutOfMemoryError("a CPU kills the process instead")
    for _ in range(50):
        try:
            x = torch.zeros(1 << 40, device=shim.device()) + torch.ones(1).to(shim.device())
            if shim.backend().name == "xla":
                shim.synchronize()
            print(x.sum().item())
        except RuntimeError as error:
            if "is in a failed state" not in str(error):  # TorchTPU says no more to an operation that comes late
                raise

for attempt in range(2):
    try:
        fill()
    except ValueError:
        print("wrong")
    except shim.OutOfMemoryError as error:
        print("caught", is_out_of_memory(error), isinstance(error, shim.OutOfMemoryError))
try:
    raise RuntimeError("shapes do not match")
except shim.OutOfMemoryError:
    print("wrong")
except RuntimeError:
    print("not caught")
print(shim.OutOfMemoryError is torch.OutOfMemoryError, flush=True)
os._exit(0)  # PyTorch/XLA tells of the failed computation again when it shuts down
""")
    assert result.stdout.split("\n")[:4] == ["caught True True"] * 2 + ["not caught", "True"], result.stderr


def test_not_implemented_is_a_runtime_error_as_those_of_torch_cuda() -> None:
    with pytest.raises(RuntimeError):
        raise shim.CudaOnlyError("x")


def test_a_cuda_only_name_may_be_named_and_shown(name: str) -> None:
    if name == "cuda":
        pytest.skip("CUDA has it")
    pool = shim.MemPool  # type: ignore[attr-defined]
    assert "torch.cuda.MemPool" in repr(pool)
    with pytest.raises(shim.CudaOnlyError, match="keep it behind"), pool:
        pass


def test_events_without_timing_measure_nothing(name: str) -> None:
    if name == "cuda":
        pytest.skip("CUDA's own")
    start, end = shim.Event(), shim.Event(enable_timing=True)
    start.record()
    end.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(end)


def test_events_measure_the_work_and_not_the_asking() -> None:
    x = torch.randn(400, 400).to(shim.device())
    x @ x
    shim.synchronize()
    times = []
    for count in (1, 60):
        start, end = shim.Event(enable_timing=True), shim.Event(enable_timing=True)
        start.record()
        y = x
        for _ in range(count):
            y = torch.tanh(y @ x)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    assert times[1] > 2 * times[0] > 0


def test_what_an_event_measures_does_not_move_the_random_numbers() -> None:
    def draw(measure: bool) -> list[float]:
        shim.torch_manual_seed(3)
        if measure:
            shim.Event(enable_timing=True).record()
        return torch.rand(3, device=shim.device()).tolist()

    assert draw(True) == draw(False)


def test_streams_nest() -> None:
    first, second = shim.Stream(), shim.Stream(priority=-1)
    before = shim.current_stream()
    with shim.stream(first):
        with second, shim.stream(None):
            x = torch.ones(2).to(shim.device())
            shim.record_stream(x, second)
        first.wait_stream(second)
    assert shim.current_stream() == before
    assert isinstance(first, shim.Stream)
    assert not isinstance(before, shim.Event)
