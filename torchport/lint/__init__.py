"""What a compiled back end handles badly: found on the same walk as what is migrated."""
