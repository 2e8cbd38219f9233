"""Do modules that can be imported still import after a migration? ``python benchmarks/imports.py FOLDER...``.

All modules of a copy of the folder are imported, it is migrated, and they are imported again in another process. Needs
an environment with torch; packages that are missing there make a module fail before and after.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

SKIPPED = {".git", "__pycache__", "node_modules", ".venv", "venv"}
SECONDS = 200


def modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """The root to import from, and the dotted name, of every Python file whose path is made of names."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if SKIPPED & set(parts) or not all(part.isidentifier() for part in parts):
            continue
        root = path.parent
        while root != folder and (root / "__init__.py").exists():
            root = root.parent
        inner = path.relative_to(root).with_suffix("").parts
        name = ".".join(inner[:-1] if inner[-1] == "__init__" else inner)
        if name and inner[-1] not in ("__main__", "setup", "conftest"):
            yield root, name


def attempts(folder: Path) -> dict[str, str]:
    """Import every module of the folder in this process; the error of each, an empty text where it worked."""
    errors: dict[str, str] = {}
    here = str(folder)
    path, last = list(sys.path), folder
    signal.signal(signal.SIGALRM, _too_long)
    for root, name in modules(folder):
        if root != last:  # files of one name in different folders
            for known, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "") or "").startswith(here):
                    del sys.modules[known]
        last, sys.path[:], sys.argv = root, [str(root), here, *path], [name]
        os.chdir(root)
        signal.alarm(SECONDS)
        try:
            importlib.import_module(name)
            error = ""
        except BaseException as problem:  # SystemExit of a script among them
            error = f"{type(problem).__name__}: {problem}"
        signal.alarm(0)
        errors[f"{root.relative_to(folder)}: {name}"] = error
    return errors


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def compare(folder: Path, target: str) -> tuple[int, int, list[str]]:
    """How many modules were tried, how many could be imported before, and those of them that cannot be any more."""
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        for _ in range(2):
            argv = [sys.executable, __file__, "--try", "--target", target, str(copy)]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{folder}: the process that imports died: {done.stderr[-2000:]}")
            found.append(json.loads(done.stdout.splitlines()[-1]))
            argv = [sys.executable, "-m", "torchport", "migrate", "--target", target, str(copy)]
            subprocess.run(argv, capture_output=True, check=False)
    before, after = found
    good = [name for name, error in before.items() if not error]
    return len(before), len(good), [f"{name}: {after[name]}" for name in good if after[name]]


def main(arguments: Iterable[str] | None = None) -> int:
    """Exit status: 0 where every module that imported still does, 1 where one does not."""
    parser = argparse.ArgumentParser(description="Import the modules of a project before and after a migration.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--try", action="store_true", dest="only_try", help=argparse.SUPPRESS)
    parser.add_argument("--target", default="portable", choices=["portable", "xla", "tpu"])
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.only_try:
        importlib.import_module("torch_xla" if options.target == "xla" else "torch")  # which takes the longest
        sys.stdout.write("\n" + json.dumps(attempts(options.folders[0])) + "\n")
        return 0
    total, bad = 0, 0
    for folder in options.folders:
        tried, good, lost = compare(folder.resolve(), options.target)
        print(f"{folder.name}: {tried} modules, {good} import before, {len(lost)} of them not after", flush=True)
        print("".join(f"  {line}\n" for line in lost), end="", flush=True)
        total, bad = total + good, bad + len(lost)
    print(f"all: {total} import before, {bad} of them not after")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
