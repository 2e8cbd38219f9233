"""Each program in fixtures/programs is migrated by the real command and trains on a real back end as it did before.

``TORCHPORT_TEST_BACKEND`` (cpu, xla or tpu; cpu where unset) names the back end. The original runs on the CPU with the
same torch. The migrated program must print the same numbers: the very same text on the CPU, within ``FP32`` elsewhere.
Under bfloat16 each product is rounded to 8 significant bits, 0.4 per cent, and the reference is fp32, so the bound of
those cases is ``BF16``.

On xla and tpu the programs are also migrated for that target alone, with nothing of torchport in them. What the shim
mends there is then only reported: numbers that rest on it are left out, and the report has to be there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = ROOT / "fixtures" / "programs"
BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")

ALONE = BACKEND if BACKEND in ("xla", "tpu") else "portable"
"""The target of this back end alone."""

STATISTICS = "TP117"
"""The rule that reports what the shim would mend: the running statistics of batch_norm, and so an evaluation."""

FP32 = 1e-3
BF16 = 1e-2


@dataclass(frozen=True, slots=True)
class Case:
    """One way to run a program. ``runs`` holds the arguments of each call, made in one folder."""

    program: str
    turns: int
    """Turns of all loops over batches in the last run: the step boundaries that a lazy back end has to see."""
    runs: tuple[tuple[str, ...], ...] = ((),)
    bound: float = FP32
    name: str = ""
    saves: int = 0
    """Checkpoints of the last run; before each, what is pending is run once."""

    def __str__(self) -> str:
        return self.name or self.program


CASES = (
    Case("amp_loop", turns=12, bound=BF16),
    Case("gpt_accumulation", turns=5),
    Case("gpt_accumulation", turns=5, runs=(("--dtype", "bfloat16"),), bound=BF16, name="gpt_accumulation_bf16"),
    Case("gan", turns=10),
    Case("rnn_lm", turns=8),
    Case("train_eval_resume", turns=14, saves=2),
    Case(
        "train_eval_resume",
        turns=7,
        runs=(("--epochs", "1"), ("--resume",)),
        name="train_eval_resume_in_two_runs",
        saves=1,
    ),
    Case("tied_weights", turns=10),
    Case("ema", turns=10),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runs of one case printed, and the notes of ``watch.py`` on the last of them."""

    lines: list[str]
    notes: dict[str, object] = field(default_factory=dict)

    def numbers(self) -> list[tuple[str, float]]:
        """Every number of every line, each under the words and the step that stand before it."""
        return [
            (f"{line.split(' loss ')[0]} {word}", float(value))
            for line in self.lines
            for word, value in re.findall(r"(\w+) (\d+\.\d+|nan|inf)", line)
        ]


