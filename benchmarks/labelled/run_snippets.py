"""Run the snippets on PyTorch/XLA and read its counters: ``python benchmarks/labelled/measure.py [NAME...]``.

Without names all are run and ``labels.tsv`` is written; with names their lines are printed. Every snippet has
batches of a size of its own, so that no program is found compiled by another.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from snippets import Label, Snippet, load_snippets, save_labels

FIRST, SECOND = 5, 8
"""Steps of the pass that warms up, and of the one that is measured."""
SMALLEST = 6
LIMIT = 300
"""Seconds for one snippet."""
DRAWS = ("rand", "ropout", "multinomial", "poisson")
"""Snippets that draw numbers, which are others on each device, are not compared with the CPU."""


def main(names: list[str]) -> int:
    """Exit status: 0 measured, 2 an unknown name."""
    snippets = load_snippets()
    if names[:1] == ["--worker"]:
        by_name = {snippet.name: snippet for snippet in snippets}
        work([by_name[name] for name in names[1:]], [snippet.name for snippet in snippets])
        return 0
    if unknown := set(names) - {snippet.name for snippet in snippets}:
        print(f"no snippet is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    labels = []
    for label in measured([s for s in snippets if not names or s.name in names]):
        print("\t".join(label.row()), flush=True)
        labels.append(label)
    if not names:
        save_labels(labels)
    return 0


def measured(snippets: list[Snippet]) -> Iterator[Label]:
    """Measure in one process after the other: a snippet that ends its process costs no other one its label."""
    waiting = [snippet.name for snippet in snippets]
    while waiting:
        command = [sys.executable, __file__, "--worker", *waiting]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                label = Label(**json.loads(line))
                assert label.name == waiting.pop(0)
                yield label
        if waiting:
            yield Label(waiting.pop(0), 0, 0, 0, 0, 0, fault=f"the process ended with {worker.returncode}")


def work(snippets: list[Snippet], order: list[str]) -> None:
    """Measure in this process, one line of JSON each. Every snippet has a batch size of its own."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import torch
    import torch_xla

    torch_xla.device()
    torch.set_num_threads(1)
    for snippet in snippets:
        signal.alarm(LIMIT)
        label = measure(snippet, SMALLEST + order.index(snippet.name))
        print(json.dumps(asdict(label)), file=output, flush=True)
        signal.alarm(0)
        gc.collect()


def measure(snippet: Snippet, batch: int) -> Label:
    """Run both passes and read the counters of the second."""
    import torch

    warnings.simplefilter("ignore")
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        try:
            run = Run("xla", batch)
            entry = run.entry(snippet.source)
            torch.manual_seed(0)
            entry(FIRST)
            late = run.last_step
            run.start()
            entry(SECOND)
            found = run.counters()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}".split("\n")[0][:90].replace("\t", " ")
            return Label(snippet.name, 0, 0, 0, 0, 0, fault=fault)
        fault = "" if any(word in snippet.source for word in DRAWS) else difference(snippet, run)
    operators = sorted(found.operators)
    return Label(
        snippet.name,
        SECOND,
        found.compiles,
        late,
        round(found.reads / SECOND, 2),
        round(sum(found.operators.values()) / SECOND, 2),
        " ".join(operators),
        fault,
    )


def difference(snippet: Snippet, run: Run) -> str:
    """How the results of the steps differ from those on the CPU."""
    import torch

    plain = Run("cpu", run.batch)
    torch.manual_seed(0)
    entry = plain.entry(snippet.source)
    entry(FIRST)
    plain.results.clear()
    entry(SECOND)
    for ours, theirs in zip([result.cpu() for result in run.results], plain.results, strict=True):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"differs: {ours.dtype} {tuple(ours.shape)} for {theirs.dtype} {tuple(theirs.shape)}"
        if not torch.allclose(ours.double(), theirs.double(), atol=1e-3, rtol=1e-3, equal_nan=True):
            return "differs: other values"
    return ""


class Counters:
    """What PyTorch/XLA has counted since the last reset."""

    def __init__(self) -> None:
        import torch_xla.debug.metrics as met

        data = {name: met.metric_data(name) for name in ("CompileTime", "TransferFromDeviceTime")}
        self.compiles, self.reads = (item[0] if item else 0 for item in data.values())
        self.operators = {
            name.removeprefix("aten::"): met.counter_value(name)
            for name in met.counter_names()
            if name.startswith("aten::") and name != "aten::_local_scalar_dense"
        }


