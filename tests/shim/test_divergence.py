"""What the linter says of processes that part is so: one leaves by its own metric, and the other waits in vain."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from under_test import BACKEND

from torchport.catalog import load_rules
from torchport.lint.linter import Linter
from torchport.project.source import Source

PORTS = iter(range(29780, 29790))
ALONE = """
import datetime
import sys
import torch
import torch.distributed as dist

def fit(evaluate, patience=2):
    best, bad = 100.0, 0
    for epoch in range(9):
        val = evaluate(epoch)
        if val < best:
            best, bad = val, 0
        else:
            bad += 1
        if bad >= patience:
            break
        dist.barrier()
    return epoch

rank = int(sys.argv[1])
dist.init_process_group(
    "gloo", init_method="tcp://localhost:" + sys.argv[2], rank=rank, world_size=2, timeout=datetime.timedelta(seconds=4)
)
dist.barrier()
print("left after", fit(lambda epoch: float(epoch if rank == 0 else -epoch)))
"""
TOGETHER = ALONE.replace(
    "val = evaluate(epoch)", "t = torch.tensor(evaluate(epoch))\n        dist.all_reduce(t)\n        val = t.item()"
)


def found(program: str) -> list[str]:
    rules = tuple(rule for rule in load_rules() if rule.code == "TP321")
    return [finding.old for finding in Linter(rules, "portable").find(Source("fit.py", program, "utf-8", False)).left]


@pytest.mark.skipif(BACKEND != "cpu", reason="gloo joins processes on the CPU; of PyTorch/XLA it was measured by hand")
@pytest.mark.parametrize(("program", "waits"), [(ALONE, True), (TOGETHER, False)], ids=["alone", "together"])
def test_one_leaves_and_the_other_waits(program: str, waits: bool) -> None:
    port = str(next(PORTS))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank), port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
        )
        for rank in range(2)
    ]  # fmt: skip
    (first, _), (second, error) = (process.communicate(timeout=120) for process in started)
    assert bool(found(program)) == waits
    assert [line for line in first.splitlines() if "left" in line] == ["left after 2"]
    if waits:
        assert "left" not in second
        assert "RuntimeError" in error
        assert started[1].returncode == 1
    else:
        assert [line for line in second.splitlines() if "left" in line] == ["left after 2"], error
