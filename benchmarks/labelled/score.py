"""Precision and recall of the linter on the labelled set: ``python benchmarks/labelled/score.py``. Needs no torch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from snippets import Label, Snippet, load_labels, load_snippets

from torchport.catalog import load_rules
from torchport.lint.linter import Linter
from torchport.project.source import Source

PRECISION, RECALL = 0.97, 0.92
"""The bars."""


@dataclass
class Score:
    """What was found of what was measured to do harm: by snippet, and by line and rule."""

    found: int = 0
    false: int = 0
    missed: int = 0
    harmless: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Of the snippets in which something is found, those that do harm."""
        return self.found / max(1, self.found + self.false)

    @property
    def recall(self) -> float:
        """Of the snippets that do harm, those in which it is found."""
        return self.found / max(1, self.found + self.missed)

    @property
    def line_precision(self) -> float:
        """Of the findings, those on a line that is marked for this rule."""
        return self.lines["found"] / max(1, self.lines["found"] + self.lines["false"])

    @property
    def line_recall(self) -> float:
        """Of the marked lines, those that are found by the rule that is named there."""
        return self.lines["found"] / max(1, self.lines["found"] + self.lines["missed"])


def findings(linter: Linter, snippet: Snippet) -> set[tuple[int, str]]:
    """Line and rule of everything that the linter says for certain."""
    outcome = linter(Source(f"{snippet.name}.py", snippet.source, "utf-8", False))
    assert not outcome.problems, f"{snippet.name}: {outcome.problems}"
    return {(f.line, f.code) for f in outcome.left if f.effect != "none" and not f.perhaps}


def judged(snippets: list[Snippet], labels: dict[str, Label]) -> Score:
    """The score of the rules that lint alone runs, for PyTorch/XLA, on which the snippets were measured."""
    linter = Linter(tuple(rule for rule in load_rules() if rule.lint_only), "xla")
    score = Score()
    for snippet in snippets:
        found = findings(linter, snippet)
        harm = labels[snippet.name].harm
        score.harmless += not harm
        score.found += bool(found and harm)
        if found and not harm:
            score.false += 1
            score.remarks.append(f"{snippet.name}: found {_listed(found)}, measured no harm")
        if harm and not found:
            score.missed += 1
            score.remarks.append(f"{snippet.name}: found nothing, measured {', '.join(harm)}")
        marked = {(line, code) for line, codes in snippet.marks.items() for code in codes}
        score.lines += Counter(found=len(found & marked), false=len(found - marked), missed=len(marked - found))
    return score


def _listed(found: set[tuple[int, str]]) -> str:
    return ", ".join(f"{code} in line {line}" for line, code in sorted(found))


def lines(score: Score, count: int) -> Iterator[str]:
    """The score as text."""
    yield f"{count} snippets, {count - score.harmless} measured to do harm, {score.harmless} not"
    yield f"bars: precision {PRECISION}, recall {RECALL}"
    yield f"by snippet:       precision {score.precision:.3f}, recall {score.recall:.3f}"
    yield f"by line and rule: precision {score.line_precision:.3f}, recall {score.line_recall:.3f}"
    yield from score.remarks


def main() -> int:
    """Exit status: 0 where both bars hold, 1 where not."""
    snippets = load_snippets()
    score = judged(snippets, load_labels())
    print("\n".join(lines(score, len(snippets))))
    return 0 if score.precision >= PRECISION and score.recall >= RECALL else 1


if __name__ == "__main__":
    sys.exit(main())
