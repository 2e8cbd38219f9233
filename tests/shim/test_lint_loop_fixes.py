"""Fixes that concern a whole loop: run over several steps before and after, on the CPU and on PyTorch/XLA."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from lint_fixed import HEAD, linted, same

BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")
if BACKEND == "xla":
    import torch_xla
    import torch_xla.debug.metrics as met

    torch_xla.device()  # PyTorch/XLA has to be there before the first backward pass on the CPU
STEPS = 6
pytestmark = pytest.mark.skipif(BACKEND == "tpu", reason="the rules of these fixes were measured on PyTorch/XLA")

INDEX_READ = """
def train(model, batches, optimizer, end):
    table = torch.linspace(-1, 1, 36, device="DEVICE").reshape(6, 6).requires_grad_()
    losses = []
    for i, x in enumerate(batches):
        loss = (model(x + table[i]) * model(table[:, i])).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        end()
    return [*losses, table.grad]
"""
INDEX_WRITTEN = """
def train(model, batches, optimizer, end):
    seen = torch.zeros(2, 6, device="DEVICE")
    losses = []
    for i, x in enumerate(batches):
        out = model(x)
        seen[:, i] = out
        loss = (seen * seen).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        seen = seen.detach()
        end()
    return [*losses, seen]
"""
SUMMED = """
def train(model, batches, optimizer, end):
    total = 0.0
    for x in batches:
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
        end()
    return [torch.as_tensor(total)]
"""
KEPT = """
def train(model, batches, optimizer, end):
    losses, total, parts = [], 0, {}
    for i, x in enumerate(batches):
        penalty = model(x).abs().mean()
        loss = model(x).pow(2).sum() + penalty
        loss.backward()
        optimizer.step()
        losses.append(loss)
        total += loss
        parts[i] = (penalty, i)
        end()
    return [*losses, total, *(kept for kept, _ in parts.values())]
"""
LAST_BATCH = """
from torch.utils.data import DataLoader

def train(model, batches, optimizer, end):
    loader = DataLoader(torch.stack([b.cpu() for b in batches]), batch_size=4, shuffle=True)
    losses = []
    for x in loader:
        loss = model(x.to("DEVICE")).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        end()
    return losses
"""
EVALUATION = """
def train(model, batches, optimizer, end):
    results = []
    with torch.inference_mode():
        for x in batches:
            results.append(model(x).pow(2).sum())
            end()
    return results
"""


def trained(code: str, device: str) -> tuple[torch.Tensor, ...]:
    """What ``train`` returns after six steps, on the host."""
    return tuple(t.detach().cpu() for t in returned(code, device))


def kept_graphs(code: str) -> int:
    """How many of the tensors that ``train`` returns have a graph behind them."""
    return sum(t.grad_fn is not None for t in returned(code, "cpu"))


def returned(code: str, device: str) -> list[torch.Tensor]:
    """What ``train`` returns after six steps."""
    space: dict[str, Any] = {}
    exec(compile(code.replace("DEVICE", device), "train.py", "exec"), space)
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(5)
    batches = [torch.randn(6, generator=generator).to(device) for _ in range(STEPS)]
    model = torch.nn.Linear(6, 2)
    model.load_state_dict({"weight": torch.linspace(-0.2, 0.3, 12).reshape(2, 6), "bias": torch.zeros(2)})
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    end = (lambda: torch_xla.sync()) if device == "xla" else (lambda: None)
    result: list[torch.Tensor] = space["train"](model, batches, optimizer, end)
    return result


def counted(code: str) -> tuple[tuple[torch.Tensor, ...], int, int]:
    """What the program returns on PyTorch/XLA, the programs that it compiles, and the values that it reads."""
    met.clear_all()
    result = trained(code, "xla")
    compiled, reads = ((met.metric_data(n) or (0,))[0] for n in ("CompileTime", "TransferFromDeviceTime"))
    return result, compiled, reads - len(result)


@pytest.mark.parametrize(
    ("code", "written", "times", "unsafe"),
    [(INDEX_READ, "index_select(", 2, False), (INDEX_WRITTEN, "index_copy_(", 1, True)],
    ids=["read", "written"],
)
def test_a_number_that_changes_in_every_step_becomes_data(code: str, written: str, times: int, unsafe: bool) -> None:
    after = linted(code, unsafe=unsafe)
    assert after.count(written) == times
    expected = trained(HEAD + code, "cpu")
    same(trained(after, "cpu"), expected)
    if BACKEND == "xla":
        before, compiled, _ = counted(HEAD + code)
        same(before, expected)
        assert compiled >= STEPS
        result, compiled, _ = counted(after)
        same(result, expected)
        assert compiled < STEPS


def test_a_sum_of_losses_stays_on_the_device() -> None:
    after = linted(SUMMED, unsafe=True)
    assert "total += loss.detach()" in after
    expected = trained(HEAD + SUMMED, "cpu")
    same(trained(after, "cpu"), expected)
    if BACKEND == "xla":
        before, _, reads = counted(HEAD + SUMMED)
        same(before, expected)
        assert reads >= STEPS - 1
        result, _, reads = counted(after)
        same(result, expected)
        assert reads == 0


def test_losses_are_kept_without_their_graphs() -> None:
    after = linted(KEPT, unsafe=True)
    assert "losses.append(loss.detach())" in after
    assert "total += loss.detach()" in after
    assert "parts[i] = (penalty.detach(), i)" in after
    expected = trained(HEAD + KEPT, "cpu")
    same(trained(after, "cpu"), expected)
    assert [kept_graphs(code) for code in (HEAD + KEPT, after)] == [2 * STEPS + 1, 0]
    if BACKEND == "xla":
        before, compiled, _ = counted(HEAD + KEPT)
        same(before, expected)
        result, again, _ = counted(after)
        same(result, expected)
        assert again <= compiled


def test_no_smaller_last_batch() -> None:
    after = linted(LAST_BATCH, unsafe=True)
    assert "shuffle=True, drop_last=True)" in after
    whole = trained(HEAD + LAST_BATCH, "cpu")
    expected = trained(after, "cpu")
    assert (len(whole), len(expected)) == (2, 1)
    same(expected, whole[:1])
    if BACKEND == "xla":
        before, compiled, _ = counted(HEAD + LAST_BATCH)
        same(before, whole)
        result, fewer, _ = counted(after)
        same(result, expected)
        assert fewer < compiled


def test_no_grad_computes_what_inference_mode_cannot() -> None:
    after = linted(EVALUATION)
    assert "with torch.no_grad():" in after
    expected = trained(HEAD + EVALUATION, "cpu")
    same(trained(after, "cpu"), expected)
    if BACKEND == "xla":
        with pytest.raises(RuntimeError):
            trained(HEAD + EVALUATION, "xla")
        same(trained(after, "xla"), expected)
