"""A run as JSON, for other programs. The keys only ever grow within one ``version``."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from torchport import __version__
from torchport.model import FileResult, Finding
from torchport.report.diff import unified
from torchport.report.run import Run
from torchport.report.text import REVIEWS

VERSION = 1
_FINDING = (
    *("code", "name", "line", "column", "end_line", "end_column", "message", "effect", "support", "safety", "review"),
    *("old", "new", "reason"),
)


def render(run: Run) -> str:
    """One JSON object. Lines and columns are those of the files before the run, columns counted from 1."""
    return json.dumps(_run(run), indent=2)


def _run(run: Run) -> dict[str, Any]:
    edits = [finding for _, finding in run.edits()]
    reviews = Counter(finding.review for finding in edits)
    return {
        "version": VERSION,
        "torchport": __version__,
        "target": run.target,
        "mode": run.mode,
        "exit_status": run.exit_status,
        "refused": run.refusal or None,
        "summary": {
            "examined": run.examined,
            "changed": len(run.changed()),
            "edits": len(edits),
            "left": sum(1 for _ in run.left()),
            "notes": sum(1 for _ in run.remarks()),
            "problems": sum(1 for _ in run.problems()),
            "silenced": run.silenced(),
            "rules": dict(sorted(Counter(finding.code for finding in edits).items())),
            "review": {review: reviews[review] for review in REVIEWS},
        },
        "files": [_file(file, run) for file in run.files],
        "notes": run.notes,
    }


def _file(file: FileResult, run: Run) -> dict[str, Any]:
    status = "unchanged"
    if file.after is not None:
        status = "rewritten" if run.mode == "write" and not run.refusal else "would be rewritten"
    entry: dict[str, Any] = {
        "path": file.path,
        "status": status,
        "edits": [_finding(finding) for finding in file.applied],
        "left": [_finding(finding) for finding in file.left if finding.left_for_a_person],
        "notes": [_finding(finding) for finding in file.left if not finding.left_for_a_person],
        "problems": [{"message": p.message, "line": p.line or None, "fatal": p.fatal} for p in file.problems],
    }
    if run.mode == "diff" and file.after is not None:
        entry["diff"] = unified(file.path, file.before, file.after).decode("utf-8", "surrogateescape")
    return entry


def _finding(finding: Finding) -> dict[str, Any]:
    return {key: getattr(finding, key) for key in _FINDING}
