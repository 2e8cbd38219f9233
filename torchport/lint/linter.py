"""One source through all rules: the same walk as ``migrate``, with findings at its end in place of a new text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchport.analysis.project import ProjectFacts
from torchport.lint.checks import CHECKS
from torchport.model import Rule, Target
from torchport.project.config import EVERYWHERE, FileRules
from torchport.rewrite import Migrator, Outcome

if TYPE_CHECKING:
    from torchport.catalog.prefilter import Prefilter
    from torchport.project.source import Source


class Linter:
    """Finds with all rules; with ``fix`` it first applies what the rules that lint alone runs can mend.

    What ``migrate`` rewrites is reported and stays: half of it in the name of a linter would be half a migration.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...],
        target: Target,
        *,
        fix: bool = False,
        unsafe: bool = False,
        project: ProjectFacts | None = None,
        off: FileRules = EVERYWHERE,
        every: tuple[Rule, ...] = (),
        triggers: Prefilter | None = None,
    ) -> None:
        def migrator(rules: tuple[Rule, ...], every: tuple[Rule, ...], triggers: Prefilter | None = None) -> Migrator:
            return Migrator(
                rules, target, unsafe=unsafe, project=project, checks=CHECKS, off=off, every=every, triggers=triggers
            )

        self.finder = migrator(rules, every, triggers)
        own = tuple(rule for rule in rules if rule.lint_only)
        self.fixer = migrator(own, tuple(rule for rule in every if rule.lint_only)) if fix and own else None

    def find(self, source: Source) -> Outcome:
        """All findings of the text as it is."""
        return self.finder.inspect(source)

    def __call__(self, source: Source) -> Outcome:
        """``left`` holds all findings of the text as it is afterwards, ``applied`` what was mended before."""
        if self.fixer is None:
            return self.find(source)
        fixed = self.fixer(source)
        if fixed.text is None:
            found = self.finder.inspect(source)
            return found._replace(problems=found.problems or fixed.problems)
        found = self.finder.inspect(source._replace(text=fixed.text))
        return Outcome(fixed.applied, found.left, fixed.text, found.problems, found.silenced)
