"""Measurements of the proof: what a check would have seen."""
