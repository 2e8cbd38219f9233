"""What the shim costs: a migrated training step against one written by hand for the same back end.

    PJRT_DEVICE=CPU python benchmarks/shim_cost.py            # cpu, and xla where torch_xla is installed
    python benchmarks/shim_cost.py --backends cuda

Needs torch. Exits with 1 where a bar fails. The two kinds of step run in turn, block by block, and the fastest block of
each counts, so that the other work of a busy machine falls out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SPEED = 0.98
CALL = 1e-6
IMPORT = 0.020
BLOCKS, STEPS = 12, 25
FORBIDDEN = ("libcst", "click", "torch_xla", "torch_tpu.runtime")


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="+", default=["cpu", *(["xla"] if has("torch_xla") else [])])
    parser.add_argument("--worker", metavar="BACKEND", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(WORKERS[options.worker.partition(":")[0]](options.worker.partition(":")[2])))
        return 0
    rows = [import_cost(), *(row for name in options.backends for row in backend_rows(name))]
    width = max(len(what) for what, _, _, _ in rows)
    for what, value, bar, holds in rows:
        print(f"{what:<{width}}  {value:>12}  {bar:>12}  {'ok' if holds else 'FAILS'}")
    return 0 if all(holds for _, _, _, holds in rows) else 1


Row = tuple[str, str, str, bool]


def has(module: str) -> bool:
    """Whether it can be imported."""
    return importlib.util.find_spec(module) is not None


def work(worker: str, backend: str) -> Any:
    """The result of one worker, in a process of its own."""
    environment = {**os.environ, "TORCHPORT_BACKEND": backend, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--worker", worker]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def import_cost() -> Row:
    """``import torchport.shim`` after torch: seconds, and nothing heavy comes with it."""
    results = [work("import:", "cpu") for _ in range(3)]
    seconds = min(result["seconds"] for result in results)
    heavy = results[0]["heavy"]
    what = "import torchport.shim" + (f" (brings {', '.join(heavy)})" if heavy else "")
    return (what, f"{seconds * 1e3:.1f} ms", f"< {IMPORT * 1e3:.0f} ms", seconds < IMPORT and not heavy)


def backend_rows(name: str) -> list[Row]:
    """The step, its compiles and the idle calls on one back end."""
    step = work("step:", name)
    speed = step["hand"] / step["migrated"]
    rows = [(f"{name}: speed of a migrated step", f"{speed:.3f}", f">= {SPEED}", speed >= SPEED)]
    if name == "xla":
        ours, theirs = work("compiles:migrated", name), work("compiles:hand", name)
        rows.append((f"{name}: compiles in {STEPS} steps", f"{ours} ({theirs})", "the same", ours == theirs))
    for call, seconds in work("calls:", name).items():
        rows.append((f"{name}: {call}", f"{seconds * 1e9:.0f} ns", f"< {CALL * 1e9:.0f} ns", seconds < CALL))
    return rows


# What the workers do, each in a process of its own


def measure_import(_: str) -> dict[str, Any]:
    """Seconds for the import alone, and which modules that must stay out it brought."""
    import torch  # noqa: F401

    before = set(sys.modules)
    start = time.perf_counter()
    import torchport.shim  # noqa: F401

    seconds = time.perf_counter() - start
    return {"seconds": seconds, "heavy": [name for name in FORBIDDEN if name in set(sys.modules) - before]}


def network() -> Any:
    """A small perceptron: the smaller the step, the more the shim shows."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))


def data() -> list[Any]:
    """One block of batches."""
    import torch

    return [(torch.randn(64, 64), torch.randint(0, 10, (64,))) for _ in range(STEPS)]


def migrated() -> Callable[[list[Any]], None]:
    """The canonical loop as torchport writes it."""
    import torch
    from torch import nn

    from torchport import shim

    device = shim.device()
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = shim.GradScaler()

    def block(batches: list[Any]) -> None:
        for x, y in shim.steps(batches):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad()
            with shim.autocast():
                loss = nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return block


def by_hand() -> Callable[[list[Any]], None]:
    """The same loop as one writes it for this back end alone."""
    import contextlib

    import torch
    from torch import nn

    name = os.environ["TORCHPORT_BACKEND"]
    boundary: Callable[[], None] | None = None
    if name == "xla":
        import torch_xla

        boundary = torch_xla.sync
    device = torch.device(name)
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda") if name == "cuda" else None
    precision = {"cuda": torch.float16}.get(name, torch.bfloat16)

    def context() -> Any:
        return contextlib.nullcontext() if name == "cpu" else torch.autocast(name, precision)

    def block(batches: list[Any]) -> None:
        for x, y in batches:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad()
            with context():
                loss = nn.functional.cross_entropy(model(x), y)
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            if boundary is not None:
                boundary()

    return block


def measure_step(_: str) -> dict[str, float]:
    """Seconds of the fastest block of each kind; the order changes each time."""
    import torch

    from torchport import shim

    torch.set_num_threads(1)
    shim.backend()
    blocks = {"hand": by_hand(), "migrated": migrated()}
    batches = data()
    best = dict.fromkeys(blocks, float("inf"))
    for turn in range(BLOCKS + 1):
        for name in sorted(blocks, reverse=bool(turn % 2)):
            shim.synchronize()
            start = time.perf_counter()
            blocks[name](batches)
            shim.synchronize()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def count_compiles(kind: str) -> int:
    """Compiles of PyTorch/XLA in one block."""
    import torch_xla.debug.metrics as metrics

    from torchport import shim

    shim.backend()
    (migrated if kind == "migrated" else by_hand)()(data())
    shim.synchronize()
    found = metrics.metric_data("CompileTime")
    return int(found[0]) if found else 0


def measure_calls(_: str) -> dict[str, float]:
    """Seconds of calls that have nothing to do on this back end."""
    from torchport import shim

    calls: dict[str, Callable[[], Any]] = {"shim.set_device(0)": lambda: shim.set_device(0)}
    if not shim.backend().lazy:
        items = [1]
        calls |= {"shim.sync()": lambda: shim.sync(), "shim.steps(items)": lambda: shim.steps(items)}
    if os.environ["TORCHPORT_BACKEND"] == "cuda":
        del calls["shim.set_device(0)"]
    return {name: min(timeit.repeat(call, number=100_000, repeat=5)) / 100_000 for name, call in calls.items()}


WORKERS: dict[str, Callable[[str], Any]] = {
    "import": measure_import,
    "step": measure_step,
    "compiles": count_compiles,
    "calls": measure_calls,
}

if __name__ == "__main__":
    sys.exit(main())
