"""Sweeps under kills, and simulated at scale."""
