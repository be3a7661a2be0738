"""Round 40."""
