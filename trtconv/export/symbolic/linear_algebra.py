"""Small inverses, determinants and Fourier transforms, which neither exporter or no TensorRT has."""

from __future__ import annotations

import math
from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic

LARGEST = 32


def inverse(func: Any, x: Any, **_: Any) -> Any:
    """The inverse of [..., n, n] for a fixed n up to LARGEST, by Gauss-Jordan elimination with row pivots."""
    import torch

    size = x.shape[-1]
    if is_symbolic(size) or size > LARGEST:
        return NotImplemented
    unit = torch.eye(size, dtype=x.dtype, device=x.device).expand(x.shape)
    return _eliminate(torch.cat([x, unit], -1), size)[0][..., size:]


def solve(func: Any, a: Any, b: Any, *, left: bool = True) -> Any:
    """The solution of a @ x = b for a fixed size, b [..., n, k]."""
    import torch

    size = a.shape[-1]
    if is_symbolic(size) or size > LARGEST or not left or b.dim() != a.dim():
        return NotImplemented
    return _eliminate(torch.cat([a, b], -1), size)[0][..., size:]


def determinant(func: Any, x: Any) -> Any:
    """The determinant of [..., n, n] for a fixed n up to LARGEST."""
    size = x.shape[-1]
    return NotImplemented if is_symbolic(size) or size > LARGEST else _eliminate(x, size)[1]


def _eliminate(x: Any, size: int) -> tuple[Any, Any]:
    """Reduce the first `size` columns of [..., size, m] to the unit matrix; also their determinant."""
    import torch

    rows = torch.arange(size, device=x.device)
    product = None
    for k in range(size):
        column = x[..., :, k].abs()
        # Rows above the pivot are done; -1 keeps them out of the search.
        best = torch.where(rows >= k, column, -torch.ones_like(column)).argmax(-1, keepdim=True)
        chosen = (rows == best).to(x.dtype).unsqueeze(-1)
        here = (rows == k).to(x.dtype).unsqueeze(-1)
        pivot_row, row = (chosen * x).sum(-2, keepdim=True), x[..., k : k + 1, :]
        x = x + (here - chosen) * (pivot_row - row)
        pivot = pivot_row[..., k : k + 1]
        sign = torch.where(best == k, 1.0, -1.0).to(x.dtype)
        step = (pivot.squeeze(-1) * sign).squeeze(-1)
        product = step if product is None else product * step
        scaled = pivot_row / pivot
        x = x - (x[..., :, k : k + 1] - here) * scaled
    return x, product


def rfft(func: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """The Fourier transform of real values along an axis of fixed length, as two products."""
    import torch

    length = x.shape[dim]
    if n is not None or norm not in (None, "backward") or is_symbolic(length) or x.dtype != torch.float32:
        return NotImplemented
    place = torch.arange(length, dtype=torch.float64)
    # The angle is a multiple of the full turn over `length`; the remainder keeps it small and exact.
    turns = torch.remainder(place[:, None] * place[None, : length // 2 + 1], length)
    angle = turns * (2.0 * math.pi / length)
    last = x.transpose(dim, -1)
    real = last @ torch.cos(angle).to(x.dtype).to(x.device)
    imaginary = last @ (-torch.sin(angle)).to(x.dtype).to(x.device)
    return torch.complex(real, imaginary).transpose(dim, -1)
