"""Fourier transforms as products with matrices of sines and cosines, for TensorRT has no DFT.

That is quadratic in the length, which for the lengths of spectral layers (tens to a few hundred) is a small product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.complex_numbers.parts import along
from trtconv.export.symbolic.order import roll
from trtconv.export.symbolic.sizes import arange, floor_ratio, is_symbolic, same_size, scalar

NORMS = (None, "backward", "ortho", "forward")


def _waves(length: Any, rows: Any, columns: Any, like: Any, sign: float = 1.0) -> tuple[Any, Any]:
    """Cosines, and sines times `sign`, of 2 pi j k / length for j in rows, k in columns.

    The product j k is reduced by whole turns as an integer, so that the angle keeps its digits. At whole and half turns
    the sine is +0: the spectrum of a real signal is real there, and its phase 0 or pi, never -pi.
    """
    import torch

    product = arange(rows, like).unsqueeze(1) * arange(columns, like).unsqueeze(0)
    turn = (product - floor_ratio(product, length) * length).to(torch.float32)
    step = 2.0 * math.pi / (scalar(length, like) if is_symbolic(length) else length)
    angle = turn * step
    real = torch.logical_or(turn == 0, turn * 2 == length)
    return torch.cos(angle), torch.where(real, 0.0, torch.sin(angle) * sign)


def _scale(length: Any, like: Any, norm: str | None, inverse: bool) -> Any:
    """What the sums are divided by."""
    import torch

    power = {None: 1.0, "backward": 1.0, "ortho": 0.5, "forward": 0.0}[norm]
    power = power if inverse else 1.0 - power if norm in ("ortho", "forward") else 0.0
    if power == 0.0:
        return 1.0
    size = scalar(length, like) if is_symbolic(length) else length
    if power == 1.0:
        return size
    return torch.sqrt(size) if isinstance(size, torch.Tensor) else math.sqrt(size)


def _parts(x: Any) -> tuple[Any, Any]:
    """Real and imaginary part; None for the latter when x is real."""
    import torch

    if not x.dtype.is_complex:
        return x, None
    both = torch.view_as_real(x)
    return both[..., 0], both[..., 1]


def _transformed(x: Any, dim: int, sign: float, count: Any, norm: str | None) -> Any:
    """The transform of one axis, `count` frequencies of it."""
    import torch

    axis = dim % x.dim() - x.dim()
    length = x.shape[axis]
    if axis == -2:
        # The matrices on the left, and no transposes: two of them around a product are what RTX's Myelin fails at.
        real, imaginary = _parts(x)
        cosine, sine = _waves(length, count, length, real, sign)

        def product(wave: Any, part: Any) -> Any:
            return wave @ part
    else:
        real, imaginary = _parts(x.transpose(axis, -1))
        cosine, sine = _waves(length, length, count, real, sign)

        def product(wave: Any, part: Any) -> Any:
            return (part @ wave).transpose(axis, -1)

    spectrum = [product(cosine, real), product(sine, real)]
    if imaginary is not None:
        spectrum = [spectrum[0] - product(sine, imaginary), spectrum[1] + product(cosine, imaginary)]
    scale = _scale(length, real, norm, sign > 0)
    return torch.complex(*(part / scale for part in spectrum))


def _of_length(x: Any, length: Any, dim: int) -> Any:
    """x with an axis cut to a length, or filled up with zeros; as it is without one, or with torch's -1."""
    import torch

    if length is None or (not is_symbolic(length) and length == -1):
        return x
    if x.dtype.is_complex:
        return torch.complex(*(_of_length(part, length, dim) for part in _parts(x)))
    if not is_symbolic(length) and not is_symbolic(x.shape[dim]):
        lacking: Any = max(length - x.shape[dim], 0)
    else:
        # Which of the two is longer is not asked.
        lacking = length
    shape = list(x.shape)
    shape[dim] = lacking
    return torch.cat([x, torch.zeros(shape, dtype=x.dtype, device=x.device)], dim).narrow(dim, 0, length)


