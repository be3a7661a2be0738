"""Round 35: what ended equal."""
