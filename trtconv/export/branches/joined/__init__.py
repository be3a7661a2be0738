"""Two graphs that were exported for two parts of a space, in one with an If."""
