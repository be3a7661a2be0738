"""affine_grid and linspace with a size read from a shape."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import any_symbolic, arange, is_symbolic, maximum


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


def linspace(func: Any, start: Any, end: Any, steps: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """The handler of torch.linspace, whose `steps` torch.export takes for a number.

    As torch's kernel computes it: from the start in the first half, and from the end in the second, so that both ends
    are exact (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp); of one step it is the start.
    """
    import torch

    kind = dtype or torch.get_default_dtype()
    if not isinstance(steps, torch.SymInt) or not is_symbolic(steps) or not kind.is_floating_point:
        return NotImplemented
    one = torch.ones((), dtype=kind, device=device)
    first, last = one * start, one * end
    step = (last - first) / (one * maximum(steps - 1, 1))
    index = arange(steps, one)
    rising, falling = first + step * index.to(kind), last - step * (steps - 1 - index).to(kind)
    return torch.where(index < maximum(steps // 2, 1), rising, falling)
