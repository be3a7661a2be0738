"""Of equal elements the first comes first, as ONNX says of TopK; torch leaves it open, and takes any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trtconv.export.sizes.work import watching_mode

# aten's operators that put elements into an order, or choose by it.
RANKING = frozenset(("topk", "sort", "kthvalue", "median"))


@contextmanager
def stable_sorts() -> Iterator[None]:
    """torch's sorts, top-k and ranks take the first of equal elements in the block.

    ONNX (TopK): "given two equivalent values, this operator uses the indices along the axis as a tiebreaker"; torch's
    page on topk and sort promises an order for `stable=True` alone.
    """

    class Stable(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            form = _STABLE.get(str(func))
            result = None if form is None else form(*args, **kwargs)
            return func(*args, **kwargs) if result is None else result

    with Stable():
        yield


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    import torch

    if not x.dim() or x.dtype is torch.bool or not 0 <= k <= x.shape[dim]:
        return None
    values, indices = torch.ops.aten.sort.stable(x, stable=True, dim=dim, descending=largest)
    # Contiguous as torch's own, on which a `view` may follow.
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


def _sort(x: Any, dim: int = -1, descending: bool = False) -> Any:
    import torch

    return torch.ops.aten.sort.stable(x, stable=True, dim=dim, descending=descending)


def _sort_stable(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    return None if stable else _sort(x, dim, descending)


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return _ranked(x, k - 1, dim, keepdim)


def _median(x: Any, dim: int, keepdim: bool = False) -> Any:
    # A NaN is the median, wherever it lies.
    return None if not x.dim() or bool((x != x).any()) else _ranked(x, (x.shape[dim] - 1) // 2, dim, keepdim)


def _ranked(x: Any, rank_index: int, dim: int, keepdim: bool) -> Any:
    if not x.dim() or not 0 <= rank_index < x.shape[dim]:
        return None
    chosen = tuple(part.narrow(dim, rank_index, 1) for part in _sort(x, dim))
    return tuple((part if keepdim else part.squeeze(dim)).contiguous() for part in chosen)


_STABLE: Mapping[str, Callable[..., Any]] = {
    "aten.topk.default": _topk,
    "aten.sort.default": _sort,
    "aten.sort.stable": _sort_stable,
    "aten.kthvalue.default": _kthvalue,
    "aten.median.dim": _median,
}
