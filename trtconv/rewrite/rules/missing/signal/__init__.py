"""Transforms of signals, which no target has."""
