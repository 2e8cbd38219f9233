"""Every name that a rule writes exists, and the example of each rule runs, on the back end of this run."""

from __future__ import annotations

import ast
import re
from contextlib import nullcontext
from operator import attrgetter
from pathlib import Path

import pytest
import torch

from torchport import shim
from torchport.catalog import load_rules
from torchport.model import Rule

ROOT = Path(__file__).parents[2]
RULES = load_rules()
EMITTED = re.compile(r"\bshim\.((?:nvtx\.|profiler\.)?[A-Za-z_]\w*)")


def emitted() -> set[str]:
    """Names after ``shim.`` in the catalogue and in what the transformers write."""
    renames = [new for rule in RULES for new in rule.rename.get("portable", {}).values()]
    names = {name for new in renames for name in EMITTED.findall(new)}
    for path in (ROOT / "torchport" / "rewrite").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names |= set(EMITTED.findall(node.value))
    return names


def test_the_list_is_not_empty() -> None:
    assert {"device", "steps", "autocast", "accelerator_type"} <= emitted()


@pytest.mark.parametrize("name", sorted(emitted()))
def test_name_exists(name: str) -> None:
    assert callable(attrgetter(name)(shim))


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if "portable" in rule.example], ids=lambda rule: f"{rule.code}-{rule.name}"
)
def test_example_runs(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shim.synchronize()  # the runtime of TorchTPU reads the variables below when it starts
    torch.save({"w": torch.ones(2)}, "a.pt")
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531", "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    code = compile(rule.example["portable"], f"{rule.code}.py", "exec")
    stops = "SystemExit" in rule.example["portable"] and not shim.is_available()
    try:
        with pytest.raises(SystemExit, match="no accelerator") if stops else nullcontext():
            exec(code, {"__name__": "example"})
    finally:
        torch.set_default_device("cpu")
        torch.set_default_dtype(torch.float32)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
