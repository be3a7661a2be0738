"""Tensor operators that targets lack."""
