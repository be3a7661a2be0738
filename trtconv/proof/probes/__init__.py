"""Probes: sample points made because of the dtypes of the inputs and of what a graph decides."""
