"""A value that several files share moves in all of them, or stays in all of them and says where it is held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.analysis.project import Collector
from torchport.rewrite import Outcome

OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', default='cuda')\n"
OTHER_OPTION = OPTION.replace("device", "dev2")
CONSTANT = "import torch\nDEVICE = 'cuda'\nx = torch.ones(1, device=DEVICE)\n"
SETTINGS = "class TrainConfig:\n    device = 'cuda'\n"
FUNCTION = "import torch\ndef run(n, device='cuda'):\n    return torch.ones(n, device=device)\n"
STUCK = "def run(n, device='cuda'):\n    return device.lstrip('cuda')\n"
CLASS = "class Runner:\n    def __init__(self, device='cuda'):\n        self.kept = device.strip('cuda')\n"


def together(files: dict[str, str], migrate: Callable[..., Outcome]) -> dict[str, Outcome]:
    """What becomes of files that are migrated in one run."""
    collector = Collector()
    for path, text in files.items():
        collector.add(text.encode(), path)
    facts = collector.facts()
    return {path: migrate(text, path, project=facts) for path, text in files.items()}


@pytest.mark.parametrize(
    ("shared", "reader"),
    [
        pytest.param(OPTION, "def f(args):\n    return args.device == 'cuda:0'\n", id="option"),
        pytest.param(OPTION, "def f(cfg):\n    return cfg.device.replace('cuda:', '')\n", id="part of a name"),
        pytest.param(SETTINGS, "def f(config):\n    return config.device == 'cuda:1'\n", id="class of settings"),
        pytest.param(CONSTANT, "from shared import DEVICE\nfirst = DEVICE == 'cuda:0'\n", id="constant"),
        pytest.param(CONSTANT, "from pkg.shared import DEVICE as D\nfirst = D in ('cuda:0', 'cuda:1')\n", id="alias"),
    ],
)
def test_what_one_file_cannot_move_the_other_leaves(shared: str, reader: str, migrate: Callable[..., Outcome]) -> None:
    outcomes = together({"shared.py": shared, "reader.py": reader}, migrate)
    assert all(outcome.text is None for outcome in outcomes.values())
    (left,) = [finding for finding in outcomes["shared.py"].left if finding.code == "TP101"]
    assert "in reader.py, line " in left.reason
    assert migrate(shared, "shared.py").text is not None


@pytest.mark.parametrize(
    ("maker", "call"),
    [
        pytest.param(STUCK, "from maker import run\nrun(1, device='cuda')\n", id="function"),
        pytest.param(STUCK, "import maker\nmaker.run(1, device='cuda')\n", id="function of a module"),
        pytest.param(CLASS, "from maker import Runner\nRunner(device='cuda')\n", id="class"),
    ],
)
def test_an_argument_stays_with_its_parameter(maker: str, call: str, migrate: Callable[..., Outcome]) -> None:
    outcomes = together({"maker.py": maker, "call.py": call}, migrate)
    assert outcomes["call.py"].text is None
    assert "in maker.py, line " in outcomes["call.py"].left[0].reason
    assert migrate(call, "call.py").text is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(OTHER_OPTION, "def f(args):\n    return args.device == 'cuda:0'\n", id="another option"),
        pytest.param(OPTION, "def f(args):\n    return args.device == 'cuda'\n", id="a test that moves"),
        pytest.param(OPTION, "def f(x):\n    return x.device == 'cuda:0'\n", id="no settings"),
        pytest.param(OPTION, OPTION + "a = p.parse_args()\nfirst = a.device == 'cuda:0'\n", id="an option of its own"),
        pytest.param(CONSTANT, "DEVICE = 'cuda:0'\nfirst = DEVICE == 'cuda:0'\n", id="a constant of its own"),
        pytest.param(FUNCTION, STUCK, id="two functions of one name"),
        pytest.param(OPTION, "def f(args):\n    return args.device == 'cuda:0'\nbroken(", id="not Python"),
        pytest.param(OPTION, "x = " + "(" * 20_000 + "'cuda:0' == args.device", id="too deep"),
    ],
)
def test_what_is_not_shared_moves(one: str, other: str, migrate: Callable[..., Outcome]) -> None:
    assert together({"one.py": one, "other.py": other}, migrate)["one.py"].text is not None
