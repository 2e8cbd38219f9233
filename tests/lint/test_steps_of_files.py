"""What runs in a step, as far as the name of a file and the other files of the project tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchport.report.findings import Report

SPECTRA = """
import torch
def spectrogram(y):
    y = torch.abs(y)
    if torch.max(y) > 1.0:
        print("loud")
    return torch.stft(y, 512)
"""
LOADS = """
from torch.utils.data import Dataset
from audio import spectrogram
class Clips(Dataset):
    def __getitem__(self, i):
        return spectrogram(self.clips[i])
"""
TRAINS = "from audio import spectrogram\ndef loss(x):\n    return spectrogram(x).mean()\n"
CHECKS = """
import torch
def compared(model, x):
    out = torch.relu(model(x))
    if torch.isnan(out).any():
        raise ValueError
    return out
"""
TEST = "def test_it():\n    assert compared\n"
TRAINING = """
def test_it(model, loader, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def places(report: Report) -> list[tuple[str, int, str]]:
    return [(path, f.line, f.code) for path, f in report.findings() if f.code[:3] in ("TP7", "TP8")]


def test_what_data_sets_of_other_files_call_runs_on_the_host(tmp_path: Path, run: Callable[..., Report]) -> None:
    (tmp_path / "audio.py").write_text(SPECTRA)
    (tmp_path / "train.py").write_text(TRAINS)
    assert places(run()) == [("audio.py", 5, "TP713"), ("audio.py", 7, "TP851")]
    (tmp_path / "data.py").write_text(LOADS)
    assert places(run()) == []
    (tmp_path / "train.py").write_text(TRAINS + "    loss(x).backward()\n")
    assert places(run()) == [("audio.py", 5, "TP713"), ("audio.py", 7, "TP851")]


def test_nothing_is_in_every_step_of_tests_that_do_not_train(tmp_path: Path, run: Callable[..., Report]) -> None:
    (tmp_path / "compare.py").write_text(CHECKS)
    (tmp_path / "test_model.py").write_text(CHECKS + TEST)
    (tmp_path / "test_net.py").write_text(CHECKS)
    assert places(run()) == [("compare.py", 5, "TP713"), ("test_net.py", 5, "TP713")]


def test_a_test_that_trains_is_looked_at(tmp_path: Path, run: Callable[..., Report]) -> None:
    (tmp_path / "test_model.py").write_text(TRAINING)
    assert places(run()) == [("test_model.py", 3, "TP701"), ("test_model.py", 7, "TP711")]
