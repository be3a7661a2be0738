"""avg_pool and max_pool whose window, stride or padding is read from a shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trtconv.export.symbolic.indexing.embeddings import bounded
from trtconv.export.symbolic.resampling import windows
from trtconv.export.symbolic.sizes import any_symbolic, arange, floor_ratio, is_symbolic, minimum, per_axis, same_size

Handler = Callable[..., Any]


@dataclass(frozen=True)
class PoolingWindow:
    """The window along every axis, outermost first."""

    kernel: list[Any]
    stride: list[Any]
    padding: list[Any]

    @property
    def rank(self) -> int:
        """How many axes are pooled."""
        return len(self.kernel)

    def symbolic(self, index: int) -> bool:
        """True when anything about the window along an axis is symbolic."""
        return any_symbolic([self.kernel[index], self.stride[index], self.padding[index]])

    def whole(self, index: int, x: Any) -> bool:
        """True when one window covers the whole axis."""
        padding = self.padding[index]
        return not is_symbolic(padding) and padding == 0 and same_size(self.kernel[index], x.shape[index - self.rank])

    def plain(self, indices: list[int]) -> tuple[list[Any], list[Any], list[Any]]:
        """Kernel, stride and padding that pool the other axes only."""
        return (
            [1 if i in indices else k for i, k in enumerate(self.kernel)],
            [1 if i in indices else s for i, s in enumerate(self.stride)],
            [0 if i in indices else p for i, p in enumerate(self.padding)],
        )


def read_pool(rank: int, kernel: Any, stride: Any, padding: Any) -> PoolingWindow:
    """Bring the arguments of a pool over `rank` axes to one value per axis; no stride means the kernel."""
    kernels = per_axis(kernel, rank)
    has_stride = stride is not None and not (isinstance(stride, (list, tuple)) and not stride)
    return PoolingWindow(kernels, per_axis(stride, rank) if has_stride else kernels, per_axis(padding, rank))


def average_pool(rank: int) -> Handler:
    """The handler of avg_pool1d, 2d or 3d."""

    def handle(
        func: Any,
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        import torch.nn.functional as F

        pool = read_pool(rank, kernel_size, stride, padding)
        moving = [i for i in range(rank) if pool.symbolic(i)]
        if divisor_override is not None:
            if moving:
                return NotImplemented
            sizes = x.shape[-rank:]
            if ceil_mode:
                pads = [(p, p + s - 1) for s, p in zip(pool.stride, pool.padding, strict=True)]
                x, padding = F.pad(x, [n for before_and_after in pads[::-1] for n in before_and_after]), 0
            pooled = func(x, kernel_size, stride, padding, False, True)
            for i, (s, p, k) in enumerate(zip(pool.stride, pool.padding, pool.kernel, strict=True)):
                # A window that starts behind the input is left out; none does where a stride and a pad fit the kernel.
                if ceil_mode and s + p > k:
                    count = minimum(pooled.shape[i - rank], (sizes[i] + p - 1) // s + 1)
                    pooled = pooled.narrow(i - rank, 0, count)
            return pooled * (math.prod(pool.kernel) / divisor_override)
        if not moving or ceil_mode:
            return NotImplemented
        if all(pool.whole(i, x) for i in moving):
            x = x.mean([i - rank for i in moving], keepdim=True)
        else:
            axes = [(i, *_windows(x, i - rank, pool, i, count_include_pad)) for i in moving]
            x = windows.average(x, [windows.Windows(i - rank, *bounds) for i, *bounds in axes])
        if len(moving) == rank or not _does_something(pool, moving):
            return x
        kernel, strides, pads = pool.plain(moving)
        return func(x, kernel, strides, pads, False, count_include_pad)

    return handle


def max_pool(rank: int) -> Handler:
    """The handler of max_pool1d, 2d or 3d without indices."""

    def handle(
        func: Any,
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        pool = read_pool(rank, kernel_size, stride, padding)
        moving = [i for i in range(rank) if pool.symbolic(i)]
        dilations = per_axis(dilation, rank)
        if not moving and rank == 1 and (x.dim() == 2 or any_symbolic(x.shape)):
            return _pool_of_images(x, pool, dilations[0], ceil_mode, return_indices)
        if not moving or ceil_mode or return_indices or any(dilations[i] != 1 for i in moving):
            return NotImplemented
        whole = [i for i in moving if pool.whole(i, x)]
        if whole:
            x = x.amax([i - rank for i in whole], keepdim=True)
        for index in (i for i in moving if i not in whole):
            start, end, _ = _windows(x, index - rank, pool, index, False)
            x = windows.maximum(x, index - rank, start, end)
        if len(moving) == rank or not _does_something(pool, moving):
            return x
        kernel, strides, pads = pool.plain(moving)
        return func(x, kernel, strides, pads, [1 if i in moving else d for i, d in enumerate(dilations)], False)

    return handle


def _pool_of_images(x: Any, window: PoolingWindow, dilation: Any, ceil_mode: bool, return_indices: bool) -> Any:
    """max_pool1d of x, [N, C, T] or [C, T], as that of images of one row.

    torch looks at plain numbers for the length of one axis, and ONNX pools nothing of two axes.
    """
    import torch.nn.functional as F

    along = (1, *window.kernel), (1, *window.stride), (0, *window.padding), (1, dilation)
    images = x.unsqueeze(-2) if x.dim() == 3 else x[None, :, None]
    pool = F.max_pool2d_with_indices if return_indices else F.max_pool2d
    pooled: Any = pool(images, *along, ceil_mode)
    parts = [p.squeeze(-2) if x.dim() == 3 else p[0, :, 0] for p in (pooled if return_indices else (pooled,))]
    return tuple(parts) if return_indices else parts[0]


def _does_something(pool: PoolingWindow, moving: list[int]) -> bool:
    fixed = [i for i in range(pool.rank) if i not in moving]
    return any((pool.kernel[i], pool.stride[i], pool.padding[i]) != (1, 1, 0) for i in fixed)


def _windows(x: Any, axis: int, pool: PoolingWindow, index: int, count_padding: bool) -> tuple[Any, Any, Any]:
    """First and last index (exclusive) of every window, clipped to the axis, and how many elements it counts."""
    length, kernel, stride, padding = x.shape[axis], pool.kernel[index], pool.stride[index], pool.padding[index]
    outputs = floor_ratio(length + 2 * padding - kernel, stride) + 1
    start = arange(outputs, x) * stride - padding
    end = start + kernel
    if not is_symbolic(padding) and padding == 0:
        return start, end, kernel
    low, high = start.clamp(min=0), _at_most(end, length)
    return low, high, kernel if count_padding else high - low


def _at_most(values: Any, limit: Any) -> Any:
    import torch

    if not isinstance(limit, torch.Tensor):
        limit = torch.full((), limit, dtype=torch.int64, device=values.device)
    return torch.minimum(values, limit)


def embedding_bag(
    func: Any,
    ids: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The handler of torch.nn.functional.embedding_bag: ids is [N, T], or [T] with offsets [N]; the result [N, D]."""
    import torch

    if mode not in ("sum", "mean", "max"):
        return NotImplemented
    if max_norm is not None:
        weight = bounded(weight, max_norm, norm_type)
    if ids.dim() == 1 and offsets is not None:
        return _bags_by_offsets(ids, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    if ids.dim() != 2 or offsets is not None:
        return NotImplemented
    rows = torch.nn.functional.embedding(ids, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if padding_idx is None:
        return rows.amax(1) if mode == "max" else rows.mean(1) if mode == "mean" else rows.sum(1)
    counts = (ids != padding_idx % weight.shape[0]).unsqueeze(-1)
    number = counts.to(rows.dtype).sum(1)
    if mode == "max":
        largest = torch.where(counts, rows, float("-inf")).amax(1)
        return torch.where(number > 0, largest, 0.0)
    total = torch.where(counts, rows, 0.0).sum(1)
    return total if mode == "sum" else total / number.clamp(min=1.0)


def _bags_by_offsets(
    ids: Any,
    weight: Any,
    offsets: Any,
    mode: str,
    per_sample_weights: Any,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Any:
    """The sum or mean of each bag: a product with the matrix [bags, ids] of what lies in which; an empty bag is 0.

    The maximum is taken over all ids, of which those of other bags are -inf.
    """
    import torch

    starts = offsets[:-1] if include_last_offset else offsets
    ends = offsets[1:] if include_last_offset else torch.cat((offsets[1:], torch.full_like(offsets[:1], ids.shape[0])))
    position = arange(ids.shape[0], offsets)
    inside = torch.logical_and(position >= starts.unsqueeze(1), position < ends.unsqueeze(1))
    if padding_idx is not None:
        inside = torch.logical_and(inside, ids != padding_idx % weight.shape[0])
    if mode == "max":
        rows = torch.where(inside.unsqueeze(-1), torch.nn.functional.embedding(ids, weight), float("-inf"))
        return torch.where(inside.any(1, keepdim=True), rows.amax(1), 0.0)
    member = inside.to(weight.dtype)
    shares = member if per_sample_weights is None else member * per_sample_weights
    total = shares @ torch.nn.functional.embedding(ids, weight)
    return total if mode == "sum" else total / member.sum(1, keepdim=True).clamp(min=1.0)
