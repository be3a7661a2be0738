"""Running an engine and timing it."""
