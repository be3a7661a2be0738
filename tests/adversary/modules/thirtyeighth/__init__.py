"""Round 38."""
