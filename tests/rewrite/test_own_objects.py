"""A `cuda` or `is_cuda` of the program's own classes stays what it is, in every file that may have such an object."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.analysis.own_classes import OwnClasses
from torchport.analysis.project import Collector
from torchport.rewrite import Outcome

BAG = b"class Bag:\n    def cuda(self):\n        return self\n    def train(self): ...\nclass PlainPaper(Bag): ...\n"
DATA = b"class Data(Base):\n    @property\n    def is_cuda(self):\n        return True\n    def size(self): ...\n"


def test_own_cuda_classes_of_other_files_hold_back(migrate: Callable[..., Outcome]) -> None:
    collector = Collector()
    collector.add(b"class Bag:\n    def cuda(self):\n        return self\n")
    facts = collector.facts()
    text = "from bags import Bag\n\ndef f(items):\n    return Bag(items).cuda()\n"
    outcome = migrate(text, project=facts)
    assert outcome.text is None
    assert "class Bag" in outcome.left[0].reason
    assert migrate(text).text is not None


@pytest.mark.parametrize(
    ("receiver", "moves"),
    [
        ("def f(b):\n    return b.cuda()", False),
        ("from data import load\ndef f():\n    b = next(load())\n    return b.cuda()", False),
        ("from data import load\nb = load()\nc = b.cuda()", False),
        ("def f(self):\n    return self.bag.cuda()", False),
        ("def f(self):\n    return self.model.cuda()", True),
        ("from nets import Net\nnet = Net()\nnet.cuda()", True),
        ("x = torch.ones(2)\ny = x.cuda()", True),
        ("y = [x.cuda() for x in ys]", False),
        ("class A:\n    def __init__(self, m):\n        self.m = m\n        self.m.cuda()", False),
        (
            "import copy\nclass A:\n    def f(self, m):\n        self.e = copy.deepcopy(m)\n        self.e.cuda()",
            False,
        ),
        ("class A:\n    def __init__(self):\n        self.m = torch.nn.Linear(1, 1)\n        self.m.cuda()", True),
        ("from bags import Bag\nm = torch.nn.Linear(2, 2).cuda()", True),
        ("from bags import Bag\nfrom nets import Net\nm = Net(2).cuda()", True),
        ("from bags import Bag\nx = torch.ones(2).view(1, 2).cuda()", True),
        ("from bags import Bag\nx = torch.load('a').cuda()", False),
        ("from bags import Bag\nm = Bag(2).cuda()", False),
        ("from bags import PlainPaper\nm = PlainPaper(2).cuda()", False),
        ("def f(self):\n    return self.paper.cuda()", False),
        ("def f(self):\n    return self.plain_paper.cuda()", False),
        ("def f(x: torch.Tensor):\n    return x.cuda()", True),
        ("def f(x):\n    return x.cuda() if torch.is_tensor(x) else x", True),
        ("def f(x):\n    if isinstance(x, torch.Tensor):\n        x = x.cuda()\n    return x", True),
        ("def f(x):\n    n = x.size(0)\n    return x.cuda(), n", True),
        ("def f(m):\n    m.train()\n    return m.cuda()", False),
    ],
)
def test_own_cuda_classes_of_other_files_hold_back_what_may_be_one(
    receiver: str, moves: bool, migrate: Callable[..., Outcome]
) -> None:
    collector = Collector()
    collector.add(BAG)
    text = f"import torch\n{receiver}\n"
    outcome = migrate(text, project=collector.facts())
    assert (".cuda()" not in (outcome.text or text)) is moves


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("def f(data):\n    return data.is_cuda", False),
        ("from data import Data\ndef f(x):\n    return isinstance(x, Data) and x.is_cuda", False),
        ("from data import Batch\ndef f(x):\n    return isinstance(x, Batch) and x.is_cuda", False),
        ("def f(x):\n    return isinstance(x, torch.Tensor) and x.is_cuda", True),
        ("def f(x: torch.Tensor):\n    x = x.detach()\n    return x.is_cuda", True),
        ("def f(x):\n    return x.view(1) if x.is_cuda else x", True),
        ("def f(x):\n    return x.size() if x.is_cuda else x", False),
        ("x = torch.ones(1)\nprint(x.is_cuda)", True),
    ],
)
def test_own_is_cuda_of_another_file_stays(text: str, moves: bool, migrate: Callable[..., Outcome]) -> None:
    """In the class itself and where an object of it, or of a class that derives from it, may be asked."""
    collector = Collector()
    collector.add(DATA)
    collector.add(b"class Batch(\n    Data,\n):\n    pass\n")
    for target in ("portable", "xla", "tpu"):
        outcome = migrate(f"import torch\n{text}\n", target=target, project=collector.facts())
        assert (outcome.text is not None) is moves
        assert moves or "has an `is_cuda` of its own, and this may be one" in outcome.left[0].reason


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class A:\n    def cuda(self): ...", [("A", "cuda", True)]),
        ("class A(Base):\n    async def f(): ...\n    def cuda(self): ...", [("A", "cuda", False)]),
        ("class A:\n    def cuda(self): ...\n    def to(self, d): ...", []),
        ("class A:\n    def cuda(self): ...\n    def __getattr__(self, n): ...", [("A", "cuda", False)]),
        ("class A:\n    pass\ndef f():\n    def cuda(): ...", []),
        ("class A:\n    def f(self):\n        def cuda(): ...", []),
        ("if 1:\n    class A:\n        def is_cuda(self): ...\n", [("A", "is_cuda", True)]),
        ("class A:\n    def cuda(self): ...\nclass B(A):\n    pass", [("A", "cuda", False), ("B", "cuda", False)]),
        ("def cuda(): ...", []),
    ],
)
def test_classes_with_methods_of_tensors(text: str, found: list[tuple[str, str, bool]]) -> None:
    classes = OwnClasses()
    classes.add(text.encode())
    assert [(own.name, own.method, own.closed) for own in classes.all()] == found
