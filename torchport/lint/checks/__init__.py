"""The checks that only ``lint`` runs, by the name that a rule gives as its ``transformer``."""

from __future__ import annotations

from torchport.rewrite.context import Transformer

CHECKS: dict[str, Transformer] = {}
