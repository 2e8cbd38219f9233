"""In a process of its own, so that nothing but the emitted code prepares the back end: resolve names, run examples.

python run_examples.py TARGET    prints {"names": {name: error}, "examples": {code: error}}, errors empty where fine
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import warnings

import torch

from torchport.catalog import load_rules
from torchport.rewrite.spelling import IMPORTS


def resolve(name: str, modules: list[str]) -> str:
    """Why ``name`` does not exist once ``modules`` are imported, or an empty text."""
    root = max((m for m in modules if name == m or name.startswith(f"{m}.")), key=len, default="")
    try:
        found = importlib.import_module(root)
        for part in name[len(root) :].strip(".").split("."):
            found = getattr(found, part) if part else found
    except Exception as error:  # whatever it is, the name is no good
        return f"{type(error).__name__}: {error}"
    return ""


def run(source: str) -> str:
    """What went wrong in a program, or an empty text."""
    try:
        exec(compile(source, "example.py", "exec"), {"__name__": "example"})
    except BaseException as error:  # SystemExit among them
        return f"{type(error).__name__}: {error}"
    finally:
        torch.set_default_device("cpu")
        torch.set_default_dtype(torch.float32)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return ""


def main(target: str) -> None:
    warnings.simplefilter("ignore")
    there = {root: importlib.util.find_spec(root) is not None for root in ("torch", "torch_xla")}
    modules = [module for module in IMPORTS if there.get(module.partition(".")[0])]
    names = {name: resolve(name, modules) for name in sys.stdin.read().split()}
    os.chdir(tempfile.mkdtemp())
    torch.save({"w": torch.ones(2)}, "a.pt")
    examples = {rule.code: run(rule.example[target]) for rule in load_rules() if target in rule.example}
    sys.stdout.write(json.dumps({"names": names, "examples": examples}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
