"""Exactly one step boundary after each turn, whatever the body does, and the loader's own behaviour untouched."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from torchport import shim
from torchport.shim.boundaries import mark_steps


class Counter:
    """Wraps iterables as a lazy back end does, and counts boundaries; with ``order`` it also notes when they come."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def steps(self, iterable: Any) -> Any:
        return mark_steps(iterable, lambda: self.events.append("|"))

    @property
    def count(self) -> int:
        return self.events.count("|")


@pytest.fixture
def counter() -> Counter:
    return Counter()


def generate(n: int) -> Iterator[int]:
    yield from range(n)


def test_one_boundary_after_each_turn(counter: Counter) -> None:
    for i in counter.steps(range(3)):
        counter.events.append(i)
    assert counter.events == [0, "|", 1, "|", 2, "|"]


def test_continue_and_break(counter: Counter) -> None:
    for i in counter.steps(range(9)):
        counter.events.append(i)
        if i == 1:
            continue
        if i == 2:
            break
    counter.events.append("after")
    assert counter.events == [0, "|", 1, "|", 2, "|", "after"]


def test_an_exception_in_the_body_passes(counter: Counter) -> None:
    def loop() -> None:
        for _ in counter.steps(range(3)):
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        loop()
    gc.collect()
    assert counter.count == 1


@pytest.mark.parametrize("error", [ValueError("loader"), KeyboardInterrupt(), RuntimeError("generator raised")])
def test_an_exception_of_the_loader_passes(counter: Counter, error: BaseException) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(type(error)) as caught:
        list(counter.steps(broken()))
    assert caught.value is error
    assert counter.count == 1


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: s(generate(3)),
        lambda s: enumerate(s(range(3))),
        lambda s: s(enumerate(range(3))),
        lambda s: s(zip(range(3), "abc", strict=True)),
        lambda s: zip(s(range(3)), "abc", strict=True),
        lambda s: s(s(range(3))),
        lambda s: s([1, 2, 3]),
        lambda s: s({1: 2, 3: 4, 5: 6}),
        lambda s: s(reversed(range(3))),
        lambda s: reversed(s(range(3))),
    ],
)
def test_anything_that_can_be_looped_over(counter: Counter, wrap: Any) -> None:
    turns = [item for item in wrap(counter.steps)]  # noqa: C416  a loop is what is tested
    assert len(turns) == 3
    assert counter.count == 3


def test_an_empty_loop_has_no_boundary(counter: Counter) -> None:
    assert list(counter.steps([])) == []
    assert counter.count == 0


def test_a_pass_can_be_repeated(counter: Counter) -> None:
    loader = counter.steps([1, 2])
    assert [list(loader), list(loader)] == [[1, 2], [1, 2]]
    assert counter.count == 4


def test_an_iterator_stays_one(counter: Counter) -> None:
    iterator = counter.steps(generate(4))
    assert next(iterator) == 0
    for i in iterator:
        if i == 1:
            break
    assert list(iterator) == [2, 3]
    assert counter.count == 4


def test_nested_loops(counter: Counter) -> None:
    for _ in counter.steps(range(2)):
        for _ in counter.steps(range(3)):
            pass
    assert counter.count == 8


def test_the_loaders_attributes(counter: Counter) -> None:
    data = TensorDataset(torch.arange(10.0))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    wrapped = counter.steps(loader)
    assert (len(wrapped), wrapped.batch_size, wrapped.dataset, wrapped.sampler) == (3, 4, data, loader.sampler)
    assert wrapped
    assert counter.steps([5, 6])[1] == 6
    assert 6 in counter.steps([5, 6])
    assert not counter.steps([])
    wrapped.note = "set"
    assert loader.note == "set"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no_such"):
        _ = wrapped.no_such
    with pytest.raises(TypeError):
        len(counter.steps(generate(2)))
    with pytest.raises(TypeError, match="not iterable"):
        iter(counter.steps(3))
    assert list(copy.copy(counter.steps([1]))) == [1]


def test_on_this_back_end(name: str) -> None:
    loader = [torch.ones(2)]
    assert (shim.steps(loader) is loader) is (name != "xla")
    shim.sync()


def test_boundaries_reach_the_xla_runtime(name: str) -> None:
    if name != "xla":
        pytest.skip("eager: there are no boundaries")
    import torch_xla.debug.metrics as metrics

    total = torch.zeros(2, device=shim.device())
    shim.sync()
    before = metrics.counter_value("MarkStep") or 0
    for i in shim.steps(range(5)):
        total += 1
        if i == 3:
            break
    assert metrics.counter_value("MarkStep") - before == 4
    assert total.tolist() == [4, 4]
