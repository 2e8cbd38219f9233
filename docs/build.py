"""Write the pages that are made from data: ``python docs/build.py``; with ``--check`` only tell which are stale.

``docs/rules/`` comes from the rule catalogue, ``docs/shim.md`` from the table in ``torchport/shim/support.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from torchport.catalog import load_rules
from torchport.model import Rule
from torchport.report.rules import page
from torchport.shim import support

FOLDER = Path(__file__).parent
FAMILIES = {
    "TP0": "Comments for torchport",
    "TP1": "Devices",
    "TP2": "Mixed precision",
    "TP3": "Distributed training",
    "TP4": "Streams, events and graphs",
    "TP5": "Memory, random numbers and flags",
    "TP6": "Loading, checkpoints and compilation",
    "TP7": "Steps and host syncs",
    "TP8": "Dynamic shapes and recompilation",
    "TP9": "CUDA-only kernels and libraries",
}
GENERATED = "<!-- Made from rules/ by docs/build.py: change the rule, not this page. -->"
SHIM_GENERATED = "<!-- Made from torchport/shim/support.py by docs/build.py: change the table there, not this page. -->"
BACKENDS = {"cuda": "CUDA", "cpu": "CPU", "xla": "PyTorch/XLA", "tpu": "TorchTPU"}


def pages(rules: Sequence[Rule]) -> dict[str, str]:
    """Path in ``docs/`` to content: one page a rule, their index, and the table of the shim."""
    return {"rules/README.md": _text(index(rules)), "shim.md": _text(shim_page())} | {
        f"rules/{rule.code}.md": _text(chain((GENERATED, ""), page(rule))) for rule in rules
    }


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def index(rules: Sequence[Rule]) -> Iterator[str]:
    """The list of all rules, a table for each family."""
    yield from (GENERATED, "", "# Rules", "")
    yield "What happens on a TPU if nothing is done, and whether such code is rewritten. `torchport rules` prints this"
    yield "list, `torchport rule CODE` one page."
    for family, members in groupby(rules, key=lambda rule: rule.code[:3]):
        yield from ("", f"## {family}: {FAMILIES[family]}", "")
        yield from ("| code | name | finds | if nothing is done | rewrite |", "|---|---|---|---|---|")
        for rule in members:
            summary = rule.summary.replace("|", "\\|")
            yield f"| [{rule.code}]({rule.code}.md) | {rule.name} | {summary} | {rule.effect} | {rule.safety} |"


def shim_page() -> Iterator[str]:
    """What each name of the shim does on each back end."""
    yield from (SHIM_GENERATED, "", "# torchport.shim by back end", "")
    yield "Names and signatures are those of `torch.cuda`. How the back end is chosen, and how to use the shim, is in"
    yield from ("[its own page](../torchport/shim/README.md). A test runs every cell on every back end.", "")
    yield from (f"- *{level}*: {meaning}" for level, meaning in support.LEVELS.items())
    for group in support.GROUPS:
        yield from ("", f"## {group.title}", "")
        yield f"| names | what | {' | '.join(BACKENDS[name] for name in support.BACKENDS)} |"
        yield "|---" * (2 + len(support.BACKENDS)) + "|"
        for row in group.rows:
            cells = [getattr(row, name) for name in support.BACKENDS]
            yield f"| {', '.join(f'`{name}`' for name in row.names)} | {row.what} | {' | '.join(cells)} |"
    yield from ("", "## Only on CUDA", "", "These may be named everywhere. Called on another back end they raise a")
    yield from ("`CudaOnlyError` with this advice.", "", "| name | advice |", "|---|---|")
    yield from (f"| `{name}` | {advice} |" for name, advice in support.CUDA_ONLY.items())


def stale(wanted: dict[str, str]) -> list[str]:
    """Paths of pages that are missing, out of date, or of a rule that is gone."""
    pages = (*FOLDER.glob("rules/*.md"), *FOLDER.glob("shim.md"))
    present = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in pages}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def write(wanted: dict[str, str]) -> None:
    """Bring the folder up to date."""
    (FOLDER / "rules").mkdir(exist_ok=True)
    for name in stale(wanted):
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8", newline="\n")
        else:
            (FOLDER / name).unlink()


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 up to date, 1 stale pages with ``--check``."""
    wanted = pages(load_rules())
    if list(arguments) == ["--check"]:
        for name in stale(wanted):
            print(f"docs/{name} is stale: run `python docs/build.py`")
        return 1 if stale(wanted) else 0
    if arguments:
        print("usage: python docs/build.py [--check]", file=sys.stderr)
        return 2
    write(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
