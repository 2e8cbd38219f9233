"""Source to facts: what each name means, which texts are devices, which loops are steps. Read-only."""