def _of_lengths(x: Any, lengths: Any, axes: Any) -> Any:
    for axis, length in zip(axes, lengths or (), strict=False):
        x = _of_length(x, length, axis)
    return x


def full(sign: float) -> Callable[..., Any]:
    """The handler of fft (sign -1) and ifft (sign 1)."""

    def handle(func: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        if not _takes(x, norm):
            return NotImplemented
        x = _of_length(x, n, dim)
        return _transformed(x, dim, sign, x.shape[dim], norm)

    return handle


def full2(sign: float) -> Callable[..., Any]:
    """The handler of fft2 and ifft2."""

    def handle(func: Any, x: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Any:
        if not _takes(x, norm):
            return NotImplemented
        x = _of_lengths(x, s, dim)
        for axis in dim:
            x = _transformed(x, axis, sign, x.shape[axis], norm)
        return x

    return handle


def rfft(func: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """The handler of rfft: the first half of the frequencies of real values."""
    if not _takes(x, norm) or x.dtype.is_complex:
        return NotImplemented
    x = _of_length(x, n, dim)
    return _transformed(x, dim, -1.0, x.shape[dim] // 2 + 1, norm)


def rfft2(func: Any, x: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Any:
    """The handler of rfft2."""
    if not _takes(x, norm) or x.dtype.is_complex:
        return NotImplemented
    x = _of_lengths(x, s, dim)
    x = _transformed(x, dim[-1], -1.0, x.shape[dim[-1]] // 2 + 1, norm)
    for axis in dim[:-1]:
        x = _transformed(x, axis, -1.0, x.shape[axis], norm)
    return x


def irfft(func: Any, x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """The handler of irfft: real values of length n (default 2 (m - 1)) from m = n // 2 + 1 frequencies."""
    import torch

    if not _takes(x, norm):
        return NotImplemented
    axis = dim % x.dim() - x.dim()
    if n is not None and not same_size(n // 2 + 1, x.shape[axis]):
        # A shorter signal has fewer frequencies, and the others are cut off.
        x = _of_length(x, n // 2 + 1, axis)
    bins = x.shape[axis]
    length = 2 * (bins - 1) if n is None else n
    real, imaginary = _parts(x.transpose(axis, -1))
    cosine, sine = _waves(length, bins, length, real)
    bin_index = arange(bins, real)
    # All frequencies but 0 and n / 2 stand for two: their own and its mirror.
    single = torch.logical_or(bin_index == 0, bin_index * 2 == length)
    twice = torch.where(single, 1.0, 2.0).to(real.dtype)
    signal = (real * twice) @ cosine
    if imaginary is not None:
        signal = signal - (imaginary * twice) @ sine
    return (signal / _scale(length, real, norm, True)).transpose(axis, -1)


def irfft2(func: Any, x: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Any:
    """The handler of irfft2."""
    if not _takes(x, norm):
        return NotImplemented
    x = _of_lengths(x, s, dim[:-1])
    for axis in dim[:-1]:
        x = _transformed(x, axis, 1.0, x.shape[axis], norm)
    return irfft(None, x, None if s is None else s[-1], dim[-1], norm)


def over_axes(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of fftn, ifftn, rfftn or irfftn from that over two axes: over all, or the last of which `s` says."""

    def handle(func: Any, x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        if dim is None:
            dim = range(-(x.dim() if s is None else len(s)), 0)
        axes = (dim,) if isinstance(dim, int) else tuple(dim)
        return handler(func, x, s, axes, norm)

    return handle


def shift(inverse: bool) -> Callable[..., Any]:
    """The handler of fftshift and ifftshift."""

    def handle(func: Any, x: Any, dim: Any = None) -> Any:
        import torch

        axes = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        moves = [-(x.shape[a] // 2) if inverse else x.shape[a] // 2 for a in axes]
        return along(roll)(torch.roll, x, moves, axes)

    return handle


def _takes(x: Any, norm: Any) -> bool:
    import torch

    return norm in NORMS and x.dtype in (torch.float32, torch.complex64)
