"""Models of every usual kind train on the device as on the CPU, go on from a checkpoint, and take it elsewhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import carried
import pytest
import torch
from shim_tasks import STEPS, TASKS, Training

from torchport import shim

RELATIVE = {"cpu": 0.0, "cuda": 1e-3, "xla": 0.0, "tpu": 1e-3}
ABSOLUTE = {"cpu": 0.0, "cuda": 0.0, "xla": 1e-5, "tpu": 0.0}
BFLOAT16 = {"resnet18": 2e-2}
OTHERS_IN_BFLOAT16 = 3e-3
"""A product in bfloat16 is rounded to 8 significant bits, 0.4 per cent; eighteen layers add up more of them.

Measured over the twenty steps and two evaluations, the largest relative difference from float32 on the CPU: ResNet-18
6.9e-3 on PyTorch/XLA and 9.6e-3 on TorchTPU, the other seven at most 1.2e-3 and 1.6e-3.
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def close(losses: list[float], name: str) -> Any:
    return pytest.approx(losses, rel=RELATIVE[name], abs=ABSOLUTE[name])


@pytest.mark.parametrize("kind", TASKS)
def test_trains_and_resumes_as_on_the_cpu(kind: str, name: str, tmp_path: Path) -> None:
    expected = Training(TASKS[kind], torch.device("cpu"))
    want = expected.epoch() + expected.epoch()
    training = Training(TASKS[kind], shim.device())
    losses = training.epoch()
    shim.save(training.state(), tmp_path / "half.pt")
    losses += training.epoch()
    assert len(losses) == (STEPS + 2) * len(TASKS[kind].losses)
    assert losses == close(want, name)
    assert losses[0] != losses[-1]
    again = Training(TASKS[kind], shim.device(), seed=1)
    again.load(shim.load(tmp_path / "half.pt", map_location="cuda"))
    assert again.epoch() == close(losses[len(losses) // 2 :], name)
    assert again.step == STEPS


@pytest.mark.parametrize("kind", TASKS)
def test_trains_in_bfloat16_within_a_bound(kind: str, name: str) -> None:
    if (kind, name) == ("resnet18", "xla"):
        pytest.skip("PyTorch/XLA compiles its four graphs for half a minute; measured by hand")
    want = Training(TASKS[kind], torch.device("cpu")).epoch()
    losses = Training(TASKS[kind], shim.device(), amp=torch.bfloat16).epoch()
    assert losses == pytest.approx(want, rel=BFLOAT16.get(kind, OTHERS_IN_BFLOAT16))
    if name != "cpu":
        assert losses != want  # torch.cuda.amp.autocast() is off without a GPU


CPU_PROGRAM = """
import json, sys
import torch
from torchport import shim
sys.path.insert(0, {folder!r})
from shim_tasks import TASKS, Training
training = Training(TASKS["gpt"], shim.device(), seed=1)
assert shim.backend().name == "cpu"
training.load(shim.load("device.pt", map_location="cuda"))
print(json.dumps(training.epoch()))
training = Training(TASKS["gpt"], shim.device())
training.epoch()
shim.save(training.state(), "cpu.pt")
"""


def test_a_checkpoint_goes_on_elsewhere(run: Run, name: str, tmp_path: Path) -> None:
    """From this back end to the CPU, which has the same torch, and back."""
    training = Training(TASKS["gpt"], shim.device())
    training.epoch()
    shim.save(training.state(), tmp_path / "device.pt")
    want = training.epoch()
    result = run(
        CPU_PROGRAM.format(folder=str(Path(__file__).parent)),
        plain=True,
        TORCHPORT_BACKEND="cpu",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == close(want, name)
    training = Training(TASKS["gpt"], shim.device(), seed=1)
    training.load(shim.load(tmp_path / "cpu.pt", map_location="cuda"))
    assert training.epoch() == close(want, name)


@pytest.mark.parametrize("written_on", ["xla", "tpu"])
def test_a_checkpoint_of_each_accelerator_goes_on_here(written_on: str) -> None:
    """Files that were written there; no environment has both."""
    folder = Path(__file__).with_name("data") / "checkpoints" / written_on
    here, there = carried.read("gan", folder)
    assert here == pytest.approx(there, rel=1e-5)


def test_a_checkpoint_holds_cpu_storages_alone(name: str, tmp_path: Path) -> None:
    training = Training(TASKS["gan"], shim.device())
    training.epoch()
    shim.save(training.state(), tmp_path / "half.pt")
    assert carried.locations(tmp_path / "half.pt") == {"cuda:0" if name == "cuda" else "cpu"}
    for written_on in ("xla", "tpu"):
        assert carried.locations(Path(__file__).with_name("data") / "checkpoints" / written_on / "gan.pt") == {"cpu"}
