"""Round 72."""
