"""What a file tells of its project comes back from the cache as it was, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchport.lint.told import told_by, told_of

SOURCE = b"""
import torch
import triton
from layers import block

@triton.jit
def kernel(x): ...

def launch(x):
    kernel[(1,)](x)

scripted = torch.jit.script(block)

class Mine(Dataset):
    def __getitem__(self, i):
        return cut_out(i)

def take_a_step(loss, optimizer):
    loss.backward()
    optimizer.step()

if device == "cuda:0": ...
"""


def test_it_comes_back_as_it_was() -> None:
    told = told_by("pkg/ops.py", SOURCE)
    assert told.kernels
    assert told.scripted == [["block", "layers"]]
    assert told.stepping == ["take_a_step"]
    assert "cut_out" in told.loaded
    assert told_of(json.loads(json.dumps(list(told)))) == told


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        [],
        [[]] * 5,
        [[]] * 7,
        [[], [], [], [], [], 1],
        [[["a"]], [], [], [], [], []],
        [[], [], [1], [], [], []],
    ],
)
def test_what_is_damaged_is_found_out_anew(entry: Any) -> None:
    assert told_of(entry) is None