class Run:
    """The inputs and the step boundaries of one snippet on one device."""

    def __init__(self, device: str, batch: int) -> None:
        import torch

        self.batch = batch
        self.lazy = device == "xla"
        self.device = torch.device(device)
        self.count = 0
        self.last_step = 0
        self.results: list[Any] = []

    def start(self) -> None:
        """Count from here."""
        import torch_xla.debug.metrics as met

        self.results.clear()
        met.clear_all()

    def counters(self) -> Counters:
        """What was counted."""
        import torch_xla.core.xla_model as xm

        xm.wait_device_ops()
        return Counters()

    def boundary(self) -> None:
        """The end of a step."""
        if self.lazy:
            import torch_xla

            torch_xla.sync(wait=True)

    def entry(self, source: str) -> Callable[[int], None]:
        """What runs so many steps of the program: its ``train``, its ``step`` or its ``Net``."""
        import torch

        space: dict[str, Any] = {"__name__": "snippet"}
        exec(compile(source, "snippet", "exec"), space)
        torch.utils.data.DataLoader.__iter__ = _marked(self, torch.utils.data.DataLoader.__iter__)
        if "train" in space:
            given = self.made(space["train"])
            return lambda steps: self.call(space["train"], given, steps)
        torch.manual_seed(0)
        function = space["Net"]().to(self.device) if "Net" in space else space["step"]
        hot = function.forward if "Net" in space else function
        return lambda steps: self.repeat(function, hot, steps)

    def made(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What is made once: a model, its optimizer, a data set."""
        import torch

        torch.manual_seed(0)
        names = inspect.signature(function).parameters
        n = self.batch
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(self.device)
        every: dict[str, Any] = {
            "model": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.01),
            "criterion": torch.nn.CrossEntropyLoss(),
            "device": self.device,
            "dataset": torch.utils.data.TensorDataset(torch.randn(3 * n + 2, 4), torch.randint(0, 3, (3 * n + 2,))),
            "n": n,
            "rank": 0,
        }
        return {name: value for name, value in every.items() if name in names}

    def call(self, function: Callable[..., Any], given: dict[str, Any], steps: int) -> None:
        """One pass of a loop that the program writes itself."""
        names = inspect.signature(function).parameters
        late = {"loader": Loader(self, steps), "steps": steps, "mark": self.boundary}
        function(**given, **{name: value for name, value in late.items() if name in names})
        self.boundary()

    def repeat(self, function: Callable[..., Any], hot: Callable[..., Any], steps: int) -> None:
        """One step after the other of a function that is a step, or of a module."""
        import torch

        names = inspect.signature(hot).parameters
        for _ in range(steps):
            inputs = self.inputs()
            result = function(**{name: inputs[name] for name in names if name in inputs})
            before = Counters().compiles if self.lazy else 0
            self.boundary()
            self.last_step = Counters().compiles - before if self.lazy and "late" in names else 0
            results = result if isinstance(result, tuple | list) else [result]
            self.results += [r.detach().cpu() for r in results if isinstance(r, torch.Tensor) and not self.lazy]
            if self.lazy:
                kept = [r.detach() for r in results if isinstance(r, torch.Tensor)]
                self.results += kept

    def inputs(self) -> dict[str, Any]:
        """The values of one step, other ones in each; all of one shape but those that are lists."""
        import torch

        self.count += 1
        generator = torch.Generator().manual_seed(self.count)

        def random(*size: int) -> Any:
            return torch.randn(*size, generator=generator)

        def integers(low: int, high: int, *size: int) -> Any:
            return torch.randint(low, high, size, generator=generator)

        device = self.device
        n = self.batch
        lengths, sizes = integers(1, 7, n), integers(1, 40, 3)
        made = {
            "x": random(n, 4),
            "y": integers(0, 3, n),
            "w": random(n, 4),
            "mask": random(n) > 0,
            "ids": integers(0, 10, n),
            "counts": integers(0, 4, n),
            "image": random(n, 3, 8, 8),
            "grid": random(n, 8, 8, 2).clamp(-1, 1),
            "seq": random(n, 6, 4),
            "lengths": lengths,
            "square": random(n, n),
        }
        return {name: value.to(device) for name, value in made.items()} | {
            "i": self.count,
            "host": random(n, 4),
            "host_labels": integers(0, 3, n),
            "host_lengths": lengths,
            "array": random(n, 4).numpy(),
            "samples": [random(int(size), 4) for size in sizes],
            "targets": [{"boxes": random(int(size), 4).to(device)} for size in sizes],
            "device": device,
            "rate": 0.1 + 0.01 * self.count,
        }


class Loader:
    """Batches on the host, with the end of a step after each turn of the loop, as ``shim.steps`` has it."""

    def __init__(self, run: Run, steps: int) -> None:
        self.run, self.steps = run, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.steps):
            inputs = self.run.inputs()
            yield inputs["host"], inputs["host_labels"]
            self.run.boundary()


def _marked(run: Run, plain: Callable[..., Any]) -> Callable[..., Any]:
    def batches(loader: Any) -> Iterator[Any]:
        for batch in plain(loader):
            yield batch
            before = Counters().compiles if run.lazy else 0
            run.boundary()
            run.last_step = Counters().compiles - before if run.lazy else 0

    return batches


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
