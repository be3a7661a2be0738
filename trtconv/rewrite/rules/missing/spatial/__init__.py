"""Pooling, sampling and padding of images that targets lack."""
