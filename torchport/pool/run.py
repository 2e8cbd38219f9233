"""Hand tasks to workers, one at a time each, so that it is always known which task a worker died of."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from torchport.pool.start import Process, StartMethod, start, start_method
from torchport.pool.work import Channel, Failure

Task = TypeVar("Task")
Result = TypeVar("Result")

_GRACE = 2.0
"""Seconds that a worker gets to end by itself."""


class PoolError(Exception):
    """No worker could be started at all."""


def run_tasks(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    jobs: int,
    limit: float,
    done: Callable[[], None] = lambda: None,
    method: StartMethod | None = None,
) -> list[Result | Failure]:
    """``[work(task) for task in tasks]`` in at most ``jobs`` processes, each task within ``limit`` seconds.

    The results stand in the order of the tasks. ``done`` is called after each one, here. Raises PoolError where no
    worker comes up. The tasks and the results must be picklable, and ``work`` where the workers are spawned.
    """
    if not tasks:
        return []
    pool = _Pool(work, tasks, limit, done, method or start_method())
    try:
        return pool.run(min(jobs, len(tasks)))
    finally:
        pool.stop()


class _Worker:
    def __init__(self, process: Process, channel: Channel, deadline: float) -> None:
        self.process = process
        self.channel = channel
        self.deadline = deadline
        self.ready = False
        self.task: int | None = None


class _Pool(Generic[Task, Result]):
    def __init__(
        self,
        work: Callable[[Task], Result],
        tasks: Sequence[Task],
        limit: float,
        done: Callable[[], None],
        method: StartMethod,
    ) -> None:
        self.work: Callable[[Any], Result] = work
        self.tasks: Sequence[Any] = tasks
        if method == "fork":  # a forked worker has the tasks already: it is told their numbers
            self.work, self.tasks = (lambda number: work(tasks[number])), range(len(tasks))
        self.limit, self.done, self.method = limit, done, method
        self.workers: list[_Worker] = []
        self.results: dict[int, Result | Failure] = {}
        self.next_task = 0

    def run(self, jobs: int) -> list[Result | Failure]:
        for _ in range(jobs):
            self.start()
        while len(self.results) < len(self.tasks):
            left = min(worker.deadline for worker in self.workers) - time.monotonic()
            ready = _wait([worker.channel for worker in self.workers], max(left, 0.0), self.method)
            for worker in list(self.workers):
                if worker.channel in ready:
                    self.receive(worker)
                elif time.monotonic() >= worker.deadline:
                    self.give_up(worker, Failure("timeout", f"no result after {self.limit:g} seconds"))
        return [self.results[index] for index in range(len(self.tasks))]

    def start(self) -> None:
        """Bring one worker up; it says when it is ready for its first task."""
        process, channel = start(self.method, self.work, [worker.channel for worker in self.workers])
        self.workers.append(_Worker(process, channel, time.monotonic() + self.limit))

    def assign(self, worker: _Worker) -> None:
        """Hand the next task to a worker that is free, or let it go where there is none."""
        if self.next_task == len(self.tasks):
            self.dismiss(worker)
            return
        worker.task = self.next_task
        worker.deadline = time.monotonic() + self.limit
        self.next_task += 1
        with suppress(ConnectionError):
            worker.channel.send(self.tasks[worker.task])

    def receive(self, worker: _Worker) -> None:
        try:
            result = worker.channel.recv()
        except (EOFError, OSError):
            self.give_up(worker, Failure("died", _how_it_ended(worker.process)))
            return
        if worker.ready:
            self.finish(worker, result)
        worker.ready = True
        self.assign(worker)

    def give_up(self, worker: _Worker, failure: Failure) -> None:
        """The task of this worker has no result; a new worker takes its place where tasks are left."""
        if not worker.ready:
            raise PoolError(f"a worker process did not start: {failure.detail}")
        worker.process.kill()
        self.dismiss(worker)
        self.finish(worker, failure)
        if self.next_task < len(self.tasks):
            self.start()

    def finish(self, worker: _Worker, result: Result | Failure) -> None:
        assert worker.task is not None
        self.results[worker.task] = result
        worker.task = None
        self.done()

    def dismiss(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.channel.close()
        worker.process.join(_GRACE)
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join()

    def stop(self) -> None:
        """Leave no process behind, however the run ends."""
        for worker in self.workers:
            worker.process.kill()
        for worker in list(self.workers):
            self.dismiss(worker)


def _wait(channels: Sequence[Any], timeout: float, method: StartMethod) -> list[Any]:
    """The channels that have an object, or whose other end is closed."""
    if method == "spawn":
        from multiprocessing.connection import wait

        return list(wait(channels, timeout))
    import select

    poll = select.poll()
    by_number = {channel.fileno(): channel for channel in channels}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(timeout * 1000)]


def _how_it_ended(process: Process) -> str:
    process.join(_GRACE)
    code = process.exitcode
    if code is None:
        return "it closed its connection"
    if code >= 0:
        return f"it ended with status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
