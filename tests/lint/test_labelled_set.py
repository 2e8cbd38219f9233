"""The labelled set: labels are what was measured, and the linter keeps its bars on it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "labelled"))

from score import PRECISION, RECALL, judged
from snippets import Label, load_labels, load_snippets

SNIPPETS = load_snippets()
LABELS = load_labels()


def test_every_snippet_has_a_label_and_every_label_a_snippet() -> None:
    assert {snippet.name for snippet in SNIPPETS} == set(LABELS)


def test_the_set_is_large_and_about_half_of_it_is_innocent() -> None:
    innocent = sum(not LABELS[snippet.name].harm for snippet in SNIPPETS)
    assert len(SNIPPETS) >= 150
    assert 0.4 <= innocent / len(SNIPPETS) <= 0.6


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_marks_are_where_harm_was_measured(snippet: object) -> None:
    assert bool(snippet.marks) == bool(LABELS[snippet.name].harm), LABELS[snippet.name]  # type: ignore[attr-defined]


def test_bars() -> None:
    score = judged(SNIPPETS, LABELS)
    assert score.precision >= PRECISION, score.remarks
    assert score.recall >= RECALL, score.remarks
    assert score.line_precision >= PRECISION, score.remarks
    assert score.line_recall >= RECALL, score.remarks


@pytest.mark.parametrize(
    ("label", "harm"),
    [
        (Label("x", 8, 1, 0, 0.12, 0.0), ()),
        (Label("x", 8, 2, 0, 0.0, 0.0), ("recompiles",)),
        (Label("x", 8, 0, 1, 0.0, 0.0), ("recompiles",)),
        (Label("x", 8, 0, 0, 1.0, 1.0), ("reads", "host-operator")),
        (Label("x", 0, 0, 0, 0.0, 0.0, fault="RuntimeError: no"), ("fails",)),
        (Label("x", 8, 0, 0, 0.0, 0.0, fault="differs: other values"), ("wrong",)),
    ],
)
def test_what_counts_as_harm(label: Label, harm: tuple[str, ...]) -> None:
    assert label.harm == harm
