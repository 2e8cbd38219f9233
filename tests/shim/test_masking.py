"""masked_assign is plain indexing, for every index and value; on PyTorch/XLA it fetches nothing for a mask."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchport import shim

ROWS = torch.tensor([True, False, True, False])
GRID = torch.tensor([[True, False, True], [False] * 3, [True] * 3, [False, True, False]])
COLUMNS = torch.tensor([False, True, True])
NUMBERS = torch.arange(24.0).reshape(4, 3, 2)

CASES: dict[str, tuple[Any, Any]] = {
    "number": (ROWS, 7),
    "number that is not whole": (ROWS, 0.5),
    "tensor of one": (ROWS, torch.tensor(7.0)),
    "tensor of one, with dimensions": (ROWS, torch.tensor([[7.0]])),
    "tensor of one, of another dtype": (ROWS, torch.tensor(7)),
    "a row for all": (ROWS, torch.tensor([1.0, 2.0])),
    "a row for each": (ROWS, torch.arange(12.0).reshape(2, 3, 2) + 50),
    "a row for each, to be broadcast": (ROWS, torch.tensor([[[50.0]], [[60.0]]])),
    "none selected": (torch.zeros(4, dtype=torch.bool), 7.0),
    "none selected, no rows": (torch.zeros(4, dtype=torch.bool), torch.empty(0, 3, 2)),
    "all selected": (torch.ones(4, dtype=torch.bool), torch.arange(24.0).reshape(4, 3, 2) + 50),
    "in a tuple": ((ROWS,), 7.0),
    "two dimensions": (GRID, 7.0),
    "two dimensions, a row for each": (GRID, torch.arange(12.0).reshape(6, 2) + 50),
    "two dimensions, a column for all": (GRID, torch.tensor([[50.0, 60.0]])),
    "all dimensions": (NUMBERS > 9, 7.0),
    "all dimensions, a row for each": (NUMBERS > 9, torch.arange(14.0) + 50),
    "after a slice": ((slice(None), COLUMNS), 7.0),
    "after a slice, a row for each": ((slice(None), COLUMNS), torch.arange(16.0).reshape(4, 2, 2) + 50),
    "after a slice, a row for each of them": ((slice(None), COLUMNS), torch.tensor([[50.0], [60.0]])),
    "after a slice, broadcast": ((slice(1, 3), COLUMNS), torch.tensor([[50.0, 60.0]])),
    "after a number": ((2, COLUMNS), torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "before a number": ((ROWS, slice(None), 1), torch.tensor([1.0, 2.0, 3.0])),
    "after dots": ((..., torch.tensor([True, False])), torch.tensor([5.0])),
    "after dots, a row for each": ((..., torch.tensor([True, True])), torch.tensor([5.0, 6.0])),
    "before dots": ((ROWS, ...), 7.0),
    "with a new dimension": ((None, ROWS), 7.0),
    "a mask of no dimension": (torch.tensor(True), 7.0),
    "numbers": (torch.tensor([0, 2]), torch.tensor([1.0, 2.0])),
    "two masks": ((ROWS, torch.tensor([True, False, True])), 7.0),
    "mask and numbers": ((ROWS, torch.tensor([0, 1])), 7.0),
    "a number alone": (1, 7.0),
    "a slice alone": (slice(1, 3), 7.0),
    "a list": ([0, 2], 7.0),
}


def on_device(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(on_device(part) for part in value)
    return value.to(shim.device()) if isinstance(value, torch.Tensor) and value.dim() else value


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_equals_plain_indexing(case: str, dtype: torch.dtype) -> None:
    index, value = CASES[case]
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        value = value.to(dtype)
    want = NUMBERS.to(dtype, copy=True)
    want[index] = value
    target = NUMBERS.to(dtype).to(shim.device()).clone()
    alias = target[:]
    shim.masked_assign(target, on_device(index), on_device(value))
    assert target.dtype == dtype
    assert target.cpu().tolist() == want.tolist()
    assert alias.cpu().tolist() == want.tolist()


@pytest.mark.parametrize("case", ["a row for all", "a row for each", "after a slice, a row for each", "tensor of one"])
def test_gradients_are_those_of_plain_indexing(case: str) -> None:
    index, value = CASES[case]

    def gradients(device: Any, index: Any, assign: Any) -> list[list[float]]:
        base = NUMBERS.to(device, copy=True).requires_grad_()
        given = value.detach().to(device, copy=True).requires_grad_()
        target = base * 2
        assign(target, index, given)
        (target * NUMBERS.to(device)).sum().backward()
        assert base.grad is not None
        assert given.grad is not None
        return [base.grad.tolist(), given.grad.tolist()]

    def plain(target: Any, index: Any, value: Any) -> None:
        target[index] = value

    assert gradients(shim.device(), on_device(index), shim.masked_assign) == gradients("cpu", index, plain)


def test_a_view_of_a_larger_tensor_is_written_through() -> None:
    whole = torch.zeros(4, 3, 2, device=shim.device())
    shim.masked_assign(whole.transpose(0, 1)[1:], on_device((slice(None), ROWS)), 7.0)
    want = torch.zeros(4, 3, 2)
    want.transpose(0, 1)[1:][:, ROWS] = 7.0
    assert whole.cpu().tolist() == want.tolist()


def test_what_is_not_a_tensor_is_assigned_as_ever() -> None:
    table: dict[str, int] = {}
    shim.masked_assign(table, "a", 1)
    assert table == {"a": 1}


@pytest.mark.parametrize(
    ("dtype", "index", "value", "error"),
    [
        (torch.float32, torch.tensor([True, False]), 1.0, (IndexError, RuntimeError)),
        (torch.float32, ROWS, torch.arange(5.0), RuntimeError),
        (torch.float32, (ROWS, 0, 0, 0), 1.0, IndexError),
    ],
)
def test_errors_are_those_of_plain_indexing(dtype: torch.dtype, index: Any, value: Any, error: Any) -> None:
    target = NUMBERS.to(dtype).to(shim.device()).clone()

    def assign() -> None:
        shim.masked_assign(target, on_device(index), on_device(value))
        shim.synchronize()  # PyTorch/XLA looks at some shapes only now

    with pytest.raises(error):
        assign()


def test_a_number_that_does_not_fit_is_an_error(name: str) -> None:
    target = torch.zeros(4, dtype=torch.uint8, device=shim.device())
    if name == "tpu":
        pytest.skip("TorchTPU itself wraps the number around")
    with pytest.raises(RuntimeError, match="overflow"):
        shim.masked_assign(target, on_device(ROWS), 300)


def test_on_xla_a_mask_is_not_fetched_and_compiles_once(name: str) -> None:
    if name != "xla":
        pytest.skip("plain indexing")
    from torch_xla.debug import metrics

    target = torch.zeros(4, 3, device=shim.device())
    rows = torch.ones(2, 3, device=shim.device())
    masks = [on_device(torch.tensor([bool(number & bit) for bit in (1, 2, 4, 8)])) for number in (3, 5, 6, 7, 9)]
    shim.synchronize()
    metrics.clear_all()
    for mask in masks:
        shim.masked_assign(target, mask, 7.0)
        shim.masked_assign(target, mask, rows)
        shim.sync()
    shim.synchronize()
    assert not metrics.metric_data("TransferFromDeviceTime")
    compilations = metrics.metric_data("CompileTime")
    assert compilations is None or compilations[0] <= 2


def test_on_xla_a_wrong_number_of_rows_does_not_pass_unseen(name: str) -> None:
    target = torch.zeros(4, 3, device=shim.device())
    if name != "xla":
        with pytest.raises(RuntimeError):
            shim.masked_assign(target, on_device(ROWS), on_device(torch.ones(3, 3)))
        return
    shim.masked_assign(target, on_device(ROWS), on_device(torch.ones(3, 3)))
    assert target.isnan().any(1).tolist() == ROWS.tolist()
