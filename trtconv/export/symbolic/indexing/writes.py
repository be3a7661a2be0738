"""What is written into a tensor by a mask, an index or through another view of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.symbolic.sizes import is_symbolic


def set_item(func: Any, x: Any, index: Any, value: Any) -> Any:
    """`x[mask] = number` as a choice, also beside slices; torch.export writes NonZero and ScatterND for it.

    `x[i] = size` with the size as a tensor: torch takes the number that it was traced with.
    """
    import torch

    if is_symbolic(value) and not isinstance(value, torch.Tensor):
        return func(x, index, torch.full((), value, dtype=x.dtype, device=x.device))
    single = not isinstance(value, torch.Tensor) or value.dim() == 0
    parts = index if isinstance(index, tuple) else (index,)
    masks = [i for i, part in enumerate(parts) if isinstance(part, torch.Tensor)]
    if len(masks) != 1 or parts[masks[0]].dtype != torch.bool:
        return NotImplemented
    if not single:
        return _set_behind(x, parts, masks[0], value)
    if any(part is Ellipsis or isinstance(part, (bool, list)) for part in parts):
        return NotImplemented
    mask, before = parts[masks[0]], parts[: masks[0]]
    # One value for all of them: a view with every element of the mask's axes, of which the mask chooses.
    view, axis = x[_of_whole_axes(parts, masks[0], mask)], _first_axis(before)
    mask = mask.reshape([*mask.shape, *([1] * (view.dim() - axis - mask.dim()))])
    if torch.jit.is_tracing():
        # The recorder follows what is written into a tensor or its slices, and into no view of either.
        if len(parts) == 1:
            return x.masked_fill_(mask, value)
        return func(x, _of_whole_axes(parts, masks[0], mask), view.masked_fill(mask, value))
    return view.masked_fill_(mask, value)


def _set_behind(x: Any, parts: tuple[Any, ...], at: int, values: Any) -> Any:
    """`x[..., mask, :2] = values`: the exporters have masks of the first axes alone, so the mask's are moved there."""
    import torch

    mask = parts[at]
    if len(parts) == 1 and mask.dim() and not torch.jit.is_tracing():
        # As indices, which are those of `x[mask]`: the exporter writes a second NonZero, of the mask over all elements.
        x[mask.nonzero(as_tuple=True)] = values
        return None
    if torch.jit.is_tracing() or len(parts) == 1 or any(isinstance(part, (bool, list)) for part in parts):
        return NotImplemented
    used = sum(1 for part in parts if part is not None and part is not Ellipsis) - 1 + mask.dim()
    rest = [slice(None)] * (x.dim() - used)
    before, after = (
        [axis for part in some for axis in (rest if part is Ellipsis else [part])]
        for some in (parts[:at], parts[at + 1 :])
    )
    view, axis = x[_of_whole_axes((*before, mask, *after), len(before), mask)], _first_axis(before)
    values = values.reshape([*[1] * (view.dim() - mask.dim() + 1 - values.dim()), *values.shape])
    front = view.movedim(tuple(range(axis, axis + mask.dim())), tuple(range(mask.dim())))
    front[mask] = values.movedim(axis, 0)
    return None


def _first_axis(before: Sequence[Any]) -> int:
    """The axis at which the mask's begin, behind these parts of an index."""
    return sum(part is None or isinstance(part, slice) for part in before)


def _of_whole_axes(parts: Sequence[Any], at: int, mask: Any) -> tuple[Any, ...]:
    """The index with all of the mask's axes in its place."""
    return (*parts[:at], *[slice(None)] * mask.dim(), *parts[at + 1 :])


def detached(func: Any, x: Any) -> Any:
    """`x.data`: what is written into it is written into x, and torch.export follows that through a view only."""
    return x.detach()


def on_cpu(func: Any, x: Any) -> Any:
    """`x.cpu()` is x where it is there already, as everything is in an export; TorchScript has no such operator."""
    return x if x.device.type == "cpu" else NotImplemented


def narrow(func: Any, x: Any, dim: int, start: Any, length: Any) -> Any:
    """A start from the end becomes one from the front: a recorded slice ends at start + length, which may be 0."""
    from_end = isinstance(start, int) and start < 0
    return x.narrow(dim, x.shape[dim] + start, length) if from_end else NotImplemented


def deep_copy(func: Any, x: Any, memo: dict[int, Any]) -> Any:
    """A clone: torch copies the memory beneath its operators, so that no recording has what is in it."""
    return memo.setdefault(id(x), x.clone())


def assigned_data(func: Any, x: Any, values: Any) -> Any:
    """`x.data = values`: refused, since torch.export goes on from what x was; written into x it would be followed."""
    raise TrtconvError("a tensor gets other data (`x.data = ...`), which no trace follows", hint="use x.copy_(...)")


