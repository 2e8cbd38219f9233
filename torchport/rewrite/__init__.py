"""Rules and facts to findings and edits, by the places of ``ast`` in the text."""

from __future__ import annotations

from torchport.rewrite.migrate import Migrator, Outcome

__all__ = ["Migrator", "Outcome"]
