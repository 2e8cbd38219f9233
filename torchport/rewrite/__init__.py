"""Rules and facts to findings and edits. Imports ``ast``; LibCST only when something is rewritten."""

from __future__ import annotations

from torchport.rewrite.migrate import Migrator, Outcome

__all__ = ["Migrator", "Outcome"]
