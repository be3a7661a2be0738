"""Of equal elements the first comes first, as ONNX says of TopK; torch leaves it open, and takes any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trtconv.export.module.user_code import Frame, calling_user_frame
from trtconv.export.sizes.work import watching_mode

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]

# Operators that put elements into an order, or choose by it: aten's, and torchvision's.
RANKING = frozenset(("topk", "sort", "kthvalue", "median", "nms"))
# What the noise of a ranked value is taken for, in units of its last place: a sum, a softmax and a product behind it.
ULPS_OF_RANKED = 4.0
# Where no line is the user's.
UNNAMED: Frame = ("a library", 0)


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


@contextmanager
def torch_ranks() -> Iterator[dict[Frame, None]]:
    """torch ranks equal elements as it does; gives the user's lines at which that is not the first one first."""
    import torch

    lines: dict[Frame, None] = {}

    class Compared(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            form = _STABLE.get(str(func))
            stable = None if form is None else form(*args, **kwargs)
            if stable is not None and not torch.equal(result[1], stable[1]):
                lines.setdefault(calling_user_frame() or UNNAMED)
            return result

    with Compared():
        yield lines


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


class Reranked:
    """A module whose sorts and top-ks put elements in another order where they part by a rounding or not at all.

    Scores that a softmax saturates, as 0.9999998 and 0.9999999, come in either order by how a sum was added up. Moved
    weights and inputs find the pairs that they happen to swap; here each pair is swapped in half of the runs. Equal
    elements are swapped only where `ties`: the first of them is the one that a file has to take.
    """

    def __init__(self, runner: ModuleRunner, seed: int, ties: bool) -> None:
        self._runner, self._seed, self._ties = runner, seed, ties

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        return self._runner.watched(inputs, lambda _: _nearly_equal_swapped(self._seed, self._ties))


@contextmanager
def _nearly_equal_swapped(seed: int, ties: bool) -> Iterator[None]:
    import torch

    generator = torch.Generator().manual_seed(seed)

    def swapped(x: Any) -> Any:
        values, positions = (x, ...) if ties else x.unique(return_inverse=True)
        noise = torch.rand(values.shape, generator=generator).mul_(2).sub_(1).to(x.dtype)[positions]
        return x + x * noise * (ULPS_OF_RANKED * torch.finfo(x.dtype).eps)

    class Swapped(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            if str(func) == "torchvision.nms.default" and len(args) == 3:
                boxes, scores, threshold = args
                return func(boxes, swapped(scores), threshold)
            form = _STABLE.get(str(func))
            x = args[0] if args else None
            if form is None or not isinstance(x, torch.Tensor) or not x.is_floating_point() or not x.dim():
                return func(*args, **kwargs)
            result = form(swapped(x), *args[1:], **{**kwargs, **({"stable": False} if "stable" in kwargs else {})})
            if result is None:
                return func(*args, **kwargs)
            _, indices = result
            dim = _axis_of(func, args, kwargs)
            one = indices if indices.dim() == x.dim() else indices.unsqueeze(dim)
            values = x.gather(dim, one)
            return (values if indices.dim() == x.dim() else values.squeeze(dim)).contiguous(), indices

    with Swapped():
        yield


def _axis_of(function: Any, args: Any, kwargs: Any) -> int:
    """The axis along which an aten operator ranks."""
    for position, argument in enumerate(function._schema.arguments):
        if argument.name == "dim":
            return int(kwargs.get("dim", args[position] if position < len(args) else argument.default_value))
    return -1
