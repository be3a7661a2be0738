"""Pooling, resizing and sampling that targets lack."""
