"""Launches of the plugins' kernels for engines that carry the kernels themselves."""
