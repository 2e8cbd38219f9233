"""Step boundaries that install() adds on a lazy back end: one a step, and the losses of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from torchport import shim
from torchport.shim import patching
from torchport.shim.selection import backend

DATA = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def boundaries(name: str) -> Iterator[Any]:
    if name == "cuda":
        pytest.skip("on CUDA nothing is replaced")
    shim.install()
    session = patching.installed()
    assert session is not None
    yield session.boundaries
    shim.uninstall()


def loader(**more: Any) -> Any:
    return torch.utils.data.DataLoader(DATA, batch_size=2, **more)


def train(device: str, batches: Any, *, every: int = 1) -> list[float]:
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for turn, x in enumerate(batches):
        loss = model(x.to(device)).square().mean()
        loss.backward()
        if (turn + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def evaluate(device: str, batches: Any) -> list[float]:
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to(device)
    with torch.no_grad():
        return [loss.item() for loss in [model(x.to(device)).sum() for x in batches]]


def adversaries(device: str, batches: Any, *, every: int = 1) -> list[float]:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 1).to(device), nn.Linear(4, 1).to(device)
    optimizers = [torch.optim.SGD(first.parameters(), lr=0.1), torch.optim.Adam(second.parameters(), lr=0.1)]
    losses = []
    for turn, x in enumerate(batches):
        for model, optimizer in zip((first, second), optimizers, strict=True):
            if model is second and turn % every:
                continue
            loss = (first(x.to(device)) - second(x.to(device))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return [loss.item() for loss in losses]


class Derived(torch.optim.SGD):
    """Its step calls that of its base class."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


def derived(device: str, batches: Any) -> list[float]:
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to(device)
    optimizer = Derived(model.parameters(), lr=0.1)
    losses = []
    for x in batches:
        loss = model(x.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


# Six batches: how many boundaries there have to be, and how many more while it is learnt which optimizer is the last
LOOPS = {
    "loader": (lambda device: train(device, loader()), 6, 0),
    "workers": (lambda device: train(device, loader(num_workers=1)), 6, 0),
    "no loader": (lambda device: train(device, DATA.split(2)), 6, 0),
    "accumulation": (lambda device: train(device, loader(), every=3), 6, 0),
    "evaluation": (lambda device: evaluate(device, loader()), 6, 0),
    "two optimizers": (lambda device: adversaries(device, loader()), 6, 1),
    "two optimizers, no loader": (lambda device: adversaries(device, DATA.split(2)), 6, 1),
    "one of them seldom": (lambda device: adversaries(device, loader(), every=3), 6, 3),
    "a derived optimizer": (lambda device: derived(device, loader()), 6, 0),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_one_boundary_a_step_and_the_losses_of_the_cpu(boundaries: Any, loop: str) -> None:
    run, least, learning = LOOPS[loop]
    expected = run("cpu")
    before = boundaries.count
    losses = run("cuda")
    counted = boundaries.count - before
    assert losses == pytest.approx(expected, abs=5e-3 if shim.device().type == "tpu" else 1e-5)
    if backend().lazy:
        assert least <= counted <= least + learning
    else:
        assert counted == 0


def test_a_program_that_marks_its_own_steps_is_not_marked_twice(boundaries: Any) -> None:
    """What is left for the second boundary is nothing, so nothing more runs."""
    if not backend().lazy:
        pytest.skip("only a lazy back end has step boundaries")
    import torch_xla.debug.metrics as metrics

    def executions(make: Callable[[], Any]) -> int:
        before = metrics.metric_data("ExecuteTime")[0]
        train("cuda", make())
        return int(metrics.metric_data("ExecuteTime")[0] - before)

    train("cuda", loader())
    assert executions(lambda: shim.steps(loader())) == executions(loader)


def test_after_uninstall_nothing_is_marked(boundaries: Any) -> None:
    shim.uninstall()
    train("cpu", loader())
    assert boundaries.count == 0
