"""Operators that no target has, or that a target computes wrongly."""
