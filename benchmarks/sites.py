"""Hold each CUDA-specific site of a folder against what torchport does with it: ``python benchmarks/sites.py FOLDER``.

The sites are found by a plain walk over the syntax trees, and in files of settings and launchers by patterns for lines,
with no line of torchport's engine, before and after the migration of a copy. A site that is still there afterwards has
to be reported; one that is not is printed with file and line, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plain_sites import LINES, is_plain, plain_sites
from site_kinds import FAMILIES, Site, lines, sites

Place = tuple[int, int]
SKIPPED = {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache"}
NOT_READ = {".ipynb": "notebooks"}
PLAIN = "settings: "
"""Before the kinds of sites that are no Python."""
WORDS = (b"cuda", b"CUDA_", b"nccl", b"NCCL_", b"nvidia-smi")
KINDS = ("rewritten", "left", "note", "missing")


@dataclass
class Said:
    """What torchport reports of one file: the spans of findings that are left and of notes, with the code."""

    spans: dict[str, list[tuple[Place, Place, str]]] = field(default_factory=dict)
    problem: str = ""

    def about(self, site: Site) -> str:
        """``left``, ``note``, or ``missing`` where nothing is said of the site."""
        for kind, spans in self.spans.items():
            if any(_meets(site, start, end, code) for start, end, code in spans):
                return kind
        return "missing"

    def about_line(self, number: int) -> str:
        """The same for a line of a file that is no Python."""
        for kind, spans in self.spans.items():
            if any(start[0] <= number <= end[0] for start, end, _ in spans):
                return kind
        return "missing"


def _meets(site: Site, start: Place, end: Place, code: str) -> bool:
    """A finding inside the site or at its start speaks of it; a wider one does if its rule is of the kind."""
    if site.start <= start < site.end:
        return True
    return start < site.start < end and code.startswith(FAMILIES[site.family])


@dataclass
class Tally:
    """What became of the sites of one folder."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    missing: list[tuple[Path, Site]] = field(default_factory=list)
    missing_lines: list[tuple[Path, int, str, str]] = field(default_factory=list)
    unread: list[tuple[Path, str]] = field(default_factory=list)
    elsewhere: Counter[str] = field(default_factory=Counter)

    def total(self, kind: str) -> int:
        """Sites of all families of which that is so."""
        return sum(n for (_, k), n in self.counts.items() if k == kind)


def tally(folder: Path, target: str) -> Tally:
    """Migrate a copy of the folder, and count what became of its sites."""
    result = Tally()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / folder.name
        python: list[Path] = []
        plain: list[Path] = []
        for path in _files(folder):
            if path.suffix in (".py", ".pyi") or is_plain(path.name):
                name = path.relative_to(folder)
                (plain if is_plain(path.name) else python).append(name)
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy / name)
            elif path.suffix in NOT_READ:
                found = sum(any(word in line for word in WORDS) for line in path.read_bytes().splitlines())
                result.elsewhere[NOT_READ[path.suffix]] += found
        said = _migrate(copy, target)
        for name in python:
            _file(name, (folder / name).read_bytes(), (copy / name).read_bytes(), said.get(name, Said()), result)
        for name in plain:
            if (folder / name).read_bytes() != (copy / name).read_bytes():
                result.unread.append((name, "was rewritten, which no file of settings may be"))
            for number, kind, text in plain_sites(str(name), (folder / name).read_bytes()):
                become = said.get(name, Said()).about_line(number)
                result.counts[PLAIN + kind, become] += 1
                if become == "missing":
                    result.missing_lines.append((name, number, kind, text))
    return result


def _files(folder: Path) -> Iterator[Path]:
    """All files below the folder, but for those of tools and virtual environments."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not SKIPPED & set(path.relative_to(folder).parts):
            yield path


def _migrate(folder: Path, target: str) -> dict[Path, Said]:
    """Run torchport on the folder, and read what it reports, by file."""
    command = [sys.executable, "-m", "torchport", "migrate", "--target", target, "--output-format", "json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{folder}: torchport failed with status {done.returncode}: {done.stderr[-2000:]}")
    files = json.loads(done.stdout)["files"]
    return {Path(entry["path"]).resolve().relative_to(folder.resolve()): _said(entry) for entry in files}


def _said(entry: dict[str, Any]) -> Said:
    said = Said(problem="; ".join(problem["message"] for problem in entry["problems"]))
    for kind, key in (("left", "left"), ("note", "notes")):
        said.spans[kind] = [((f["line"], f["column"]), (f["end_line"], f["end_column"]), f["code"]) for f in entry[key]]
    return said


def _file(name: Path, before: bytes, after: bytes, said: Said, result: Tally) -> None:
    try:
        old = list(sites(ast.parse(before), before))
        new = list(sites(ast.parse(after), after)) if after != before else old
    except (SyntaxError, ValueError, RecursionError) as error:
        result.unread.append((name, said.problem or f"nothing is said of it: {error}"))
        return
    rest = _remaining(old, new, lines(before), lines(after))
    for site in old:
        kind = said.about(site) if site in rest else "rewritten"
        result.counts[site.family, kind] += 1
        if kind == "missing":
            result.missing.append((name, site))


def _remaining(old: list[Site], new: list[Site], before: list[bytes], after: list[bytes]) -> set[Site]:
    """Sites that are there in the new text too: at the same place of a line, or as often in a part that changed."""
    if old is new:
        return set(old)
    rest: set[Site] = set()
    for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        here = [site for site in old if i < site.start[0] <= j]
        there = [site for site in new if k < site.start[0] <= m]
        if tag == "equal":
            places = {(site.start[0] - k, site.start[1], site.family) for site in there}
            rest |= {site for site in here if (site.start[0] - i, site.start[1], site.family) in places}
            continue
        left = Counter((site.family, site.text) for site in there)
        for site in here:
            if left[site.family, site.text] > 0:
                left[site.family, site.text] -= 1
                rest.add(site)
    return rest


def table(folder: Path, result: Tally) -> Iterator[str]:
    """The counts, a line for each family."""
    yield folder.name
    yield f"  {'family':<20}{'sites':>7}" + "".join(f"{kind:>11}" for kind in KINDS)
    for family in [*FAMILIES, *(PLAIN + kind for kind in LINES), ""]:
        row = [result.counts[family, kind] if family else result.total(kind) for kind in KINDS]
        if sum(row) or not family:
            yield f"  {family or 'all':<20}{sum(row):>7}" + "".join(f"{count:>11}" for count in row)
    if any(result.elsewhere.values()):
        found = ", ".join(f"{count} lines in {kind}" for kind, count in result.elsewhere.items() if count)
        yield f"  not Python files: {found}"
    for path, why in result.unread:
        yield f"  not readable: {path}: {why[:120]}"
    for path, site in result.missing:
        yield f"  missing: {folder.name}/{path}:{site.start[0]}:{site.start[1]}: {site.family}: {site.text}"
    for path, number, kind, text in result.missing_lines:
        yield f"  missing: {folder.name}/{path}:{number}: {PLAIN}{kind}: {text[:120]}"


def main(arguments: Iterable[str] | None = None) -> int:
    """Exit status: 0 where every site is accounted for, 1 where one is not."""
    parser = argparse.ArgumentParser(description="Find CUDA-specific sites that are neither rewritten nor reported.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--target", default="portable", choices=["portable", "xla", "tpu"])
    options = parser.parse_args(None if arguments is None else list(arguments))
    bad = 0
    for folder in options.folders:
        result = tally(folder, options.target)
        print("\n".join(table(folder, result)), flush=True)
        bad += len(result.missing) + len(result.missing_lines)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
