"""Whole networks of public packages, with random weights: `python -m networks [FILTER]` converts them and writes the
table in docs/networks.md."""
