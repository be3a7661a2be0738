"""Resizing as products with matrices of filter weights, one for each axis: antialiased, or by a ratio of its own.

No TensorRT has ONNX's antialiased Resize. Besides, torch keeps a given scale factor for the filter, where Resize with
sizes takes the ratio of the sizes, which differs when the output size was rounded down.
"""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.resampling.windows import along_axis
from trtconv.export.symbolic.sizes import arange, is_symbolic, scalar

# The parameter of Keys' cubic that torch takes (aten/src/ATen/native/UpSample.h), and that where it antialiases.
CUBIC, ANTIALIASED_CUBIC = -0.75, -0.5


def resize_antialiased(x: Any, sizes: list[Any], steps: list[Any], mode: str) -> Any:
    """Resize the last axes of x to `sizes`; `steps` are input pixels per output pixel, numbers or symbolic."""
    for i, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        axis = i - len(sizes)
        x = along_axis(x, axis, _weights(x, x.shape[axis], size, step, mode))
    return x


def resize_linear(x: Any, axis: int, size: Any, step: Any) -> Any:
    """Linear interpolation of one axis without antialiasing; `step` is input pixels per output pixel, a scalar."""
    import torch

    length = x.shape[axis]
    # torch copies an axis that keeps its size, whatever the scale was.
    step = torch.where(scalar(length, x) == scalar(size, x), torch.ones_like(step), step)
    last = scalar(length, x) - 1.0
    source = (arange(size, x).to(torch.float32) + 0.5) * step - 0.5
    source = torch.minimum(source.clamp(min=0.0), last).unsqueeze(1)
    input_positions = arange(length, x).to(torch.float32).unsqueeze(0)
    return along_axis(x, axis, (1.0 - (input_positions - source).abs()).clamp(min=0.0).to(x.dtype))


def resize_cubic(x: Any, axis: int, size: Any, step: Any) -> Any:
    """Cubic interpolation of one axis without antialiasing, as `resize_linear`; beyond the edge lies its pixel.

    An axis that keeps its size is resampled like any other.
    """
    import torch

    length = x.shape[axis]
    last = scalar(length, x) - 1.0
    source = (arange(size, x).to(torch.float32) + 0.5) * step - 0.5
    below = torch.floor(source)
    input_positions = arange(length, x).to(torch.float32).unsqueeze(0)
    weights = torch.zeros((), dtype=torch.float32, device=x.device)
    for offset in (-1.0, 0.0, 1.0, 2.0):
        tap = below + offset
        coefficient = _cubic((source - tap).abs(), CUBIC)
        pixel = torch.minimum(tap.clamp(min=0.0), last).unsqueeze(1)
        weights = weights + torch.where(input_positions == pixel, coefficient.unsqueeze(1), 0.0)
    return along_axis(x, axis, weights.to(x.dtype))


def _weights(x: Any, length: Any, size: Any, step: Any, mode: str) -> Any:
    """[size, length]: the filter around each output's centre, rows summing to one."""
    import torch

    if is_symbolic(step):
        step = scalar(length, x) / scalar(size, x)
        stretch = step.clamp(min=1.0)
    else:
        stretch = max(step, 1.0)
    centre = (arange(size, x).to(torch.float32) + 0.5).unsqueeze(1) * step
    input_positions = (arange(length, x).to(torch.float32) + 0.5).unsqueeze(0)
    distance = ((input_positions - centre) / stretch).abs()
    weights = (1.0 - distance).clamp(min=0.0) if mode == "bilinear" else _cubic(distance, ANTIALIASED_CUBIC)
    return (weights / weights.sum(1, keepdim=True)).to(x.dtype)


def _cubic(d: Any, a: float) -> Any:
    """Keys' cubic at the distance d of a tap."""
    import torch

    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d < 1, near, torch.where(d < 2, far, torch.zeros_like(d)))
