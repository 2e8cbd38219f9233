"""The back end that this whole run tests: TORCHPORT_TEST_BACKEND, one of cpu (default), cuda, xla, tpu.

All of them are real: PyTorch/XLA runs with PJRT_DEVICE=CPU, TorchTPU on a PJRT plug-in for the CPU.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from under_test import BACKEND, ROOT, TPU_ON_CPU

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]  # the core environment: the shim is tested in those that have torch
else:
    os.environ["TORCHPORT_BACKEND"] = BACKEND
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tensors here are tiny: threads would only wait for each other
    if BACKEND != "xla":
        os.environ.pop("PJRT_DEVICE", None)
    sys.path.insert(0, str(ROOT))
    if BACKEND == "xla":
        os.environ.setdefault("PJRT_DEVICE", "CPU")
    if BACKEND in ("xla", "tpu"):  # most of the time goes into compiling: do little of it
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    if BACKEND == "tpu":
        spec = importlib.util.spec_from_file_location("tpu_on_cpu", TPU_ON_CPU)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.bring_up()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """TorchTPU warns that its names are experimental, and touches gradients in its autocast."""
    no_gpu = False
    if BACKEND == "cuda":
        import torch

        no_gpu = not torch.cuda.is_available()
    for item in items:
        if no_gpu:
            item.add_marker(pytest.mark.skip(reason="TORCHPORT_TEST_BACKEND=cuda, and torch sees no GPU here"))
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:<TorchTpu/"))
            item.add_marker(pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"))


@pytest.fixture
def name() -> str:
    """The name of the back end under test."""
    return BACKEND


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run source text as a program of its own, with the back end of this run (or with changed variables)."""

    def program(source: str, *, plain: bool = False, **changes: str | None) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(source)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for key, value in changes.items():
            environment.pop(key, None)
            if value is not None:
                environment[key] = value
        launcher = [str(TPU_ON_CPU)] if BACKEND == "tpu" and not plain else []
        command = [sys.executable, *launcher, str(script)]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    return program


@pytest.fixture(autouse=True)
def _unchanged_defaults() -> Iterator[None]:
    """A test may change torch's defaults; the next one must not see it, nor which notices were given."""
    import torch

    from torchport import shim
    from torchport.shim import notices

    shim.backend()  # before the first backward pass on the CPU, as PyTorch/XLA wants it
    notices._said.clear()
    yield
    torch.set_default_dtype(torch.float32)
    if torch.empty(0).device.type != "cpu":
        torch.set_default_device(None)
