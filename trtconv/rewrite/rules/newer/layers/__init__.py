"""Norms, activations and attention that came after the target."""
