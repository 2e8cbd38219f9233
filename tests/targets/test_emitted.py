"""Every name that the target writes exists, and the example of each rule runs, in the environment that it is for."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchport.catalog import load_rules
from torchport.model import Target
from torchport.rewrite.spelling import Spelling

ROOT = Path(__file__).parents[2]
RULES = load_rules()
NAME = re.compile(r"(?<![\w.])(torch(?:_xla)?(?:\.[A-Za-z_]\w*)+)(?=\s*\(|[^\w.]|$)")


def written(target: Target) -> Iterator[str]:
    """New texts: of the catalogue, of the spelling, of the transformers, of the recorded outputs."""
    for rule in RULES:
        yield from rule.rename.get(target, {}).values()
        yield rule.example.get(target, "")
    spelling = Spelling(target)
    yield from (spelling.device(), spelling.place("0"), spelling.text("i"), spelling.compared())
    for path in (ROOT / "torchport" / "rewrite").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "torch_xla." in node.value:
                yield node.value if target == "xla" else ""
    for path in (ROOT / "fixtures").glob(f"*/{target}.py"):
        before = (path.parent / "before.py").read_text()
        yield "\n".join(line for line in path.read_text().splitlines() if line.strip() not in before)


def names(target: Target) -> set[str]:
    """Names that the target writes: not those of CUDA and of operators that a program registers, which only stay."""
    found = {match[1] for text in written(target) for match in NAME.finditer(text)}
    return {
        name
        for name in found
        if not name.startswith(("torch.cuda", "torch.backends.cud", "torch_xla.distributed.paral", "torch.ops."))
    }


LAUNCH = {
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29537",
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "TORCH_TPU_SLICEBUILDER_ADDRESSES": "localhost:8471",
    "TORCH_TPU_TOPOLOGY": "1,1,1",
}
"""What torchrun sets, and what ``python -m torch.tpu.distributed`` adds for it."""


@pytest.fixture(scope="module")
def report(target: Target) -> dict[str, dict[str, str]]:
    launcher = [str(ROOT / "tests" / "support" / "tpu_on_cpu.py")] if target == "tpu" else []
    argv = [sys.executable, *launcher, str(Path(__file__).with_name("run_examples.py")), target]
    chosen = {"PYTHONPATH": str(ROOT), "PJRT_DEVICE": "CPU", "TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(target == "tpu"))}
    done = subprocess.run(
        argv,
        input="\n".join(names(target)),
        env={**os.environ, **LAUNCH, **chosen},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"names"')]
    result: dict[str, dict[str, str]] = json.loads(lines[-1])
    return result


def test_every_name_exists(report: dict[str, dict[str, str]], target: Target) -> None:
    expected = {"xla": "torch_xla.sync", "tpu": "torch.accelerator.is_available"}
    assert expected[target] in report["names"]
    assert {name: why for name, why in report["names"].items() if why} == {}


def test_every_example_runs(report: dict[str, dict[str, str]]) -> None:
    assert len(report["examples"]) > 10
    assert {code: why for code, why in report["examples"].items() if why} == {}
