"""affine_grid, linspace and triangles with a size read from a shape, and differences between the places of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from trtconv.export.symbolic.sizes import any_symbolic, arange, is_symbolic, maximum, minimum, scalar


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
        # The only pixel of an axis lies in the middle.
        return pixel_index * 2.0 / maximum(total - 1, 1) - minimum(total - 1, 1)
    return (pixel_index * 2.0 + 1.0) / total - 1.0


def arange_of_mixed(func: Any, *bounds: Any, dtype: Any = None, **named: Any) -> Any:
    """`torch.arange(-2, 3.0)`: the exporters write whole numbers where the first bound is one.

    Of `torch.arange(0, 0.1 * t, 0.1)` they count the steps in FP32, and torch in FP64.
    """
    import torch

    if any(isinstance(b, (float, torch.SymFloat)) for b in bounds) and _are_traced(bounds):
        return _steps(bounds, dtype, named)
    plain = all(isinstance(b, (int, float)) and not isinstance(b, bool) for b in bounds)
    if dtype is not None or not plain or len({type(b) for b in bounds}) < 2:
        return NotImplemented
    return func(*(float(b) for b in bounds), **named)


def _are_traced(bounds: Any) -> bool:
    import torch

    return any(isinstance(b, (torch.SymInt, torch.SymFloat)) and is_symbolic(b) for b in bounds)


def _steps(bounds: Any, dtype: Any, named: Any) -> Any:
    """`start + step * i` for as many whole i as aten's arange counts: `ceil((end - start) / step)`."""
    import torch

    start, end, step = (bounds if len(bounds) == 3 else (*bounds, 1) if len(bounds) == 2 else (0, *bounds, 1))
    kind = dtype or torch.get_default_dtype()
    if not set(named) <= {"device"} or not kind.is_floating_point or (isinstance(step, (int, float)) and step == 0):
        return NotImplemented
    index = torch.arange(maximum(math.ceil((end - start) / step), 0), **named).to(kind)
    return index * step + start


def triangle(*, lower: bool) -> Callable[..., Any]:
    """The handler of `tril_indices` and `triu_indices` of a moving square and its diagonal: [2, count].

    Without the diagonal torch.export asks whether `k * (k - 1) / 2` is whole, and stays at one size.
    """

    def handle(
        func: Any, row: Any, col: Any, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
    ) -> Any:
        import torch

        if not is_symbolic(row) or (row is not col and not _are_one(row, col)):
            return NotImplemented
        rows = torch.arange(row, device=device)
        starts = torch.zeros_like(rows) if lower else (rows + offset).clamp(min=0)
        lengths = (rows + (1 + offset) if lower else row - starts).clamp(min=0)
        lengths = torch.minimum(lengths, torch.full_like(rows, row))
        ends = lengths.cumsum(0)
        positions = torch.arange(_elements(row, offset if lower else -offset), device=device)
        row_index = (positions.unsqueeze(-1) >= ends).sum(-1)
        columns = positions - (ends - lengths)[row_index] + starts[row_index]
        return torch.stack((row_index, columns)).to(dtype or torch.int64)

    return handle


def _elements(side: Any, beyond: int) -> Any:
    """How many elements a square has below its diagonal, and on `beyond` further ones than that."""
    if beyond <= 0:
        rest = maximum(side + beyond, 0)
        return rest * (rest + 1) // 2
    rest = maximum(side - 1 - beyond, 0)
    return side * side - rest * (rest + 1) // 2


def _are_one(first: Any, second: Any) -> bool:
    return is_symbolic(second) and bool(first.node.expr == second.node.expr)


