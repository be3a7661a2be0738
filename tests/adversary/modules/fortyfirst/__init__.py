"""Round 41."""
