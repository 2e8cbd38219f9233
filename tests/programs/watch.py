"""Run a program as it is, and note on which devices its losses were and what PyTorch/XLA did meanwhile.

    python watch.py NOTES.json PROGRAM.py ARGUMENTS...

The notes: ``devices``, the types of the tensors on which ``backward`` was called; ``boundaries``, ``compilations`` and
``executions``, the counts of PyTorch/XLA where the program used it.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import torch

devices: set[str] = set()
run_backward = torch.Tensor.backward


def backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    devices.add(tensor.device.type)
    run_backward(tensor, *args, **kwargs)


def lazy_counts() -> dict[str, int]:
    if "torch_xla" not in sys.modules:
        return {}
    from torch_xla.debug import metrics

    def timed(name: str) -> int:
        return int((metrics.metric_data(name) or (0,))[0])

    return {
        "boundaries": int(metrics.counter_value("MarkStep") or 0),
        "compilations": timed("CompileTime"),
        "executions": timed("ExecuteTime"),
    }


if __name__ == "__main__":
    _, notes, program, *arguments = sys.argv
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).parent)
    torch.Tensor.backward = backward  # type: ignore[method-assign]
    runpy.run_path(program, run_name="__main__")
    Path(notes).write_text(json.dumps({"devices": sorted(devices), **lazy_counts()}))
