"""Handlers of functions of numbers, element by element or over axes."""
