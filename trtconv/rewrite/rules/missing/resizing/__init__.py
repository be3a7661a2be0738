"""Resizing that targets lack or compute in another way."""
