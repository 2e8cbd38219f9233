"""Every fix of the linter computes what the code before it does, and on PyTorch/XLA with one program and no reads.

Values and gradients are those of the code before the fix on the CPU: with numbers, with NaN, with masks that hold for
nothing and for everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from lint_fixed import HEAD, linted, same

BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")
if BACKEND == "xla":
    import torch_xla

    torch_xla.device()  # PyTorch/XLA has to be there before the first backward pass on the CPU
ROWS = 6
NAN, INF = float("nan"), float("inf")
pytestmark = pytest.mark.skipif(BACKEND == "tpu", reason="the rules of these fixes were measured on PyTorch/XLA")


@dataclass(frozen=True)
class Case:
    """A step and what ``lint --fix`` makes of its line; ``recompiles`` says whether the code before does on XLA."""

    name: str
    code: str
    becomes: str
    recompiles: bool = True
    reads: bool = True
    unsafe: bool = False
    differs: bool = False
    """PyTorch/XLA computes something else before the fix."""

    def __str__(self) -> str:
        return self.name


CASES = (
    Case(
        "masked-fill",
        "def step(x):\n    x = x * 1\n    x[x < 0] = 0.5\n    return x * 2\n",
        "x.masked_fill_(x < 0, 0.5)",
    ),
    Case(
        "masked-fill-of-nan",
        "def step(x):\n    x = x * 1\n    bad = torch.isnan(x) | (x > 1)\n    x[bad] = -1.0\n    return x * 2\n",
        "x.masked_fill_(bad, -1.0)",
    ),
    Case(
        "selection",
        "def step(x, w):\n    x = x * 1\n    keep = x > 0\n    x[keep] = w[keep]\n    return x * 2\n",
        "x.copy_(torch.where(keep, w, x))",
    ),
    Case(
        "rows-by-the-shim",
        "def step(x, w):\n    x = x * 1\n    keep = torch.isfinite(w).all(1) & (w[:, 0] > 0)\n    x[keep] = 0.25\n"
        "    return x * 2\n",
        "shim.masked_assign(x, keep, 0.25)",
    ),
    Case(
        "one-row-by-the-shim",
        "def step(x, w):\n    x = x * 1\n    keep = torch.gt(w[:, 0], 0)\n    x[keep] = w[0]\n    return x * 2\n",
        "shim.masked_assign(x, keep, w[0])",
    ),
    Case(
        "columns-by-the-shim",
        "def step(x, w):\n    x = x * 1\n    keep = torch.gt(w[0], 0)\n    x[:, keep] = 2.0\n    return x * 2\n",
        "shim.masked_assign(x, (slice(None, None), keep), 2.0)",
    ),
    Case(
        "ignore-index",
        "def step(x, y):\n    return F.cross_entropy(x[y != 1], y[y != 1])\n",
        "x.masked_fill((y == 1).unsqueeze(-1), 0).flatten(0, -2), y.flatten(), ignore_index=1)",
    ),
    Case(
        "ignore-index-sum",
        'def step(x, y):\n    keep = y != 2\n    return F.cross_entropy(x[keep], y[keep], reduction="sum")\n',
        'x.masked_fill((y == 2).unsqueeze(-1), 0).flatten(0, -2), y.flatten(), ignore_index=2, reduction="sum")',
    ),
    Case(
        "norm-clip",
        "def step(x):\n    norm = x.norm()\n    if norm > 1.5:\n        x = x * (1.5 / norm)\n    return x\n",
        "x = x * (1.5 / torch.where(norm > 1.5, norm, 1.5))",
        unsafe=True,
    ),
    Case(
        "bool-cumsum",
        "def step(x):\n    keep = x.abs() > 0.5\n    return keep.cumsum(0) * x\n",
        "keep.long().cumsum(0)",
        recompiles=False,
        reads=False,
        differs=True,
    ),
    Case(
        "bool-cumsum-function",
        "def step(x):\n    return torch.cumsum(x > 0, dim=1) * x\n",
        "torch.cumsum((x > 0).long(), dim=1)",
        recompiles=False,
        reads=False,
        differs=True,
    ),
    Case(
        "count-nonzero",
        "def step(x):\n    return (x > 0).count_nonzero() * x\n",
        "((x > 0) != 0).sum()",
        recompiles=False,
        reads=False,
        differs=True,
    ),
    Case(
        "count-nonzero-by-dimension",
        "def step(x):\n    return torch.count_nonzero(x > 0, dim=1) * x[:, 0]\n",
        "((x > 0) != 0).sum(dim=1)",
        recompiles=False,
        reads=False,
        differs=True,
    ),
    Case(
        "whole-amax",
        "def step(x):\n    return x.nan_to_num().amax() * 2\n",
        "x.nan_to_num().max() * 2",
        recompiles=False,
        reads=False,
        differs=True,
    ),
)


def function(code: str) -> Callable[..., torch.Tensor]:
    """The ``step`` of a program."""
    space: dict[str, Any] = {}
    exec(compile(code, "step.py", "exec"), space)
    return space["step"]  # type: ignore[no-any-return]


def inputs(kind: str, seed: int) -> dict[str, torch.Tensor]:
    """Arguments by name: of plain numbers, with NaN, and such that masks hold for nothing or for all."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, 4, generator=generator)
    w = torch.randn(ROWS, 4, generator=generator)
    y = torch.randint(0, 4, (ROWS,), generator=generator)
    match kind:
        case "nan":
            x[1, 2], w[2, 1] = NAN, NAN
        case "none":
            x, w, y = x.abs() * 0.01, -w.abs() - 0.1, y * 0 + 1
        case "all":
            x, w, y = -x.abs() - 0.1, w.abs() + 0.1, y * 0 + 3
        case "zero":
            x = x * 0
        case "infinite":
            x[0, 0] = INF
    return {"x": x, "w": w, "y": y}


