"""A test that guards a kernel stays, also where another file of the project launches it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.analysis.project import Collector, kernels_in
from torchport.rewrite import Outcome

KERNELS = """
import triton

@triton.jit
def _kernel(x, size):
    pass

def launch(x):
    _kernel[(1,)](x, 16)
    return x

class Fused:
    def forward(self, x):
        return launch(x)

def safe(x):
    return launch(x) if x.is_cuda else x

def plain(x):
    return x
"""
HELION = "import helion\n@helion.kernel()\ndef launch(x):\n    return x\n"
NUMBA = "from numba import cuda\n@cuda.jit\ndef launch(x):\n    pass\n"
WRAPPED = "from kernel_parts.made import launch\ndef _helper(x):\n    return launch(x)\n"


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        pytest.param("from made import launch", "launch(x)", id="function"),
        pytest.param("from made import launch as run", "run(x)", id="alias"),
        pytest.param("from kernel_parts import launch", "launch(x)", id="handed on by its package"),
        pytest.param("from .kernel_parts.made import launch", "launch(x)", id="relative"),
        pytest.param("from . import launch", "launch(x)", id="handed on by the package of both"),
        pytest.param("import kernel_parts.made", "kernel_parts.made.launch(x)", id="module"),
        pytest.param("from made import Fused", "Fused()(x)", id="layer"),
        pytest.param("from made import Fused", "Fused.apply(x)", id="autograd"),
        pytest.param("from made import _kernel", "_kernel[dims](x)", id="kernel"),
        pytest.param(WRAPPED, "_helper(x)", id="helper"),
    ],
)
def test_guard_of_a_kernel_of_another_file_stays(imported: str, call: str, migrate: Callable[..., Outcome]) -> None:
    collector = Collector()
    collector.add(KERNELS.encode(), "pkg/kernel_parts/made.py")
    text = (
        f"import torch\n{imported}\ndef double(x, dims):\n    if not x.is_cuda:\n        return x\n    return {call}\n"
    )
    for target in ("portable", "xla", "tpu"):
        outcome = migrate(text, "pkg/use.py", target=target, project=collector.facts())
        assert outcome.text is None
        assert [finding.reason[:23] for finding in outcome.left] == ["it guards a kernel that"]
    elsewhere = text.replace("made", "other").replace("kernel_parts", "nets").replace("from . ", "from nets ")
    assert migrate(elsewhere.replace("[dims]", "[0]"), "pkg/use.py", project=collector.facts()).text is not None


@pytest.mark.parametrize("name", ["safe", "plain"])
def test_a_function_that_runs_everywhere_is_no_kernel(name: str, migrate: Callable[..., Outcome]) -> None:
    collector = Collector()
    collector.add(KERNELS.encode(), "made.py")
    text = f"import torch\nfrom made import {name}\ndef double(x):\n    return {name}(x) if x.is_cuda else x\n"
    assert migrate(text, "use.py", project=collector.facts()).text is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(HELION, {("launch", "made"), ("launch", "pkg")}, id="Helion"),
        pytest.param(NUMBA, {("launch", "made"), ("launch", "pkg")}, id="Numba"),
        pytest.param("from triton import jit\n@jit\ndef k(): ...", {("k", "made"), ("k", "pkg")}, id="name alone"),
        pytest.param("import triton\nk = triton.jit(f)", {("k", "made"), ("k", "pkg")}, id="call"),
        pytest.param("import tritonclient\ndef f(x):\n    return x[0](x)", set(), id="another Triton"),
        pytest.param(
            "from triton import jit\nx = jit.version(1)\ndef f(x):\n    return (x * x).sum()", set(), id="none"
        ),
        pytest.param("import triton\ndef broken(", set(), id="not Python"),
        pytest.param("import triton\nx = " + "(" * 20_000, set(), id="too deep"),
    ],
)
def test_kernels_of_a_file(text: str, found: set[tuple[str, str]]) -> None:
    assert kernels_in(text.encode(), "pkg/made.py") == found
