"""Metrics: from a network's outputs and the labels to one number, of which more is better."""