class Programs:
    """The programs before and after, and the outcome of each run, which happens once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = {target: self._migrate(target) for target in dict.fromkeys(("portable", ALONE))}
        self._outcomes: dict[tuple[str, ...], Outcome] = {}

    def _migrate(self, target: str) -> subprocess.CompletedProcess[str]:
        migrated = self.folder / target
        migrated.mkdir()
        for program in PROGRAMS.glob("*.py"):
            (migrated / program.name).write_bytes(program.read_bytes())
        options = ["--target", target, "--output-format", "json", str(migrated)]
        argv = [sys.executable, "-m", "torchport", "migrate", *options]
        return subprocess.run(argv, env=environment("cpu"), capture_output=True, text=True, check=False)

    def reported(self, program: str, target: str) -> set[str]:
        """The codes of what is left for a person in a program."""
        files = json.loads(self.commands[target].stdout)["files"]
        return {left["code"] for file in files if Path(file["path"]).stem == program for left in file["left"]}

    def original(self, program: str, *arguments: str, folder: Path | None = None) -> Outcome:
        """The program as it was, on the CPU."""
        return self._outcome(["cpu", str(PROGRAMS / f"{program}.py"), *arguments], folder)

    def after(self, program: str, *arguments: str, folder: Path | None = None, target: str = "portable") -> Outcome:
        """The migrated program, on the back end that is tested."""
        return self._outcome([BACKEND, str(self.folder / target / f"{program}.py"), *arguments], folder)

    def case(self, case: Case, target: str = "portable") -> Outcome:
        folder = self.folder / f"{case}-{target}"
        folder.mkdir(exist_ok=True)
        outcomes = [self.after(case.program, *arguments, folder=folder, target=target) for arguments in case.runs]
        return Outcome([line for outcome in outcomes for line in outcome.lines], outcomes[-1].notes)

    def _outcome(self, call: list[str], folder: Path | None) -> Outcome:
        key = (*call, str(folder))
        if key not in self._outcomes:
            self._outcomes[key] = run(call[0], call[1:], folder or self.folder)
        return self._outcomes[key]


def environment(backend: str) -> dict[str, str]:
    """No GPU, and PyTorch/XLA on the CPU. TorchTPU loads itself with torch unless it is told not to."""
    chosen = {"TORCHPORT_BACKEND": backend, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "PJRT_DEVICE": "CPU"}
    return {**os.environ, **chosen, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if backend == "tpu" else "0"}


def run(backend: str, call: list[str], folder: Path) -> Outcome:
    launcher = [str(ROOT / "tests" / "support" / "tpu_on_cpu.py")] if backend == "tpu" else []
    notes = folder / "notes.json"
    argv = [sys.executable, *launcher, str(HERE / "watch.py"), str(notes), *call]
    done = subprocess.run(
        argv, cwd=folder, env=environment(backend), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{' '.join(call)} on {backend}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    lines = [line for line in done.stdout.splitlines() if re.match(r"(step|test) \d+ loss ", line)]
    return Outcome(lines, json.loads(notes.read_text()))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


def test_migration_leaves_nothing_for_a_person(programs: Programs) -> None:
    report = json.loads(programs.commands["portable"].stdout)
    left = {file["path"]: file["left"] + file["problems"] for file in report["files"]}
    assert {path: found for path, found in left.items() if found} == {}
    assert programs.commands["portable"].returncode == 0
    assert {Path(file["path"]).stem for file in report["files"] if file["status"] == "rewritten"} == {
        case.program for case in CASES
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_migrated_program_prints_the_same_losses(programs: Programs, case: Case) -> None:
    before = programs.original(case.program)
    after = programs.case(case)
    assert len(before.lines) >= 8
    if BACKEND == "cpu":
        assert after.lines == before.lines
        return
    assert far(after.numbers(), before.numbers(), case.bound) == {}


def far(
    found: list[tuple[str, float]], expected: list[tuple[str, float]], bound: float
) -> dict[str, tuple[float, float]]:
    """The numbers that are not within ``bound`` of those expected."""
    assert [label for label, _ in found] == [label for label, _ in expected]
    return {
        label: (value, wanted)
        for (label, value), (_, wanted) in zip(found, expected, strict=True)
        if not abs(value - wanted) <= bound * abs(wanted)
    }


def alone(case: Case, programs: Programs) -> None:
    """One case with the program for this target alone: the same losses on its device, but for what is reported."""
    reported = programs.reported(case.program, ALONE)
    outcome = programs.case(case, ALONE)
    skip = ("test ",) if STATISTICS in reported else ()
    found, expected = (
        [(label, value) for label, value in outcome.numbers() if not label.startswith(skip)]
        for outcome in (outcome, programs.original(case.program))
    )
    assert len(found) >= 8
    assert far(found, expected, case.bound) == {}
    assert outcome.notes["devices"] == [BACKEND]
    if ALONE == "xla":
        assert outcome.notes["boundaries"] == case.turns


if ALONE != "portable":

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_program_for_this_target_alone_prints_the_same_losses(programs: Programs, case: Case) -> None:
        alone(case, programs)

    def test_program_for_this_target_alone_knows_nothing_of_torchport(programs: Programs) -> None:
        texts = [path.read_text() for path in (programs.folder / ALONE).glob("*.py")]
        assert len(texts) == len({case.program for case in CASES})
        assert not [text for text in texts if "torchport" in text or "shim" in text]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_migrated_program_trains_on_the_back_end(programs: Programs, case: Case) -> None:
    notes = programs.case(case).notes
    assert notes["devices"] == [BACKEND]
    if BACKEND == "xla":
        assert notes["boundaries"] == case.turns + case.saves
        assert isinstance(notes["executions"], int)
        assert notes["executions"] >= case.turns


def test_checkpoint_of_the_migrated_program_is_read_by_the_original(programs: Programs) -> None:
    folder = programs.folder / "checkpoint"
    folder.mkdir(exist_ok=True)
    programs.after("train_eval_resume", "--epochs", "2", folder=folder)
    went_on = programs.original("train_eval_resume", "--epochs", "3", "--resume", folder=folder)
    unbroken = programs.original("train_eval_resume", "--epochs", "3")
    last_epoch = unbroken.numbers()[-len(went_on.numbers()) :]
    assert [label for label, _ in went_on.numbers()] == [label for label, _ in last_epoch]
    assert [value for _, value in went_on.numbers()] == pytest.approx([value for _, value in last_epoch], rel=FP32)
