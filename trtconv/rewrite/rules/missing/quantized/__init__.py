"""Quantised operators that no target has, in floats."""
