"""A task that kills its process, hangs or raises costs its own result only. The tasks here are expressions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from torchport.pool import Failure, PoolError, StartMethod, run_tasks

DIES = "__import__('os')._exit(7)"
SEGFAULT = "__import__('os').kill(__import__('os').getpid(), 11)"
HANGS = "__import__('time').sleep(60)"


def run(tasks: list[str], *, jobs: int = 2, limit: float = 30.0, method: StartMethod = "fork") -> list[Any]:
    return run_tasks(eval, tasks, jobs=jobs, limit=limit, method=method)


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_stand_in_the_order_of_the_tasks(jobs: int) -> None:
    tasks = [f"(__import__('time').sleep({(7 - n) % 3} / 100), {n})[1]" for n in range(20)]
    assert run(tasks, jobs=jobs) == list(range(20))


def test_no_task_needs_no_process() -> None:
    assert run([]) == []


def test_the_tasks_run_in_processes_of_their_own() -> None:
    assert os.getpid() not in run(["__import__('os').getpid()"] * 4)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_process_that_dies_costs_one_result(jobs: int) -> None:
    results = run(["1", DIES, "2", SEGFAULT, "3", SEGFAULT, "4"], jobs=jobs)
    segfault = Failure("died", "killed by SIGSEGV")
    assert results == [1, Failure("died", "it ended with status 7"), 2, segfault, 3, segfault, 4]


def test_every_task_dies() -> None:
    assert run([SEGFAULT] * 5) == [Failure("died", "killed by SIGSEGV")] * 5


def test_a_task_that_hangs_costs_one_result() -> None:
    start = time.monotonic()
    assert run(["1", HANGS, "2"], limit=0.5) == [1, Failure("timeout", "no result after 0.5 seconds"), 2]
    assert time.monotonic() - start < 10


def test_exceptions_become_failures() -> None:
    results = run(["1 / 0", "(_ for _ in ()).throw(MemoryError)", "(f := lambda: f())()", "__import__('sys').exit(3)"])
    assert [result.kind for result in results] == ["error", "memory", "error", "error"]
    assert results[0].detail == "ZeroDivisionError: division by zero (<string>:1)"


def test_too_deep_recursion() -> None:
    (result,) = run(["(lambda again: again(again))(lambda again: again(again))"])
    assert result == Failure("recursion", "nested too deeply")


def test_a_panic_of_a_native_parser_is_caught() -> None:
    (result, after) = run(["exec('class P(BaseException): pass\\nraise P(\"two\\\\nlines\")')", "1"], jobs=1)
    assert result.kind == "error"
    assert "P: two lines" in result.detail
    assert after == 1


def test_a_result_that_cannot_be_sent() -> None:
    (result, after) = run(["lambda: 1", "2"], jobs=1)
    assert result.kind == "error"
    assert "pickle" in result.detail.lower()
    assert after == 2


def test_large_tasks_and_results() -> None:
    task = "'" + "x" * 3_000_000 + "'"
    assert run([task, task]) == ["x" * 3_000_000] * 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_any_result_arrives_as_it_was(method: StartMethod) -> None:
    named = "__import__('torchport.pool', fromlist=['Failure']).Failure('died', 'x')"
    values = ["(1, [None, True, 'é\\ud800', b'x'], {'a': 2.5})", "{1, 2}", "__import__('pathlib').Path('a')", named]
    results = run(values, method=method)
    assert results == [eval(value) for value in values]
    assert [type(result) for result in results[:3]] == [tuple, set, type(Path("a"))]


def test_spawned_processes_do_the_same() -> None:
    results = run(["1", DIES, "1 / 0", "2"], method="spawn")
    assert [results[0], results[3]] == [1, 2]
    assert [results[1].kind, results[2].kind] == ["died", "error"]


def test_done_is_called_for_each_task() -> None:
    calls: list[int] = []
    run_tasks(eval, ["1", DIES, "1 / 0"], jobs=2, limit=30.0, method="fork", done=lambda: calls.append(1))
    assert len(calls) == 3


def test_workers_that_cannot_start_are_an_error() -> None:
    class Unloadable:
        def __reduce__(self) -> tuple[Any, ...]:
            return os._exit, (9,)

        def __call__(self, task: str) -> str:
            return task

    with pytest.raises(PoolError, match="did not start: it ended with status 9"):
        run_tasks(Unloadable(), ["1"], jobs=1, limit=30.0, method="spawn")


def test_no_process_is_left_behind() -> None:
    before = children()
    run(["1", DIES, "2"])
    with pytest.raises(KeyboardInterrupt):
        run_tasks(eval, ["1", "2", HANGS], jobs=2, limit=30.0, method="fork", done=_interrupt)
    assert children() == before


def children() -> set[str]:
    """Processes of this one, dead and unburied ones included."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_workers_end_when_the_parent_is_killed() -> None:
    program = (
        "from torchport.pool import run_tasks\n"
        "import os\n"
        "say = \"os.write(1, b'%d\\\\n' % os.getpid()) and __import__('time').sleep(3)\"\n"
        "run_tasks(lambda task: eval(task), [say] * 3, jobs=3, limit=60.0)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(3)]
        parent.kill()
    deadline = time.monotonic() + 15
    while any(_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.1)


def _alive(process: int) -> bool:
    try:
        os.kill(process, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True
