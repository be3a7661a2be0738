"""Quantising a graph: which nodes read quantised values, with which scales, and what was left alone and why."""