def grid_sample(
    func: Any,
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """The nearest pixel of a reflected image: torch reflects and then rounds, ONNX's GridSample rounds first.

    Where a position half-way between two pixels lies outside the image, these are different pixels. So the pixel is
    computed here as torch does (aten/src/ATen/native/cpu/GridSamplerKernel.cpp), and the sampler gets its centre.
    """
    import torch

    if (mode, padding_mode) != ("nearest", "reflection") or align_corners:
        return NotImplemented
    centres = []
    for position, size in zip(grid.unbind(-1), reversed(input.shape[2:]), strict=True):
        length = scalar(size, grid).to(grid.dtype)
        # Edges of pixels: the image lies from 0 to its length, and is mirrored at both.
        from_edge = ((position + 1.0) * (length / 2.0)).abs()
        beyond = from_edge - torch.floor(from_edge / (2.0 * length)) * (2.0 * length)
        pixel = torch.round(torch.minimum(beyond, 2.0 * length - beyond) - 0.5)
        pixel = torch.minimum(pixel.clamp(min=0.0), length - 1.0)
        centres.append((2.0 * pixel + 1.0) / length - 1.0)
    return func(input, torch.stack(centres, -1), mode, "border", align_corners)


def eye(func: Any, n: Any, m: Any = None, *, dtype: Any = None, device: Any = None) -> Any:
    """The handler of torch.eye in bool with a moving size, [n, m]: ONNX Runtime has no EyeLike of that type."""
    import torch

    columns = n if m is None else m
    if dtype is not torch.bool or not any_symbolic([n, columns]):
        return NotImplemented
    zero = torch.zeros((), dtype=torch.int64, device=device)
    return arange(n, zero).unsqueeze(1) == arange(columns, zero)


def linspace(func: Any, start: Any, end: Any, steps: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """The handler of torch.linspace with a bound or a number of steps that is a size, [steps].

    As torch's kernel computes it: from the start in the first half, and from the end in the second, so that both ends
    are exact (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp); of one step it is the start. Compilers fuse the
    product and the sum, for CPUs and GPUs alike, and where places are cut to whole ones the last bit decides.
    """
    import torch

    kind = dtype or torch.get_default_dtype()
    if not any_symbolic([start, end, steps]) or not kind.is_floating_point:
        return NotImplemented
    one = torch.ones((), dtype=kind, device=device)
    first, last = one * start, one * end
    step = (last - first) / (one * maximum(steps - 1, 1))
    index = arange(steps, one)
    rising = _rounded_once(first, step, index.to(kind))
    falling = _rounded_once(last, -step, (steps - 1 - index).to(kind))
    return torch.where(index < maximum(steps // 2, 1), rising, falling)


def _rounded_once(start: Any, step: Any, index: Any) -> Any:
    """`start + step * index` as a fused operation gives it, for FP32 and whole indices below 4096; else rounded twice.

    The step is cut in two halves of twelve bits, whose products are exact (T. J. Dekker, A floating-point technique for
    extending the available precision, 1971), and the sum keeps its error (D. E. Knuth, The Art of Computer Programming,
    volume 2, 4.2.2). Checked against torch.linspace for all 39,601 pairs of `linspace(0, T - 1, S)` up to 200.
    """
    import torch

    if start.dtype != torch.float32:
        return start + step * index
    shifted = step * 4097.0
    high = torch.where(shifted.isfinite(), shifted - (shifted - step), step)
    product, rest = high * index, (step - high) * index
    total = start + product
    added = total - start
    return total + ((start - (total - added) + (product - added)) + rest)


def rfftfreq(func: Any, n: Any, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The handler of torch.fft.rfftfreq for n read from a shape: the bins' frequencies, [n // 2 + 1]."""
    return _frequencies(n, d, dtype, device, whole=False)


def fftfreq(func: Any, n: Any, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """The handler of torch.fft.fftfreq for n read from a shape: the bins' frequencies, [n], the negative ones last."""
    return _frequencies(n, d, dtype, device, whole=True)


def _frequencies(n: Any, d: float, dtype: Any, device: Any, *, whole: bool) -> Any:
    import torch

    kind = dtype or torch.get_default_dtype()
    if not is_symbolic(n) or not isinstance(d, (int, float)) or not kind.is_floating_point:
        return NotImplemented
    one = torch.ones((), dtype=kind, device=device)
    index = arange(n if whole else n // 2 + 1, one)
    if whole:
        index = torch.where(index < (n + 1) // 2, index, index - n)
    return index.to(kind) * (1.0 / (one * n * d))


def gradient(func: Any, x: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Central differences, of the first or second order at the edges, for places that are evenly spaced."""
    axes = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = [1.0 if spacing is None else spacing] * len(axes) if not isinstance(spacing, (list, tuple)) else spacing
    if not x.dtype.is_floating_point or len(steps) != len(axes) or not all(isinstance(s, (int, float)) for s in steps):
        return NotImplemented
    return tuple(_differences(x, axis, float(step), edge_order) for axis, step in zip(axes, steps, strict=True))


def trapezoid(func: Any, y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule, over places x or steps dx (1)."""
    if x is not None:
        return _trapezoids(y, x, dx, dim).sum(dim)
    # As torch computes it (aten/src/ATen/native/Integration.cpp): right of one value too, and NaN of an infinite end.
    ends = y.select(dim, 0) + y.select(dim, -1)
    return (y.sum(dim) - ends * 0.5) * (1.0 if dx is None else dx)


def cumulative_trapezoid(func: Any, y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The same up to each place but the first."""
    return _trapezoids(y, x, dx, dim).cumsum(dim)


def _trapezoids(y: Any, x: Any, dx: Any, dim: int) -> Any:
    count = y.shape[dim] - 1
    means = (y.narrow(dim, 1, count) + y.narrow(dim, 0, count)) * 0.5
    if x is None:
        return means * (1.0 if dx is None else dx)
    # Places of one axis lie along `dim`, whichever axis that is.
    axis = dim if x.dim() == y.dim() else -1
    steps = x.narrow(axis, 1, count) - x.narrow(axis, 0, count)
    if axis != dim:
        steps = steps.reshape([count if a == dim % y.dim() else 1 for a in range(y.dim())])
    return means * steps


def _differences(x: Any, axis: int, step: float, edge_order: int) -> Any:
    import torch

    length = x.shape[axis]

    def at(index: Any) -> Any:
        return x.narrow(axis, index, 1)

    if edge_order == 1:
        first, last = at(1) - at(0), at(length - 1) - at(length - 2)
    else:
        first = -1.5 * at(0) + 2.0 * at(1) - 0.5 * at(2)
        last = 1.5 * at(length - 1) - 2.0 * at(length - 2) + 0.5 * at(length - 3)
    inside = (x.narrow(axis, 2, length - 2) - x.narrow(axis, 0, length - 2)) * 0.5
    return torch.cat([first, inside, last], axis) / step


def unravel_index(func: Any, indices: Any, shape: Any) -> Any:
    """The places of flat indices in a tensor of a moving shape, one int64 tensor for each axis."""
    import torch

    sizes = list(shape) if isinstance(shape, Sequence) else [shape]
    if not any_symbolic(sizes):
        return NotImplemented
    flat, places = indices.to(torch.int64), []
    for size in sizes[::-1]:
        whole = torch.div(flat, size, rounding_mode="floor")
        places.append(flat - whole * size)
        flat = whole
    return tuple(places[::-1])
