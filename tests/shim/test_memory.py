"""Memory figures: real ones, or zero with a notice."""

from __future__ import annotations

import logging

import pytest
import torch

from torchport import shim

FIGURES = [
    shim.memory_allocated,
    shim.max_memory_allocated,
    shim.memory_reserved,
    shim.max_memory_reserved,
    shim.memory_cached,
    shim.max_memory_cached,
]
HAS_FIGURES = ("cuda",)  # neither the CPU nor the CPU clients of XLA keep any


@pytest.mark.parametrize("figure", FIGURES)
def test_figures(figure: object, caplog: pytest.LogCaptureFixture, name: str) -> None:
    kept = torch.ones(1000).to(shim.device())
    shim.synchronize()
    with caplog.at_level(logging.WARNING, "torchport.shim"):
        values = [figure() for _ in range(2)]  # type: ignore[operator]
        assert figure(shim.device()) == values[0]  # type: ignore[operator]
    assert kept.sum().item() == 1000
    if name in HAS_FIGURES:
        assert values[0] >= 4000
    else:
        assert values == [0, 0]
        assert [r.getMessage() for r in caplog.records if "memory statistics" in r.getMessage()]
        assert len(caplog.records) == 2  # one for each of the two call sites


def test_summaries(name: str) -> None:
    free, total = shim.mem_get_info()
    if name in HAS_FIGURES:
        assert 0 < free <= total
        assert shim.memory_stats()
        assert shim.memory_summary()
    else:
        assert (free, total, shim.memory_stats(), shim.memory_summary()) == (0, 0, {}, "")


@pytest.mark.parametrize(
    "action",
    [
        shim.reset_peak_memory_stats,
        shim.reset_max_memory_allocated,
        shim.reset_max_memory_cached,
        shim.reset_accumulated_memory_stats,
        shim.empty_cache,
        shim.ipc_collect,
    ],
)
def test_actions_return(action: object) -> None:
    assert action() is None  # type: ignore[operator]
    assert torch.ones(2).to(shim.device()).sum().item() == 2
