"""Order statistics and running extremes, written with sorting, comparisons and reductions."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from trtconv.export.symbolic.arithmetic.numerics import lerp
from trtconv.export.symbolic.sizes import any_symbolic, arange, floor_ratio, is_symbolic, minimum


class ValuesIndices(NamedTuple):
    """What torch returns from median, kthvalue and cummax."""

    values: Any
    indices: Any


def median(func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower median along an axis, or of all elements."""
    if dim is None:
        flat = x.reshape(-1)
        return flat.sort(0)[0].select(0, (flat.shape[0] - 1) // 2)
    return _ranked(x, (x.shape[dim] - 1) // 2, dim, keepdim)


def nanmedian(func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower median of what is no NaN, along an axis or of all elements; NaN where nothing else is."""
    import torch

    if dim is None:
        return nanmedian(func, x.reshape(-1), 0).values
    values, indices, count = _sort_numbers(x, dim)
    rank_index = torch.div(count - 1, 2, rounding_mode="floor").clamp(min=0)
    values, indices = values.gather(dim, rank_index), indices.gather(dim, rank_index)
    values = torch.where(count > 0, values, math.nan)
    return ValuesIndices(values, indices) if keepdim else ValuesIndices(values.squeeze(dim), indices.squeeze(dim))


def nanquantile(
    func: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """A quantile of what is no NaN, between the two ranks next to it, along an axis or of all elements."""
    import torch

    if not isinstance(q, float) or interpolation != "linear" or not x.dtype.is_floating_point:
        return NotImplemented
    if dim is None:
        flat = nanquantile(func, x.reshape(-1), q, 0)
        return flat.reshape([1] * x.dim()) if keepdim else flat
    values, _, count = _sort_numbers(x, dim)
    rank = (count - 1).clamp(min=0).to(x.dtype) * q
    below = torch.floor(rank)
    low, high = (values.gather(dim, r.to(torch.int64)) for r in (below, torch.ceil(rank)))
    between = torch.where(count > 0, lerp(None, low, high, rank - below), math.nan)
    return between if keepdim else between.squeeze(dim)


def _sort_numbers(x: Any, dim: int) -> tuple[Any, Any, Any]:
    """x sorted along an axis with NaN behind as infinities, the indices, and how many elements are no NaN."""
    import torch

    missing = x != x
    values, indices = torch.where(missing, math.inf, x).sort(dim)
    return values, indices, x.shape[dim] - missing.to(torch.int64).sum(dim, keepdim=True)


def kthvalue(func: Any, x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along an axis."""
    return _ranked(x, k - 1, dim, keepdim)


def _ranked(x: Any, rank_index: Any, dim: int, keepdim: bool) -> ValuesIndices:
    values, indices = x.sort(dim)
    if keepdim:
        values, indices = values.narrow(dim, rank_index, 1), indices.narrow(dim, rank_index, 1)
    else:
        # Not a slice and squeeze: of a size that moves, the TorchScript exporter writes an If with a branch for each
        # rank, which TensorRT 8.6 refuses.
        values, indices = values.select(dim, rank_index), indices.select(dim, rank_index)
    # As torch's own results, on which a `view` may follow.
    return ValuesIndices(values.contiguous(), indices.contiguous())


def cumprod(func: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    """Running products: for every place the product of what comes no later."""
    import torch

    if dtype is None and not (x.dtype.is_floating_point or x.dtype.is_complex):
        dtype = torch.int64
    last, earlier = _triangle(x if dtype is None else x.to(dtype), dim)
    ones = torch.ones((), dtype=last.dtype, device=x.device)
    # Whole numbers are multiplied in 64 bits.
    return torch.where(earlier, last.unsqueeze(-2), ones).prod(-1).to(last.dtype).transpose(dim, -1)


def cummax(func: Any, x: Any, dim: int) -> ValuesIndices:
    """Running maxima, with the place of the latest of equal ones."""
    return _running(x, dim, 1.0)


def cummin(func: Any, x: Any, dim: int) -> ValuesIndices:
    """Running minima, with the place of the latest of equal ones."""
    running_maxima = _running(-x, dim, -1.0)
    return ValuesIndices(-running_maxima.values, running_maxima.indices)


def _running(x: Any, dim: int, sign: float) -> ValuesIndices:
    import torch

    last, earlier = _triangle(x, dim)
    if x.dtype.is_floating_point:
        lowest = torch.full((), -math.inf, dtype=x.dtype, device=x.device)
    else:
        # Not the least number of its type, which TensorRT 8.6 has not in int64.
        lowest = last.amin(-1, keepdim=True).unsqueeze(-2)
    spread = torch.where(earlier, last.unsqueeze(-2), lowest)
    values = spread.amax(-1)
    hit = torch.logical_and(spread == values.unsqueeze(-1), earlier)
    places = arange(last.shape[-1], x)
    indices = torch.where(hit, places, torch.zeros_like(places)).amax(-1)
    return ValuesIndices(values.transpose(dim, -1), indices.transpose(dim, -1))


def logcumsumexp(func: Any, x: Any, dim: int) -> Any:
    """Running log-sum-exp, shifted by the running maximum."""
    import torch

    last, earlier = _triangle(x, dim)
    nothing = torch.full((), -math.inf, dtype=x.dtype, device=x.device)
    spread = torch.where(earlier, last.unsqueeze(-2), nothing)
    largest = spread.amax(-1, keepdim=True)
    # The difference of two infinities would be NaN.
    top = torch.where(largest.abs() == math.inf, torch.zeros_like(largest), largest)
    total = torch.exp(spread - top).sum(-1)
    return (torch.log(total) + top.squeeze(-1)).transpose(dim, -1)


def _triangle(x: Any, dim: int) -> tuple[Any, Any]:
    """x with the axis last, and [length, length]: whether column j comes no later than row i."""
    last = x.transpose(dim, -1)
    position = arange(last.shape[-1], x)
    return last, position.unsqueeze(0) <= position.unsqueeze(1)


def searchsorted(
    func: Any,
    sorted_sequence: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    """How many elements of the sequence come before each value."""
    import torch

    if not isinstance(values, torch.Tensor):
        return NotImplemented
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    after_equal = right or side == "right"
    row = sorted_sequence if sorted_sequence.dim() == 1 else sorted_sequence.unsqueeze(-2)
    # torch's search goes on while an element is not beyond the value, which holds for NaN to the end.
    beyond = row > values.unsqueeze(-1) if after_equal else row >= values.unsqueeze(-1)
    return (~beyond).to(torch.int64).sum(-1).to(torch.int32 if out_int32 else torch.int64)


def bucketize(func: Any, values: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """`searchsorted` with its arguments the other way round."""
    return searchsorted(func, boundaries, values, out_int32=out_int32, right=right)


def isin(func: Any, elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is one of a few."""
    import torch

    if not isinstance(elements, torch.Tensor) or not isinstance(test_elements, torch.Tensor):
        return NotImplemented
    is_member = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    return torch.logical_not(is_member) if invert else is_member


def take_along_dim(func: Any, x: Any, indices: Any, dim: Any = None) -> Any:
    """gather, after the axes of length 1 are expanded to the other's."""
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1)).reshape(indices.shape)
    if x.dim() != indices.dim():
        return NotImplemented
    axis = dim % x.dim()
    shape = [_longer(x.shape[i], indices.shape[i]) for i in range(x.dim())]
    index = [indices.shape[i] if i == axis else s for i, s in enumerate(shape)]
    table = [x.shape[i] if i == axis else s for i, s in enumerate(shape)]
    return x.expand(table).gather(axis, indices.expand(index))


def _longer(a: Any, b: Any) -> Any:
    return b if isinstance(a, int) and a == 1 else a


def diagonal(func: Any, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, one of which is dynamic, by index."""
    rows, columns = x.shape[dim1], x.shape[dim2]
    if not any_symbolic([rows, columns]):
        return NotImplemented
    down, right = max(-offset, 0), max(offset, 0)
    count = minimum(rows - down, columns - right)
    index = (arange(count, x) + down) * columns + arange(count, x) + right
    last = x.movedim((dim1, dim2), (-2, -1)).flatten(-2)
    return last.index_select(-1, index)


def sort(func: Any, x: Any, *args: Any, stable: bool | None = None, **named: Any) -> Any:
    """A stable sort: ONNX's TopK puts the lower index first anyway; it has no booleans."""
    import torch

    if x.dtype == torch.bool:
        values, indices = func(x.to(torch.int32), *args, **named)
        return torch.return_types.sort((values.to(torch.bool), indices))
    if not stable:
        return NotImplemented
    return func(x, *args, **named)


def argsort(func: Any, x: Any, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """A stable one, or one of booleans: see `sort`."""
    import torch

    if not stable and x.dtype != torch.bool:
        return NotImplemented
    return sort(torch.sort, x, dim, descending)[1] if x.dtype == torch.bool else torch.sort(x, dim, descending)[1]


def mode(func: Any, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along an axis, the smallest of equally frequent ones; the index is of its last place."""
    import torch

    last = x.transpose(dim, -1)
    same = last.unsqueeze(-1) == last.unsqueeze(-2)
    counts = same.to(torch.int64).sum(-1)
    frequent = counts == counts.amax(-1, keepdim=True)
    high = math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).max
    values = torch.where(frequent, last, torch.full((), high, dtype=x.dtype, device=x.device)).amin(-1, keepdim=True)
    places = arange(last.shape[-1], x)
    indices = torch.where(last == values, places, torch.zeros_like(places)).amax(-1, keepdim=True)
    pair = (values.transpose(dim, -1), indices.transpose(dim, -1))
    return ValuesIndices(*(pair if keepdim else (v.squeeze(dim) for v in pair)))


def tensor_split(
    func: Any, x: Any, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None, indices: Any = None
) -> Any:
    """Parts whose lengths differ by one at most, of a dynamic axis."""
    sections, length = indices_or_sections if sections is None else sections, x.shape[dim]
    if not isinstance(sections, int) or not is_symbolic(length):
        return NotImplemented
    whole, rest = length // sections, length % sections
    starts = [i * whole + minimum(rest, i) for i in range(sections)] + [length]
    return tuple(x.narrow(dim, a, b - a) for a, b in itertools.pairwise(starts))


def chunk(func: Any, x: Any, chunks: int, dim: int = 0) -> Any:
    """Parts of a dynamic axis as views of their own, which may be written to: the exporters split a copy.

    All but the last are as long as each other. torch gives fewer parts where the axis is short.
    """
    length = x.shape[dim]
    if not isinstance(chunks, int) or chunks < 2 or not is_symbolic(length):
        return NotImplemented
    each = floor_ratio(length + chunks - 1, chunks)
    if floor_ratio(length + each - 1, each) != chunks:
        return NotImplemented
    starts = [i * each for i in range(chunks)] + [length]
    return tuple(x.narrow(dim, a, b - a) for a, b in itertools.pairwise(starts))


def roll(func: Any, x: Any, shifts: Any, dims: Any = None) -> Any:
    """roll by a shift that is read from a shape, by index: cutting the axis asks whether a part is empty."""
    import torch

    moves = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    axes = list(dims) if isinstance(dims, (list, tuple)) else [dims]
    if not any_symbolic(moves) or len(moves) != len(axes) or None in axes:
        return NotImplemented
    for shift, axis in zip(moves, axes, strict=True):
        length = x.shape[axis]
        index = arange(length, x) - shift % length
        x = x.index_select(axis, torch.where(index < 0, index + length, index))
    return x


def tensor_unfold(func: Any, x: Any, dimension: int, size: int, step: int) -> Any:
    """Tensor.unfold: windows of `size` every `step` elements, as a gather."""
    axis = dimension % x.dim()
    count = (x.shape[axis] - size) // step + 1
    index = (arange(count, x) * step).unsqueeze(1) + arange(size, x).unsqueeze(0)
    # Indexing with a matrix needs no reshape, whose guards would forbid a count of one.
    windows = x[(*[slice(None)] * axis, index)]
    return windows.movedim(axis + 1, -1)


def ranked_booleans(func: Any, x: Any, *args: Any, **named: Any) -> Any:
    """`max` and `min` of booleans along an axis, with where they are: of 0 and 1."""
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype != torch.bool:
        return NotImplemented
    if not args and not named:
        return func(x.to(torch.int32)).to(torch.bool)
    if not isinstance(named.get("dim", args[0] if args else None), int):
        return NotImplemented
    values, indices = func(x.to(torch.int32), *args, **named)
    return ValuesIndices(values.to(torch.bool), indices)


def topk(func: Any, x: Any, k: Any, dim: Any = -1, largest: bool = True, sorted: bool = True) -> Any:
    """In order although torch need not give it so: what ONNX Runtime gives without it, no other engine does."""
    return NotImplemented if sorted else func(x, k, dim, largest)
