"""The rule catalogue: reads ``rules/*.toml`` into frozen :class:`torchport.model.Rule` objects."""

from __future__ import annotations

from torchport.catalog.load import CatalogError, find_rule, for_target, load_rules, select_rules, suggest

__all__ = ["CatalogError", "find_rule", "for_target", "load_rules", "select_rules", "suggest"]
