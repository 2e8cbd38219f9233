"""Measure torchport against TorchFix, Fixit and ruff: ``python benchmarks/cpu_time.py FOLDER...``."""

from __future__ import annotations

import argparse
import ast
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from environments import python_of, script_of, version_of
from measure import MeasureError, Timing, measure_in_turn
from thousand_lines import thousand_lines

TIMES_TORCHFIX = 1 / 50
TIMES_RUFF = 4.0
VERSION_SECONDS = 0.06
THOUSAND_LINES_SECONDS = 0.15
FAST, SLOW = ("torchport", "ruff"), ("torchfix", "fixit")
PARSE_SPEED = 240_000
"""What ``ast.parse`` does with the two repositories on an idle core like that on which the bars in seconds were set."""
REFERENCE = "huggingface/pytorch-image-models and ultralytics/yolov5"


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit in CPU seconds. ``measured`` is None where the tool to compare with was left out."""

    what: str
    limit: float
    measured: float | None

    @property
    def verdict(self) -> str:
        """``pass``, ``FAIL`` or ``not measured``."""
        if self.measured is None:
            return "not measured"
        return "pass" if self.measured <= self.limit else "FAIL"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all measured bars hold, 1 one fails, 2 a tool did not run."""
    options = parse(arguments)
    folders = [str(Path(folder).resolve()) for folder in options.folders]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return report(options, folders, Path(scratch))
    except MeasureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"The bars are meant for {REFERENCE}.")
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="Python code to examine; nothing is written there")
    parser.add_argument("--torchport-python", default=sys.executable, metavar="PATH", help="a Python with torchport")
    parser.add_argument("--torchfix-python", metavar="PATH", help="a Python with torchfix; default: make one")
    parser.add_argument("--fixit-python", metavar="PATH", help="a Python with fixit; default: make one")
    parser.add_argument("--ruff-python", metavar="PATH", help="a Python with ruff; default: make one")
    parser.add_argument("--without", nargs="*", default=[], choices=[*FAST[1:], *SLOW], help="leave these out")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="runs of the fast tools (default: 7)")
    parser.add_argument("--slow-runs", type=int, default=1, metavar="N", help="runs of TorchFix and Fixit (default: 1)")
    return parser.parse_args(arguments)


def report(options: argparse.Namespace, folders: list[str], scratch: Path) -> int:
    """Measure and print both tables."""
    torchport = [options.torchport_python, "-m", "torchport"]
    timings = tools(options, torchport, folders)
    measure_in_turn([timings[name] for name in FAST if name in timings], scratch, options.runs)
    measure_in_turn([timings[name] for name in SLOW if name in timings], scratch, options.slow_runs)
    start = start_up(torchport, scratch)
    measure_in_turn(start, scratch, max(options.runs, 10))

    lines = sum(map(count_lines, folders))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{lines:,} lines in {', '.join(Path(folder).name for folder in folders)}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load}")
    speed = parse_speed(folders)
    print(f"ast.parse does {speed:,.0f} lines a CPU second here; the bars in seconds were set at {PARSE_SPEED:,}\n")
    print_table(timing_rows([*timings.values(), *start], lines))
    bars = list(all_bars(timings, start))
    print()
    print_table([("bar", "limit", "measured", ""), *map(bar_row, bars)])
    return 1 if any(bar.verdict == "FAIL" for bar in bars) else 0


def tools(options: argparse.Namespace, torchport: list[str], folders: list[str]) -> dict[str, Timing]:
    """The commands that examine the folders, each on one core where it has such an option."""
    command = [*torchport, "migrate", "--check", "-j1", *folders]
    timings = {"torchport": Timing("torchport migrate --check -j1", command, (0, 1))}
    if "ruff" not in options.without:
        python = python_of("ruff", options.ruff_python)
        name = f"ruff check {version_of(python, 'ruff')}, default rules"
        command = [script_of(python, "ruff"), "check", "--no-cache", "--isolated", "--exit-zero", "--quiet", *folders]
        timings["ruff"] = Timing(name, command)
    if "torchfix" not in options.without:
        python = python_of("torchfix", options.torchfix_python)
        name = f"torchfix {version_of(python, 'torchfix')} -j1"
        timings["torchfix"] = Timing(name, [script_of(python, "torchfix"), "-j", "1", *folders])
    if "fixit" not in options.without:
        python = python_of("fixit", options.fixit_python)
        name = f"fixit lint {version_of(python, 'fixit')}, default rules"
        timings["fixit"] = Timing(name, [script_of(python, "fixit"), "--quiet", "lint", *folders], (0, 1))
    return timings


def start_up(torchport: list[str], scratch: Path) -> list[Timing]:
    """What a person waits for with nothing to do: the bare start, and one file in which nothing is rewritten."""
    file = scratch / "thousand_lines.py"
    file.write_text(thousand_lines(), encoding="utf-8")
    return [
        Timing("torchport --version", [*torchport, "--version"]),
        Timing("torchport migrate --check, 1,000 lines", [*torchport, "migrate", "--check", str(file)]),
    ]


def count_lines(folder: str) -> int:
    """Lines of the Python files under ``folder``."""
    return sum(path.read_bytes().count(b"\n") for path in python_files(folder))


def python_files(folder: str) -> Iterator[Path]:
    return (path for path in Path(folder).rglob("*.py") if path.is_file())


def parse_speed(folders: Sequence[str]) -> float:
    """Lines of the folders that ``ast.parse`` reads in a CPU second: how fast this machine is just now."""
    lines = 0
    seconds = 0.0
    for path in chain.from_iterable(map(python_files, folders)):
        text = path.read_bytes()
        start = time.process_time()
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        seconds += time.process_time() - start
        lines += text.count(b"\n")
    return lines / seconds if seconds else 0.0


def all_bars(timings: dict[str, Timing], start: Sequence[Timing]) -> Iterator[Bar]:
    own = timings["torchport"].median
    torchfix, ruff = timings.get("torchfix"), timings.get("ruff")
    yield relative("at most 1/50 of TorchFix", own, torchfix, TIMES_TORCHFIX)
    yield relative("at most 4 times ruff", own, ruff, TIMES_RUFF)
    yield Bar("torchport --version", VERSION_SECONDS, start[0].median)
    yield Bar("one file of a thousand lines", THOUSAND_LINES_SECONDS, start[1].median)


def relative(what: str, own: float, other: Timing | None, factor: float) -> Bar:
    return Bar(what, other.median * factor if other else float("nan"), own if other else None)


def timing_rows(timings: Sequence[Timing], lines: int) -> Iterator[tuple[str, ...]]:
    yield ("command", "CPU s", "runs", "lines/s")
    for timing in timings:
        examined = 1000 if "1,000" in timing.name else lines
        speed = "" if timing.name.endswith("--version") else f"{examined / timing.median:,.0f}"
        yield (timing.name, f"{timing.median:.3f}", str(len(timing.seconds)), speed)


def bar_row(bar: Bar) -> tuple[str, ...]:
    measured = "" if bar.measured is None else f"{bar.measured:.3f}"
    limit = "" if bar.measured is None else f"{bar.limit:.3f}"
    return (bar.what, limit, measured, bar.verdict)


def print_table(rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> None:
    """Columns as wide as they need to be, numbers to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
