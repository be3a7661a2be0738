"""Operators that came after the target."""
