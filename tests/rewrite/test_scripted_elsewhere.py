"""What TorchScript compiles for another file stays: it cannot call the shim."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.analysis.project import Collector
from torchport.rewrite import Outcome

CALLED = "import torch\ndef called(x: torch.Tensor):\n    return x * 2 if x.is_cuda else x\n"


@pytest.mark.parametrize(
    ("other", "moves"),
    [
        ("from pkg.parts import called\n@torch.jit.script\ndef f(x):\n    return called(x)", False),
        ("from .parts import called\nf = torch.jit.script(called)", False),
        ("from pkg import called\nf = torch.jit.script(called)", False),
        ("from . import parts\n@torch.jit.script\ndef f(x):\n    return parts.called(x)", False),
        ("from .parts import called\ndef f(x):\n    return called(x)\ng = torch.jit.script(h)", True),
        ("from .others import called\nf = torch.jit.script(called)", True),
        ("from .parts import (\n    other,\n    called as c,\n)\nf = torch.jit.script(c)", False),
        ("from .parts import called\nf = torch.jit.trace(called, x)", True),
    ],
)
def test_what_another_file_has_compiled_stays(other: str, moves: bool, migrate: Callable[..., Outcome]) -> None:
    collector = Collector()
    collector.add(f"import torch\n{other}\n".encode(), "pkg/use.py")
    outcome = migrate(CALLED, "pkg/parts.py", project=collector.facts())
    assert (outcome.text is not None) is moves
    assert moves or "TorchScript compiles this code" in outcome.left[0].reason
