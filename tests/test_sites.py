"""The checker of sites sees each kind of site, and what it compares cannot pass over one that stays."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    """``benchmarks/sites.py``, which is a script and no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("sites", FOLDER / "sites.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["sites"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


SOURCE = """
import apex
import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
from torch.cuda import amp
cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.ones(1).cuda().type("torch.cuda.FloatTensor").pin_memory()
assert x.is_cuda
dist.init_process_group("nccl")
with torch.autocast("cuda"):
    x.record_stream(None)
parser.add_argument("--gpu")
os.environ["NCCL_DEBUG"] = "out of memory" in str(error)
prof = torch.profiler.ProfilerActivity.CUDA
"""


def kinds(checker: ModuleType, source: str) -> list[str]:
    return sorted(site.family for site in checker.sites(ast.parse(source), source.encode()))


def test_every_kind_of_site_is_seen(checker: ModuleType) -> None:
    assert set(kinds(checker, SOURCE)) == set(checker.FAMILIES)


@pytest.mark.parametrize(
    "source",
    [
        "'''torch.cuda.is_available()'''",
        "x = args.cuda",
        "import numba\nnumba.jit(x)",
        "def f(x):\n    return x.to(device, non_blocking=True)",
        "import torch\nwith torch.autocast(device.type, dtype=torch.bfloat16): pass",
        "from torchport import shim\nshim.init_process_group('nccl')",
        "from torchport import shim\nwrap(pin_memory=shim.is_pin_memory_supported())",
    ],
)
def test_what_means_the_same_everywhere_is_no_site(checker: ModuleType, source: str) -> None:
    assert kinds(checker, source) == []


PLAIN = {
    "a.yaml": (
        ("device", "device: cuda\n# device: cuda\nname: cuda\n"),
        ("NCCL", "backend: nccl\n"),
        ("float16", "fp16: true\n"),
    ),
    "a.sh": (
        ("variables", "CUDA_VISIBLE_DEVICES=0 python a.py\necho CUDA_VISIBLE_DEVICES=0\n"),
        ("launching", "torchrun --nproc_per_node=2 a.py\n"),
        ("schedulers", "docker run -it --gpus all x\n"),
        ("device", "python a.py --device cuda:0\n"),
    ),
    "requirements.txt": (("packages", "flash-attn==2\n# bitsandbytes\n"),),
}


def test_lines_of_settings_are_sites_and_comments_are_not(checker: ModuleType) -> None:
    seen = set()
    for name, cases in PLAIN.items():
        for kind, text in cases:
            assert [found[:2] for found in checker.plain_sites(name, text.encode())] == [(1, kind)]
            seen.add(kind)
    assert seen == set(checker.LINES)


def test_settings_are_held_against_what_torchport_reports(checker: ModuleType, tmp_path: Path) -> None:
    for name, cases in PLAIN.items():
        (tmp_path / name).write_text("".join(text for _, text in cases))
    result = checker.tally(tmp_path, "portable")
    assert (result.total("left"), result.total("note"), result.missing_lines) == (6, 2, [])
    (tmp_path / "a.yaml").write_text("text: |\n  device: cuda\n")
    (missing,) = checker.tally(tmp_path, "portable").missing_lines
    assert missing == (Path("a.yaml"), 2, "device", "device: cuda")


def test_a_folder_is_held_against_what_torchport_does(checker: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nif torch.cuda.is_available():\n    torch.cuda.cudart()\n")
    (tmp_path / "b.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    result = checker.tally(tmp_path, "portable")
    assert (result.total("rewritten"), result.total("left"), result.total("missing")) == (1, 2, 0)


def test_a_site_of_which_nothing_is_said_is_missing(checker: ModuleType) -> None:
    old = list(checker.sites(ast.parse(SOURCE), SOURCE.encode()))
    lines = checker.lines(SOURCE.encode())
    said = checker.Said({"left": [((2, 1), (2, 12), "TP916")], "note": []})
    assert [said.about(site) for site in old if site.family == "libraries"] == ["left"]
    assert {said.about(site) for site in old if site.family == "device texts"} == {"missing"}
    changed = SOURCE.replace('"cuda" if torch.cuda.is_available() else "cpu"', "shim.device()")
    new = list(checker.sites(ast.parse(changed), changed.encode()))
    rest = checker._remaining(old, new, lines, checker.lines(changed.encode()))
    assert {site.text for site in set(old) - rest} == {"'cuda'", "torch.cuda.is_available"}
