"""Selections of a size that the values decide, computed at fixed sizes: `--nms topk`."""
