"""Measure ``torchport lint`` against TorchFix in flake8, and ruff: ``python benchmarks/lint_time.py FOLDER...``.

With ``--large FOLDER`` also what a large repository costs: cold, from the cache, in two processes, and in memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cpu_time import PARSE_SPEED, Bar, bar_row, count_lines, parse_speed, print_table, relative
from environments import python_of, script_of, version_of
from measure import MeasureError, Timing, measure_in_turn, use
from thousand_lines import thousand_lines

TIMES_TORCHFIX = 1 / 50
TIMES_RUFF = 4.0
TIMES_RUFF_LARGE = 7.0
WARM_SECONDS = 0.5
TWO_PROCESSES = 1.6
PEAK_MIB = 150.0
THOUSAND_LINES_SECONDS = 0.15
REFERENCE = "huggingface/pytorch-image-models and ultralytics/yolov5, and with --large huggingface/diffusers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all measured bars hold, 1 one fails, 2 a tool did not run."""
    options = parse(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            return report(options, Path(scratch))
    except MeasureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"The bars are meant for {REFERENCE}.")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="Python code to examine; nothing is written there")
    parser.add_argument("--large", metavar="FOLDER", help="a large repository")
    parser.add_argument("--torchport-python", default=sys.executable, metavar="PATH", help="a Python with torchport")
    parser.add_argument(
        "--torchfix-python", metavar="PATH", help="a Python with torchfix and flake8; default: make one"
    )
    parser.add_argument("--ruff-python", metavar="PATH", help="a Python with ruff; default: make one")
    parser.add_argument("--without", nargs="*", default=[], choices=["torchfix"], help="leave it out: it takes minutes")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of the fast tools (default: 5)")
    parser.add_argument("--large-runs", type=int, default=3, metavar="N", help="runs on the large one (default: 3)")
    options = parser.parse_args(arguments)
    if not options.folders and not options.large:
        parser.error("expected a FOLDER, or --large FOLDER")
    return options


def report(options: argparse.Namespace, scratch: Path) -> int:
    """Measure and print."""
    lint = [options.torchport_python, "-m", "torchport", "lint"]
    use([*lint, "--help"], scratch, (0,))  # a Python without torchport ends with 1, as a run with findings does
    ruff = ruff_command(options)
    bars = list(hook(lint, scratch, options.runs))
    folders = [str(Path(folder).resolve()) for folder in options.folders]
    if folders:
        bars += reference(options, lint, ruff, folders, scratch)
    if options.large:
        bars += large(options, lint, ruff, str(Path(options.large).resolve()), scratch)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load}")
    speed = parse_speed(folders or [options.large])
    print(f"ast.parse does {speed:,.0f} lines a CPU second here; the bars in seconds were set at {PARSE_SPEED:,}\n")
    print_table([("bar", "limit", "measured", ""), *map(bar_row, bars)])
    return 1 if any(bar.verdict == "FAIL" for bar in bars) else 0


def ruff_command(options: argparse.Namespace) -> list[str]:
    """Ruff with its default rules and no cache."""
    python = python_of("ruff", options.ruff_python)
    return [script_of(python, "ruff"), "check", "--no-cache", "--isolated", "--exit-zero", "--quiet"]


def hook(lint: list[str], scratch: Path, runs: int) -> Iterator[Bar]:
    """What a person who commits one file waits for."""
    file = scratch / "thousand_lines.py"
    file.write_text(thousand_lines(), encoding="utf-8")
    one = Timing("torchport lint, 1,000 lines", [*lint, "--no-cache", str(file)], (0, 1))
    measure_in_turn([one], scratch, max(runs, 10))
    yield Bar("one file of a thousand lines, CPU s", THOUSAND_LINES_SECONDS, one.median)


def reference(
    options: argparse.Namespace, lint: list[str], ruff: list[str], folders: list[str], scratch: Path
) -> Iterator[Bar]:
    """All rules on the two repositories, on one core."""
    own = Timing("torchport lint -j1", [*lint, "--no-cache", "-j1", "--output-format", "concise", *folders], (0, 1))
    other = Timing("ruff check", [*ruff, *folders])
    measure_in_turn([own, other], scratch, options.runs)
    torchfix = None
    if "torchfix" not in options.without:
        python = python_of("torchfix", options.torchfix_python)
        command = [python, "-m", "flake8", "--isolated", "--select=TOR", "-j1", *folders]
        torchfix = Timing(f"flake8 with TorchFix {version_of(python, 'torchfix')}", command, (0, 1))
        measure_in_turn([torchfix], scratch, 1)
    lines = sum(map(count_lines, folders))
    print(f"{lines:,} lines in {', '.join(Path(folder).name for folder in folders)}, CPU seconds:")
    print_table([(t.name, f"{t.median:.3f}") for t in (own, other, *([torchfix] if torchfix else []))])
    print()
    yield relative("at most 1/50 of TorchFix, CPU s", own.median, torchfix, TIMES_TORCHFIX)
    yield relative("at most 4 times ruff, CPU s", own.median, other, TIMES_RUFF)


def large(options: argparse.Namespace, lint: list[str], ruff: list[str], folder: str, scratch: Path) -> Iterator[Bar]:
    """A large repository: cold, warm, in two processes."""
    command = [*lint, "--output-format", "concise", folder]
    one = Timing("torchport lint, cold, one process", [*command, "--no-cache", "-j1"], (0, 1))
    two = Timing("torchport lint, cold, two processes", [*command, "--no-cache", "-j2"], (0, 1))
    other = Timing("ruff check", [*ruff, folder])
    measure_in_turn([one, two, other], scratch, options.large_runs)
    warm = Timing("torchport lint, from the cache", [*command, "--cache-dir", str(scratch / "cache")], (0, 1))
    measure_in_turn([warm], scratch, max(options.runs, 5))
    print(f"{count_lines(folder):,} lines in {Path(folder).name}:")
    rows = [(t.name, f"{t.median:.3f}", f"{t.wall:.3f}", f"{t.peak:.0f}") for t in (one, two, warm, other)]
    print_table([("command", "CPU s", "wall s", "MiB"), *rows])
    print()
    yield relative("cold, at most 7 times ruff, CPU s", one.median, other, TIMES_RUFF_LARGE)
    yield Bar("from the cache, CPU s", WARM_SECONDS, warm.median)
    yield Bar("two processes: wall s, at most those of one / 1.6", one.wall / TWO_PROCESSES, two.wall)
    yield Bar("memory of the largest process, MiB", PEAK_MIB, max(one.peak, two.peak, warm.peak))


if __name__ == "__main__":
    sys.exit(main())
