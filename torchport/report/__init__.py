"""What a run found and did -> text, unified diff, JSON. Pure functions: they print nothing."""
