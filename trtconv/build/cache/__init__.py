"""Engines that were built before, by what they were built from."""
