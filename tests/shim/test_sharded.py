"""Device meshes and FSDP for real: gloo between two processes, TorchTPU alone and as one of eight."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
import sharded
import torch
from test_many_devices import PROGRAM, start
from under_test import BACKEND, ROOT, TPU_ON_CPU

from torchport.shim import sharding

KINDS = ("mesh", "mesh-2d", "default", "fsdp1", "fsdp1-moved")
WORLD = {"cpu": 2, "tpu": 1, "cuda": torch.cuda.device_count()}
Run = Callable[..., subprocess.CompletedProcess[str]]


def run_sharded(*arguments: str) -> list[list[str]]:
    """The lines that the program printed, in words."""
    launcher = [str(TPU_ON_CPU)] if BACKEND == "tpu" else []
    result = start([*launcher, str(pathlib.Path(sharded.__file__)), *arguments])
    assert result.returncode == 0, result.stderr
    return [line.split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith(("losses ", "shard "))]


def test_sharded_training_gives_the_losses_of_one_device(name: str) -> None:
    if name == "xla":
        pytest.skip("PyTorch/XLA refuses FSDP: see below")
    found = {kind: json.loads(values) for _, kind, values in run_sharded(str(WORLD[name]), "29770", *KINDS)}
    assert tuple(found) == KINDS
    expected = pytest.approx(sharded.train(sharded.many_devices.network().to(sharded.shim.device())), rel=1e-5)
    for kind, losses in found.items():
        assert losses == expected, kind


def test_each_device_holds_its_shard(name: str) -> None:
    """Device 0 of eight, two groups of four: torch's fake process group moves nothing, so this shows shapes alone."""
    if name == "xla":
        pytest.skip("PyTorch/XLA refuses FSDP: see below")
    assert [" ".join(words[1:]) for words in run_sharded("8", "fake")] == [
        f"{key} {name} {whole} {part} {part}"
        for key, whole, part in (
            ("0.weight", "(8, 4)", "(2, 4)"),
            ("0.bias", "(8,)", "(2,)"),
            ("2.weight", "(1, 8)", "(1, 8)"),  # the first of four takes the one row
            ("2.bias", "(1,)", "(1,)"),
        )
    ]


REFUSED = """
import torch
import torch_xla
from torchport import shim

device_type = shim.device().type
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

model = torch.nn.Linear(2, 2)
for attempt in (
    lambda: init_device_mesh(device_type, (1,)),
    lambda: DeviceMesh(device_type, mesh=[0]),
    lambda: fully_shard(model),
    lambda: FullyShardedDataParallel(model.to(shim.device())),
):
    try:
        attempt()
    except RuntimeError as error:
        print(str(error).partition(". ")[0], "use_spmd()" in str(error))
"""


def test_what_pytorch_xla_cannot_do_is_refused(run: Run, name: str) -> None:
    if name != "xla":
        pytest.skip("every other back end has FSDP")
    result = run(REFUSED)
    refused = [f"PyTorch/XLA cannot run {what} of torch.distributed True" for what in (
        "a device mesh", "a device mesh", "fully_shard", "FullyShardedDataParallel",
    )]  # fmt: skip
    assert result.stdout.splitlines() == refused, result.stderr


ADVISED = """
import numpy
import torch
import torch_xla
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel

import sharded
from torchport import shim

xr.use_spmd()
mesh = xs.Mesh(numpy.arange(4), (4,), ("fsdp",))
model = SpmdFullyShardedDataParallel(sharded.many_devices.network().to(shim.device()), mesh=mesh)
whole = sharded.batch
def batch():
    parts = tuple(part.to(shim.device()) for part in whole())
    for part in parts:
        xs.mark_sharding(part, mesh, ("fsdp", None))
    return parts
sharded.batch = batch
print("losses", sharded.train(model))
print([torch_xla._XLAC._get_xla_sharding_spec(weight) for weight in model.parameters()])
"""


def test_what_the_refusal_advises_trains(run: Run, name: str) -> None:
    if name != "xla":
        pytest.skip("only PyTorch/XLA has SPMD")
    result = run(ADVISED, CPU_NUM_DEVICES="4", PYTHONPATH=f"{ROOT}{os.pathsep}{PROGRAM.parent}")
    losses, specs = result.stdout.splitlines()
    expected = sharded.train(sharded.many_devices.network().to(sharded.shim.device()))
    assert json.loads(losses.removeprefix("losses ")) == pytest.approx(expected, rel=1e-5), result.stderr
    assert specs == str([f"{{devices=[{part}]0,1,2,3}}" for part in ("4,1", "4", "1,4", "4")])


def test_a_module_is_changed_when_it_is_imported(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.distributed.fsdp takes most of a second to import, which a program without it must not pay."""
    (tmp_path / "torchport_late.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    seen: list[int] = []
    sharding._when_imported("torchport_late", lambda: seen.append(sys.modules["torchport_late"].value))
    assert seen == []
    assert importlib.import_module("torchport_late").value == 1
    assert seen == [1]
    sharding._when_imported("torchport_late", lambda: seen.append(2))
    assert seen == [1, 2]
    assert sys.meta_path == finders
