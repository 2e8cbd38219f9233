"""What a name means: scopes, aliases, doubt."""

from __future__ import annotations

import ast

import pytest

from torchport.analysis.build import build
from torchport.analysis.names import qualify


def meaning(text: str) -> tuple[str, bool] | None:
    """The qualified name of the last dotted chain of a text, and whether it is certain."""
    tree = build(ast.parse(text))
    found = qualify(tree, tree.names[-1])
    return None if found is None else (found.name, not found.doubt)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x.cuda.y", id="unbound"),
        pytest.param("def f(torch):\n    torch.cuda", id="parameter"),
        pytest.param("import torch\n[torch.cuda for torch in ()]", id="comprehension"),
        pytest.param("import torch\nf = lambda torch: torch.cuda", id="lambda"),
        pytest.param("from . import cuda\ncuda.init()", id="relative stays relative"),
        pytest.param("class A:\n    import torch\n    def f(self):\n        torch.cuda", id="class scope in a method"),
        pytest.param("for torch in (): torch.cuda", id="loop target"),
        pytest.param("with open('x') as torch: torch.cuda", id="with target"),
        pytest.param("def torch(): pass\ntorch.cuda", id="function"),
    ],
)
def test_is_not_torch(text: str) -> None:
    found = meaning(text)
    assert found is None or not found[0].startswith("torch")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.cuda.x", "torch.cuda.x"),
        ("import torch as t\nt.cuda.x", "torch.cuda.x"),
        ("import torch.cuda as tc\ntc.x", "torch.cuda.x"),
        ("import torch.nn\ntorch.cuda.x", "torch.cuda.x"),
        ("from torch import cuda as c\nc.x", "torch.cuda.x"),
        ("from torch.cuda import memory\nmemory.memory_allocated", "torch.cuda.memory_allocated"),
        ("import torch\ntorch.cuda.amp.autocast_mode.autocast", "torch.cuda.amp.autocast"),
        ("def f():\n    import torch\n    def g():\n        torch.cuda.x", "torch.cuda.x"),
        ("def f():\n    global torch\n    import torch\ntorch.cuda.x", "torch.cuda.x"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.cuda.x", "torch.cuda.x"),
        ("import torch\nimport torch\ntorch.cuda.x", "torch.cuda.x"),
        ("from torch.nn.parallel import DataParallel\nDataParallel", "torch.nn.DataParallel"),
    ],
)
def test_is_torch(text: str, name: str) -> None:
    assert meaning(text) == (name, True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import torch\ntorch = fake\ntorch.cuda.x", id="assigned as well"),
        pytest.param(
            "try:\n    import torch\nexcept OSError:\n    import other as torch\ntorch.cuda.x", id="two imports"
        ),
        pytest.param("from helpers import *\ntorch.cuda.x", id="star"),
    ],
)
def test_is_torch_with_a_doubt(text: str) -> None:
    assert meaning(text) == ("torch.cuda.x", False)
