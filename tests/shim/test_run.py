"""``torchport run``: an unedited program, its arguments and exit status, and the log."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from under_test import BACKEND, ROOT, TPU_ON_CPU

RUNNER = ROOT / "torchport" / "shim" / "patching" / "run.py"
PROGRAM = """
import os
import sys

import torch
import beside

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for step in range(4):
    loss = model(torch.ones(2, 4).to(device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
print("losses", *(round(loss.item(), 4) for loss in losses))
print("on", losses[0].device.type, "with", sys.argv[1:], "at", os.path.basename(__file__), __name__, beside.name)
sys.exit(5)
"""
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def torchport_run(tmp_path: pathlib.Path) -> Program:
    """Run source text under ``torchport run``, with ``options`` of it before and ``arguments`` after the script."""
    (tmp_path / "beside.py").write_text("name = 'beside'\n")

    def program(source: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(source)
        if BACKEND == "tpu":  # the plug-in has to be brought up in the process of the program
            command = [str(TPU_ON_CPU), str(RUNNER), json.dumps(options), str(script)]
        else:
            flags = [
                f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in options.items()
            ]
            command = ["-m", "torchport", "run", *flags, str(script)]
        return subprocess.run(
            [sys.executable, *command, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path.parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return program


def log_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_program_that_asks_first_falls_to_the_cpu_and_is_told_so(torchport_run: Program, name: str) -> None:
    result = torchport_run(PROGRAM, "--cuda", "x")
    assert "on cpu with ['--cuda', 'x'] at program.py __main__ beside" in result.stdout, result.stderr
    assert result.returncode == 5
    if name in ("xla", "tpu"):
        assert "program.py:8: torch.cuda.is_available -> False (kept)" in result.stderr
        assert f"nothing was put on {name}: the program ran on the CPU" in result.stderr
        assert "--pretend-cuda" in result.stderr


def test_it_trains_on_the_device_where_cuda_is_pretended(
    torchport_run: Program, name: str, tmp_path: pathlib.Path
) -> None:
    if name == "cuda":
        pytest.skip("CUDA needs no pretending")
    log = tmp_path / "log.json"
    result = torchport_run(PROGRAM, pretend_cuda=True, log=str(log), log_format="json")
    assert f"on {name} with [] at" in result.stdout, result.stderr
    assert result.returncode == 5
    assert losses(result.stdout) == pytest.approx(plain_losses(), abs=2e-3)
    assert "torchport:" not in result.stderr
    lines = log_lines(log)
    assert lines[0] == {"type": "start", "backend": name, "pretend_cuda": True}
    calls = {(line["line"], line["old"]): (line["new"], line["support"]) for line in lines if line["type"] == "call"}
    assert calls[(8, "torch.cuda.is_available")] == ("True", "emulated")
    assert calls[(10, "Module.to('cuda')")] == (f"Module.to('{name}')", "same")
    summary = lines[-1]
    assert summary["type"] == "summary"
    assert summary["step_boundaries"] == (4 if name == "xla" else 0)
    counts = {(call["line"], call["old"]): call["count"] for call in summary["calls"]}
    assert counts[(14, "Tensor.to('cuda')")] == 4


def plain_losses() -> list[float]:
    """What the program computes, by hand: a step takes 2 * 0.01 * (4 weights and a bias) off the one output."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 1)
    value = layer(torch.ones(1, 4)).item()
    return [(value * 0.9**step) ** 2 for step in range(4)]


def losses(output: str) -> list[float]:
    line = next(line for line in output.splitlines() if line.startswith("losses"))
    return [float(word) for word in line.split()[1:]]


FAILING = """
def fail():
    raise KeyError("cuda")

fail()
"""


def test_an_error_looks_as_without_torchport(torchport_run: Program) -> None:
    result = torchport_run(FAILING)
    assert result.returncode == 1
    trace = result.stderr[result.stderr.index("Traceback") :]
    assert "KeyError: 'cuda'" in trace
    assert "patching" not in trace or BACKEND == "tpu"


WORKERS = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(index)

def work(rank, word):
    print("worked", rank, word, torch.ones(1).cuda().device.type, flush=True)

def seed(worker=0):
    torch.manual_seed(3)
    torch.cuda.manual_seed(3)
    torch.cuda.manual_seed_all(3)

def seed_and_draw():
    seed()
    print("drew", torch.rand(1).item(), flush=True)

if __name__ == "__main__":
    torch.ones(1).cuda().sum().item()  # what comes now must leave the device alone
    loader = torch.utils.data.DataLoader(Data(), num_workers=2, pin_memory=True, worker_init_fn=seed)
    print("loaded", sum(batch.item() for batch in loader), flush=True)
    forked = torch.multiprocessing.get_context("fork").Process(target=seed_and_draw)
    forked.start()
    forked.join()
    torch.multiprocessing.spawn(work, args=("hard",), nprocs=torch.cuda.device_count())
"""


def test_other_processes(torchport_run: Program, name: str) -> None:
    """Workers of a DataLoader, and a launch whose nprocs is 0 where the number of CUDA devices is asked."""
    result = torchport_run(WORKERS)
    assert "loaded 6" in result.stdout, result.stderr
    assert f"drew {torch.rand(1, generator=torch.Generator().manual_seed(3)).item()}" in result.stdout, result.stderr
    assert f"worked 0 hard {name}" in result.stdout, result.stderr
    assert result.returncode == 0
    if name != "cuda":
        assert result.stderr.count(" calls at ") == 1, result.stderr


def test_a_module(tmp_path: pathlib.Path) -> None:
    if BACKEND == "tpu":
        pytest.skip("the plug-in is brought up by a script")
    (tmp_path / "trainer.py").write_text(
        "import sys, torch\nprint(torch.ones(1).cuda().device.type, sys.argv[1:], __name__)\n"
    )
    command = [sys.executable, "-m", "torchport", "run", "-m", "trainer", "--lr", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert f"{BACKEND} ['--lr', '3'] __main__" in result.stdout, result.stderr


def test_a_back_end_that_is_not_there(torchport_run: Program, tmp_path: pathlib.Path) -> None:
    if BACKEND == "tpu":
        pytest.skip("the runner is started without the command line")
    other = "xla" if BACKEND == "cpu" and not has("torch_xla") else "tpu"
    if has("torch_tpu"):
        pytest.skip("every back end of this environment is there")
    result = torchport_run(PROGRAM, backend=other)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: TORCHPORT_BACKEND={other}, but torch")


def has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None
