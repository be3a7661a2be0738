"""Text that somebody else may have written: read with bounds, shown without harm."""
