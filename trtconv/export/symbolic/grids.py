"""affine_grid with a size read from a shape."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import any_symbolic, arange


def affine_grid(func: Any, theta: Any, size: Any, align_corners: Any = None) -> Any:
    """The handler of torch.nn.functional.affine_grid for theta [N, 2, 3] and size [N, C, H, W]."""
    sizes = list(size)
    if len(sizes) != 4 or not any_symbolic(sizes):
        return NotImplemented
    xs = _centres(sizes[3], theta, bool(align_corners)).reshape(1, 1, -1, 1)
    ys = _centres(sizes[2], theta, bool(align_corners)).reshape(1, -1, 1, 1)
    columns = theta.transpose(1, 2).reshape(-1, 3, 1, 1, 2)
    return xs * columns[:, 0] + ys * columns[:, 1] + columns[:, 2]


def _centres(count: Any, like: Any, corners: bool) -> Any:
    """Where the pixels of an axis lie between -1 and 1: on the ends, or half a pixel inside."""
    import torch

    pixel_index = arange(count, like).to(like.dtype)
    total = count.to(like.dtype) if isinstance(count, torch.Tensor) else count
    if corners:
        return pixel_index * 2.0 / (total - 1) - 1.0
    return (pixel_index * 2.0 + 1.0) / total - 1.0
