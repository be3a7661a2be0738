"""Tensor operators that came after the target."""
