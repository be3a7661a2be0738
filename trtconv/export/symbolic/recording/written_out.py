"""Functions written out while a run is recorded: torch's own definitions take sizes for numbers, or lack a form."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from trtconv.export.symbolic import order
from trtconv.export.symbolic.sizes import any_symbolic, is_symbolic

Handler = Callable[..., Any]


def recorded(handler: Handler) -> Handler:
    """The handler for a recorded run; torch.export takes the function as it is."""

    @wraps(handler)
    def handle(func: Any, *args: Any, **named: Any) -> Any:
        import torch

        return handler(func, *args, **named) if torch.jit.is_tracing() else NotImplemented

    return handle


@recorded
def diff(func: Any, input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours, `n` times; of booleans whether they differ."""
    import torch

    x = torch.cat([part for part in (prepend, input, append) if part is not None], dim)
    for _ in range(n):
        later, earlier = x.narrow(dim, 1, x.shape[dim] - 1), x.narrow(dim, 0, x.shape[dim] - 1)
        x = torch.logical_xor(later, earlier) if x.dtype == torch.bool else later - earlier
    return x


@recorded
def movedim(func: Any, input: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other positions as a permutation; the exporter writes negative positions as they are."""
    rank = input.dim()
    sources = [axis % rank for axis in (source if isinstance(source, (tuple, list)) else (source,))]
    destinations = [axis % rank for axis in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    order: list[int | None] = [None] * rank
    for axis, position in zip(sources, destinations, strict=True):
        order[position] = axis
    rest = iter(axis for axis in range(rank) if axis not in sources)
    return input.permute([next(rest) if axis is None else axis for axis in order])


@recorded
def quantile(
    func: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """A quantile, of which the exporter keeps the sizes of the trace: NaN where one is, else as `nanquantile`."""
    import torch

    values = order.nanquantile(func, x, q, dim, keepdim, interpolation=interpolation)
    if values is NotImplemented:
        return NotImplemented
    missing = torch.isnan(x)
    return torch.where(missing.any() if dim is None else missing.any(dim, keepdim), math.nan, values)


@recorded
def unbind(func: Any, x: Any, dim: int = 0) -> Any:
    """The parts one by one: the exporter splits all of them off, at the size of the trace."""
    if not is_symbolic(x.shape[dim]):
        return NotImplemented
    return tuple(x.select(dim, i) for i in range(int(x.shape[dim])))


def _normal(x: Any, axes: list[int], eps: Any) -> Any:
    """x less its mean over the axes, over its deviation."""
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True) + eps).sqrt()


@recorded
def layer_norm(
    func: Any, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    """layer_norm over axes of which one has a size that moves, or with an epsilon that is made of one."""
    if not any_symbolic([*normalized_shape, eps]):
        return NotImplemented
    scaled = _normal(input, list(range(-len(normalized_shape), 0)), eps)
    scaled = scaled if weight is None else scaled * weight
    return scaled if bias is None else scaled + bias


@recorded
def group_norm(
    func: Any, input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    """group_norm with an epsilon that is made of a size."""
    if not is_symbolic(eps):
        return NotImplemented
    scaled = _normal(input.reshape(input.shape[0], num_groups, -1), [-1], eps).reshape(input.shape)
    by_channel = (-1, *(1,) * (input.dim() - 2))
    scaled = scaled if weight is None else scaled * weight.reshape(by_channel)
    return scaled if bias is None else scaled + bias.reshape(by_channel)


@recorded
def rms_norm(func: Any, input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """rms_norm, whose epsilon is that of the type where none is given."""
    import torch

    axes = list(range(-len(normalized_shape), 0))
    least = torch.finfo(input.dtype).eps if eps is None else eps
    scaled = input / (input.square().mean(axes, keepdim=True) + least).sqrt()
    return scaled if weight is None else scaled * weight


@recorded
def nansum(func: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of what is no NaN."""
    import torch

    if not input.dtype.is_floating_point:
        return NotImplemented
    present = torch.where(input.isnan(), torch.zeros_like(input), input)
    return present.sum(dtype=dtype) if dim is None else present.sum(dim, keepdim, dtype=dtype)


@recorded
def nanmean(func: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of what is no NaN; NaN where nothing else is."""
    import torch

    if not input.dtype.is_floating_point or dtype is not None:
        return NotImplemented
    axes = list(range(input.dim())) if dim is None else dim
    missing = input.isnan()
    total = torch.where(missing, torch.zeros_like(input), input).sum(axes, keepdim)
    return total / torch.where(missing, torch.zeros_like(input), torch.ones_like(input)).sum(axes, keepdim)


@recorded
def bilinear(func: Any, input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """x W y for each matrix W."""
    import torch

    product = torch.einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias


@recorded
def slice_scatter(
    func: Any, input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """A copy with the slice written."""
    written = input.clone()
    written[(*[slice(None)] * (dim % input.dim()), slice(start, end, step))] = src
    return written


@recorded
def dist(func: Any, input: Any, other: Any, p: Any = 2) -> Any:
    """The norm of the difference of all elements."""
    import torch

    return torch.linalg.vector_norm(input - other, p)


@recorded
def addmv(func: Any, input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta x + alpha A v."""
    return beta * input + alpha * (mat @ vec)


@recorded
def addbmm(func: Any, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta x + alpha times the sum of the products of a batch."""
    return beta * input + alpha * (batch1 @ batch2).sum(0)


@recorded
def diag_embed(func: Any, input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """A matrix with the last axis on its diagonal."""
    import torch

    if (offset, dim1, dim2) != (0, -2, -1):
        return NotImplemented
    index = torch.arange(input.shape[-1], device=input.device)
    return torch.where(index == index.unsqueeze(1), input.unsqueeze(-1), torch.zeros_like(input).unsqueeze(-1))


@recorded
def diag(func: Any, input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix."""
    return order.diagonal(func, input, diagonal) if input.dim() == 2 else NotImplemented


@recorded
def trace(func: Any, input: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    return order.diagonal(func, input).sum()


@recorded
def get_item(func: Any, x: Any, index: Any) -> Any:
    """`x[b, -1 - i]`: indices of several tensors that may count from the end, counted from the start.

    The exporter makes one index of them by multiplication, of -1 as well.
    """
    counted = _counted_from_the_start(x, index)
    return NotImplemented if counted is None else func(x, counted)


def set_item(otherwise: Handler) -> Handler:
    """`x[b, -1 - i] = value` likewise; else it is done `otherwise`."""

    def handle(func: Any, x: Any, index: Any, value: Any) -> Any:
        import torch

        counted = _counted_from_the_start(x, index) if torch.jit.is_tracing() else None
        return otherwise(func, x, index, value) if counted is None else func(x, counted, value)

    return handle


def _counted_from_the_start(x: Any, index: Any) -> tuple[Any, ...] | None:
    """The index without negative numbers; None where its tensors are fewer than two."""
    import torch

    parts = index if isinstance(index, tuple) else (index,)
    whole = [isinstance(p, torch.Tensor) and p.dtype in (torch.int64, torch.int32) and p.dim() > 0 for p in parts]
    if sum(whole) < 2:
        return None
    counts = [0 if p is None or p is Ellipsis else _axes_taken(p) for p in parts]
    axis, counted = 0, []
    for part, numbers, axes in zip(parts, whole, counts, strict=True):
        if numbers:
            part = torch.where(part < 0, part + x.shape[axis], part)
        counted.append(part)
        axis += x.dim() - sum(counts) if part is Ellipsis else axes
    return tuple(counted)


def _axes_taken(part: Any) -> int:
    import torch

    return part.dim() if isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8) else 1
