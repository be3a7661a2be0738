"""Round 36."""
