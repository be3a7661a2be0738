"""Choices of elements that targets lack or make in another order."""
