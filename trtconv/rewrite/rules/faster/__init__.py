"""Forms that a target computes faster."""
