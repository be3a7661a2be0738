"""Pooling and resizing whose windows follow a shape."""
