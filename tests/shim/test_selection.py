"""The back end is chosen at first use, from what is really there, and nothing starts before that."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from torchport.shim import selection
from torchport.shim.backends.base import Backend

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_importing_loads_nothing_and_is_quick(run: Run) -> None:
    result = run(
        """
import sys, time, torch
before = time.process_time()
import torchport.shim as shim
print(time.process_time() - before)
assert not {"torch_xla", "libcst", "click"} & set(sys.modules), sys.modules
from torchport.shim import selection
assert selection._chosen is None
""",
        plain=True,
        TORCHPORT_BACKEND=None,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 0.02  # seconds; about 0.003 on a quiet machine


def test_defining_functions_and_classes_chooses_nothing(run: Run) -> None:
    result = run("""
import torch
from torchport import shim
class Double(torch.autograd.Function):
    @staticmethod
    @shim.custom_fwd(cast_inputs=torch.float16)
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    @shim.custom_bwd
    def backward(ctx, g):
        return 2 * g
from torchport.shim import selection
assert selection._chosen is None
@shim.autocast()
def f(x):
    return x
assert shim.backend().name in ("cuda", "tpu") or not shim.is_initialized()
""")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("wanted", ["gpu", "cuda:0", "xla,cpu"])
def test_an_unknown_name_is_one_clear_error(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHPORT_BACKEND", wanted)
    with pytest.raises(RuntimeError, match=f"{wanted} names no back end; set it to one of cpu, cuda, tpu, xla, or"):
        selection._choose()


@pytest.mark.parametrize("cls", selection.available_backends(), ids=lambda cls: cls.name)
def test_a_back_end_that_is_not_there_is_one_clear_error(cls: type[Backend], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHPORT_BACKEND", f" {cls.name.upper()} ")
    if cls.why_unusable():
        with pytest.raises(RuntimeError, match=f"TORCHPORT_BACKEND={cls.name}, but .*(install|choose)"):
            selection._choose()
    else:
        assert type(selection._choose()) is cls


def test_another_vendors_torch_tpu_is_not_taken_for_googles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "tpu":
        pytest.skip("Google's is imported already")
    (tmp_path / "torch_tpu").mkdir()
    (tmp_path / "torch_tpu" / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TORCHPORT_BACKEND", "tpu")
    with pytest.raises(RuntimeError, match=r"not that of Google's TorchTPU, but another vendor's .*: uninstall it"):
        selection._choose()


def test_a_torch_that_torch_tpu_does_not_know_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the package, and does not import it."""
    import torch

    if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 11):
        pytest.skip(f"torch-tpu works with torch {torch.__version__}")
    (tmp_path / "torch_tpu").mkdir()
    (tmp_path / "torch_tpu" / "__init__.py").write_text("raise ImportError('must not be imported')")
    (tmp_path / "torch_tpu" / "_loader.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TORCHPORT_BACKEND", "tpu")
    problem = r"torch-tpu works with torch 2\.11 to 2\.15, and torch .* is installed: pip install torchport\[tpu\]"
    with pytest.raises(RuntimeError, match=problem):
        selection._choose()


def test_versions_that_do_not_fit_are_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.util.find_spec("torch_xla") is not None
    (tmp_path / "torch_xla-1.9.0.dist-info").mkdir()
    (tmp_path / "torch_xla-1.9.0.dist-info" / "METADATA").write_text("Name: torch_xla\nVersion: 1.9.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TORCHPORT_BACKEND", "xla")
    problem = (
        "torch_xla 1.9.0 works with the torch of the same number, and torch .* is installed" if installed else "pip"
    )
    with pytest.raises(RuntimeError, match=problem):
        selection._choose()


def test_two_accelerators_are_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    if name not in ("xla", "tpu"):
        pytest.skip("one accelerator is needed")
    cuda = next(cls for cls in selection.available_backends() if cls.name == "cuda")
    monkeypatch.setattr(cuda, "why_unusable", lambda: "")
    monkeypatch.delenv("TORCHPORT_BACKEND")
    assert selection._choose().name == "cuda"
    assert f"cuda and {name} can be used here; cuda is, unless TORCHPORT_BACKEND names another" in caplog.text


def test_the_order_of_preference() -> None:
    assert [cls.name for cls in selection.available_backends()] == ["cuda", "tpu", "xla", "cpu"]


def test_unset_means_what_is_there(run: Run, name: str) -> None:
    result = run("from torchport import shim\nprint(shim.backend().name)", TORCHPORT_BACKEND=None)
    assert result.stdout.split()[-1:] == [name], result.stderr


def test_installing_torch_xla_alone_does_not_choose_it(run: Run) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA comes first")
    program = "import sys\nfrom torchport import shim\nprint(shim.backend().name, 'torch_xla' in sys.modules)"
    result = run(program, plain=True, TORCHPORT_BACKEND=None, PJRT_DEVICE=None, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.split() == ["cpu", "False"], result.stderr


def test_asking_for_the_device_starts_no_runtime(run: Run, name: str) -> None:
    if name != "xla":
        pytest.skip("only PyTorch/XLA has a runtime that must not start early")
    result = run("""
import torch
from torchport import shim
def f(device=shim.device()):
    return device
assert f() == torch.device("xla")
shim.is_available(), shim.device_count(), shim.accelerator_type(), shim.current_device(), shim.set_device(0)
shim.is_bf16_supported(), shim.is_fused_optimizer_supported(), shim.is_pin_memory_supported(), shim.device_ids(0)
shim.GradScaler(), shim.autocast(), shim.steps([])
torch.nn.Linear(2, 2)
assert not shim.is_initialized()
shim.init()
assert shim.is_initialized()
""")
    assert result.returncode == 0, result.stderr


def test_a_backward_pass_before_the_back_end_is_chosen_is_one_clear_error(run: Run, name: str) -> None:
    if name != "xla":
        pytest.skip("only PyTorch/XLA must come first")
    result = run("""
import torch
from torchport import shim
model = torch.nn.Linear(2, 1)
model(torch.ones(1, 2)).sum().backward()
model.to(shim.device())
model(torch.ones(1, 2).to(shim.device())).sum().backward()
""")
    assert "RuntimeError: a backward pass on the CPU came before PyTorch/XLA was loaded" in result.stderr
    assert "use the shim, as in `device = shim.device()`, before the first backward pass" in result.stderr


def test_a_backward_pass_on_the_cpu_first_does_not_spoil_the_device(run: Run) -> None:
    result = run("""
import torch
from torchport import shim
device = shim.device()
model = torch.nn.Linear(2, 1)
model(torch.ones(1, 2)).sum().backward()
torch.autograd.grad(model(torch.ones(1, 2)).sum(), model.weight)
model.to(device)
model(torch.ones(1, 2).to(device)).sum().backward()
shim.sync()
print(model.weight.grad.tolist())
""")
    assert result.stdout.strip().endswith("[[2.0, 2.0]]"), result.stderr
