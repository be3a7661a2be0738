"""Round 73."""