def dropout(func: Any, x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """In eval mode the tensor itself, as in torch: what is written into the result is written into x.

    Of all elements it is zeros, and NaN of what is not finite.
    """
    import torch

    if training:
        return x * 0.0 if p == 1 and not inplace else NotImplemented
    # A view, since one tensor that is an input and two outputs would lose a name in torch.export.
    return x if torch.jit.is_tracing() else x.view_as(x)


def einsum(func: Any, equation: Any, *operands: Any) -> Any:
    """Of one tensor whose axes only change places the view that torch gives, which may be written into."""
    import torch

    if not isinstance(equation, str) or len(operands) != 1 or not isinstance(operands[0], torch.Tensor):
        return NotImplemented
    before, _, after = equation.replace(" ", "").partition("->")
    if not before.isalpha() or sorted(before) != sorted(after) or len(set(before)) != len(before):
        return NotImplemented
    return operands[0].permute([before.index(axis) for axis in after])


def unsafe_parts(safe: str) -> Callable[..., Any]:
    """`unsafe_chunk` and `unsafe_split` give views all the same."""

    def handle(func: Any, x: Any, *args: Any, **named: Any) -> Any:
        return getattr(x, safe)(*args, **named)

    return handle


# The views that torch has as `..._copy` too.
VIEWS = (
    "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
)  # fmt: skip


def copied(view: str) -> Callable[..., Any]:
    """`select_copy` and its like as the view and a copy of it; the exporters know the view."""

    def handle(func: Any, x: Any, *args: Any, **named: Any) -> Any:
        import torch

        # Two of them are no methods.
        own = {"slice": torch.ops.aten.slice, "alias": torch.ops.aten.alias}.get(view)
        result = own(x, *args, **named) if own else getattr(x, view)(*args, **named)
        return result.clone() if isinstance(result, torch.Tensor) else type(result)(part.clone() for part in result)

    return handle


def scatter_reduce(func: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """The mean of what is scattered: the sum over the count; the exporters write the last value or the sum.

    Extremes without the element's own value start from infinity; the exporters start from the largest finite number.
    """
    import torch

    if reduce in ("amax", "amin") and not include_self and x.dtype.is_floating_point:
        neutral = torch.full_like(x, -math.inf if reduce == "amax" else math.inf)
        extremes = neutral.scatter_reduce(dim, index, src, reduce)
        own = torch.ones_like(x).scatter(dim, index, 0.0)
        return torch.where(own > 0, x, extremes)
    if reduce != "mean":
        return NotImplemented
    sums = (x if include_self else torch.zeros_like(x)).scatter_add(dim, index, src)
    own = torch.ones_like(x) if include_self else torch.zeros_like(x)
    counts = own.scatter_add(dim, index, torch.ones_like(src))
    means = sums / counts.clamp(min=1.0)
    return means if include_self else torch.where(counts > 0, means, x)


def index_reduce(
    func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """The same with one index for whole slices."""
    axis = dim % x.dim()
    spread = index.reshape([-1 if i == axis else 1 for i in range(x.dim())]).expand_as(source)
    # No mode is active within a handler.
    written = scatter_reduce(func, x, axis, spread, source, reduce, include_self=include_self)
    if written is not NotImplemented:
        return written
    return x.scatter_reduce(axis, spread, source, reduce, include_self=include_self)


def fill_diagonal(func: Any, x: Any, fill_value: Any, wrap: bool = False) -> Any:
    """`fill_diagonal_`, which a recording keeps at its own size, as a fill where all indices are equal."""
    import torch

    if wrap or x.dim() < 2:
        return NotImplemented
    positions = [
        torch.arange(size, device=x.device).reshape([-1 if a == axis else 1 for a in range(x.dim())])
        for axis, size in enumerate(x.shape)
    ]
    return x.masked_fill_(functools.reduce(torch.logical_and, (p == positions[0] for p in positions[1:])), fill_value)


def diagonal_scatter(func: Any, input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A diagonal of other elements as a choice; torch.export writes into a view of it."""
    import torch

    x = input.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(x.shape[-2], device=x.device).unsqueeze(1)
    columns = torch.arange(x.shape[-1], device=x.device)
    # Along the diagonal the index counts rows where it begins in the first column, else columns.
    spread = src.unsqueeze(-1) if offset < 0 else src.unsqueeze(-2)
    axis, before, behind = (-2, -offset, x.shape[-2]) if offset < 0 else (-1, offset, x.shape[-1])
    pads = [0, 0, before, behind] if axis == -2 else [before, behind]
    on_axis = torch.nn.functional.pad(spread, pads).narrow(axis, 0, behind)
    written = torch.where(columns - rows == offset, on_axis.to(x.dtype), x)
    return written.movedim((-2, -1), (dim1, dim2))