def run(step: Callable[..., torch.Tensor], given: dict[str, torch.Tensor], device: str) -> tuple[Any, ...]:
    """The result, and the gradients of a sum of it."""
    names = step.__code__.co_varnames[: step.__code__.co_argcount]
    leaves = [given[n].to(device).requires_grad_(given[n].is_floating_point()) for n in names]
    result = step(*leaves)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if result.requires_grad:
        weights = torch.arange(1, result.numel() + 1, device=device).reshape(result.shape).to(result.dtype)
        grads = torch.autograd.grad((result * weights).sum(), wanted, allow_unused=True)
    else:
        grads = ()
    return result.detach().cpu(), *(g.cpu() if g is not None else None for g in grads)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fix_is_the_one_that_is_meant(case: Case) -> None:
    assert case.becomes in linted(case.code, unsafe=case.unsafe)


@pytest.mark.parametrize("kind", ["plain", "nan", "none", "all", "zero", "infinite"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_values_and_gradients(case: Case, kind: str) -> None:
    before, after = function(HEAD + case.code), function(linted(case.code, unsafe=case.unsafe))
    given = inputs(kind, seed=3)
    expected = run(before, given, "cpu")
    if case.name == "norm-clip" and kind == "nan":
        expected = expected[:1]  # it is unsafe because of the gradient through a norm that is NaN
    same(run(after, given, "cpu")[: len(expected)], expected)
    if BACKEND == "xla":
        same(run(after, given, "xla")[: len(expected)], expected)


@pytest.mark.skipif(BACKEND != "xla", reason="counts programs of PyTorch/XLA")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_program_and_no_reads_after_the_fix(case: Case) -> None:
    before, after = HEAD + case.code, linted(case.code, unsafe=case.unsafe)
    compiles, reads = counted(function(before))
    assert (compiles > 1) == case.recompiles
    assert (reads > 0) == case.reads
    compiles, reads = counted(function(after))
    assert compiles <= 1
    assert reads == 0


def counted(step: Callable[..., torch.Tensor]) -> tuple[int, int]:
    """Programs compiled and values read in six steps over other data."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.metrics as met

    names = step.__code__.co_varnames[: step.__code__.co_argcount]
    given = [[inputs("plain", seed)[n].to("xla") for n in names] for seed in range(6)]
    torch_xla.sync(wait=True)
    met.clear_all()
    for arguments in given:
        result = step(*arguments)
        torch_xla.sync(wait=True)
        del result
    xm.wait_device_ops()
    return tuple((met.metric_data(n) or (0,))[0] for n in ("CompileTime", "TransferFromDeviceTime"))  # type: ignore[return-value]
