"""A sample of the labelled set is measured again: the labels are what PyTorch/XLA does, not what somebody thinks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "labelled"))

from run_snippets import measured
from snippets import load_labels, load_snippets

SAMPLE = (
    "item-every-step",
    "item-after-the-loop",
    "if-isnan",
    "nan-flag-at-the-end",
    "mask-write-of-a-scalar",
    "masked-fill",
    "python-index",
    "factor-of-the-step",
    "ragged-last-batch",
    "op-grid-sample",
    "op-bilinear",
    "bool-cumsum",
    "inference-mode",
)
"""Each kind of harm, and what looks like it and does none."""


@pytest.mark.skipif(os.environ.get("TORCHPORT_TEST_BACKEND") != "xla", reason="the labels are those of PyTorch/XLA")
def test_labels_hold() -> None:
    labels = load_labels()
    snippets = [snippet for snippet in load_snippets() if snippet.name in SAMPLE]
    assert len(snippets) == len(SAMPLE)
    harm = {label.name: label.harm for label in measured(snippets)}
    assert harm == {name: labels[name].harm for name in SAMPLE}
