"""The step of an optimizer in one file, the loop that calls for it in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchport.analysis.elsewhere import stepping, turning
from torchport.analysis.project import Collector
from torchport.catalog import load_rules
from torchport.linting import LintOptions, lint
from torchport.pipeline import Options, migrate
from torchport.rewrite import Outcome

MODEL = """
import torch

class Model(Base):
    def feed_data(self, data):
        self.data = data["x"].cuda()

    def optimize_parameters(self):
        self.forward()
        self.loss.backward()
        self.optimizers[0].step()
"""
BASE = """
class Base:
    def fit(self):
        for data in self.loader:
            self.feed_data(data)
            self.optimize_parameters()

    def optimize_parameters(self):
        raise NotImplementedError
"""
LOOP = """
def fit(model, loader):
    while (data := loader.next()) is not None:
        model.feed_data(data)
        model.optimize_parameters()
"""
OTHER = "for path in paths:\n    model.feed_data(path)\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(MODEL, {"optimize_parameters"}, id="method"),
        pytest.param("def train_step(x):\n    if x:\n        opt_g.step()\n", {"train_step"}, id="function"),
        pytest.param("def take(o):\n    optim.step()\ndef train_step(x):\n    take(x)", {"train_step"}, id="helper"),
        pytest.param("def train_step(x):\n    for optim in y:\n        optim.step()", {"train_step"}, id="all"),
        pytest.param("def train_step(w):\n    optim_wrapper.update_params(w)\n", {"train_step"}, id="update_params"),
        pytest.param("def run_epoch(x):\n    for y in x:\n        optim.step()\n", set(), id="loop"),
        pytest.param("def f_g(x):\n    optim.step()\nfor x in y:\n    f_g(x)\n", set(), id="loop of the same file"),
        pytest.param("def update(x):\n    optim.step()\n", set(), id="a name of much else"),
        pytest.param("def test_step():\n    optim.step()\n", set(), id="test"),
        pytest.param("def one_turn(env):\n    env.step(1)\n", set(), id="no optimizer"),
    ],
)
def test_functions_that_take_a_step(text: str, found: set[str]) -> None:
    assert stepping(text.encode()) == found


def test_loops_over_calls() -> None:
    names = ("optimize_parameters", "train_step")
    assert turning(BASE.encode(), names) == turning(LOOP.encode(), names) == {"optimize_parameters"}
    inner = "def one(model):\n    model.train_step()\nfor x in y:\n    one(x)\n"
    assert turning(inner.encode(), names) == {"train_step"}
    assert turning(b"def train_step(self):\n    super().train_step()\ntrain_step()\n", names) == set()


@pytest.mark.parametrize(
    ("text", "head"),
    [(BASE, "for data in shim.steps(self.loader):"), (LOOP, "        shim.sync()"), (OTHER, None)],
)
def test_loop_around_a_step_of_another_file(text: str, head: str | None, migrate: Callable[..., Outcome]) -> None:
    collector = Collector()
    collector.add(MODEL.encode(), "model.py")
    outcome = migrate(text, project=collector.facts())
    assert outcome.text is None if head is None else head in (outcome.text or "")
    assert migrate(text).text is None
    own = text.replace("raise NotImplementedError", "print(self)") + "def optimize_parameters(x):\n    print(x)\n"
    assert migrate(own, project=collector.facts()).text is None


def test_a_step_is_at_home_where_the_project_has_its_loop(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    options = Options(mode="check")
    rules = load_rules()
    alone = migrate([str(tmp_path)], rules, options)
    assert [f.code for file in alone.files for f in file.left] == ["TP701"]
    (tmp_path / "base.py").write_text(BASE)
    both = migrate([str(tmp_path)], rules, options)
    assert {Path(file.path).name: bool(file.after) for file in both.files} == {"base.py": True, "model.py": True}
    assert not [f for file in both.files for f in file.left]
    report = lint([str(tmp_path)], rules, LintOptions())
    assert [(Path(file.path).name, f.code) for file in report.files for f in file.left if f.code == "TP701"] == [
        ("base.py", "TP701")
    ]
