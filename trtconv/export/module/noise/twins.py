"""The module in FP64, and with weights or coordinates moved by a rounding: what its own rounding is measured by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.export.module.noise.closures import deep_copy
from trtconv.export.module.noise.shared_casts import SharedCasts
from trtconv.export.module.noise.single_draws import drawn_in_single, draws
from trtconv.export.recurrent.calls import layer_calls
from trtconv.export.sizes.work import watching_mode
from trtconv.proof.noise.coordinates import MOVED_BY

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

    from trtconv.export.module.runner import ModuleRunner
    from trtconv.proof.original import Run

    Array = np.ndarray[Any, np.dtype[Any]]

# A copy in FP64 takes twice the weights' memory, which a model of many gigabytes cannot afford.
LARGEST_COPY = 1 << 30
# aten's operators that interpolate, by the axes along which they do; and those that read at coordinates of their own.
UPSAMPLING = {
    "upsample_linear1d": 1,
    "upsample_bilinear2d": 2,
    "upsample_bicubic2d": 2,
    "upsample_trilinear3d": 3,
    "_upsample_bilinear2d_aa": 2,
    "_upsample_bicubic2d_aa": 2,
}
SAMPLING = ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler")
NEAREST = frozenset(f"{kind}{axes}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3))
# Up to here float32 holds every whole number.
LARGEST_COUNT = 1 << 24
INTERPOLATING = frozenset((*UPSAMPLING, *SAMPLING))
# aten's operators behind which a last digit may be a step: bytes of a picture, a mask of what is over a threshold.
STEPPING = frozenset(
    ("round", "floor", "ceil", "trunc", "floor_divide", "fmod", "remainder", "bucketize", "searchsorted", "gt", "ge",
     "lt", "le", "sign", "argmax", "argmin")
)  # fmt: skip
# aten's operators that subtract a mean of one input and divide by its deviation, by how that mean lies over the input.
NORMALISING = ("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit")
SPREADS = ("var", "var_mean", "std", "std_mean")
# The partial sums of what adds in a row: the FP32 numbers in one register of AVX.
LANES = 8


def weight_bytes(module: nn.Module) -> int:
    """The bytes of the module's parameters, but for those that its first call makes."""
    from torch.nn.parameter import is_lazy

    return sum(p.nbytes for p in module.parameters() if not is_lazy(p))


def exact_twin(runner: ModuleRunner) -> ModuleRunner | None:
    """The module in FP64; None when it is too large to copy or cannot be copied."""
    copied = _copied(runner.module)
    if copied is None:
        return None
    try:
        return runner.with_module(copied.double(), wide=True)
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


@contextmanager
def wide_floats() -> Iterator[set[str]]:
    """What a module casts to float32 is float64 during the block, and so is what torch makes of whole numbers.

    Yields the names of the operators and recurrent layers that run in it.

    Without it a module that takes bytes and says `x.float() / 255` computes in FP32 in its FP64 twin too, and no
    rounding of its own is seen. Half and bfloat16 stay: what they round away is meant. The casts are caught below
    torch's functions: under a mode for functions nn.TransformerEncoder would go another way.

    `torch.finfo` answers as of float32: with another epsilon or lowest number the twin would be another function, and
    its distance no rounding. For the same reason a resize to the nearest picks the elements that it picks in FP32, and
    random numbers are drawn in FP32.
    SharedCastError is raised where a cast that is none in FP32 is written in place.
    """
    import torch

    limits = torch.finfo

    def narrowed(dtype: Any = torch.float64) -> Any:
        return limits(torch.float32 if dtype is torch.float64 else dtype)

    def widened(value: Any) -> Any:
        return torch.float64 if value is torch.float32 else value

    casts = SharedCasts()
    names: set[str] = set()

    def layer(name: str, function: Any, args: Any, named: Any) -> Any:
        names.add(name)
        return function(*args, **named)

    class WideFloats(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            names.add(func.overloadpacket.__name__)
            if func.overloadpacket.__name__ in NEAREST and args[0].dtype is torch.float64:
                return _picked_in_single(func, *args, **kwargs)
            if draws(func):
                return drawn_in_single(func, args, kwargs)
            casts.require_unwritten(func, args)
            result = func(*(widened(v) for v in args), **{name: widened(v) for name, v in kwargs.items()})
            casts.note(func, args, kwargs, result)
            return result

    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if default is torch.float32 else default)
    try:
        with layer_calls(layer), WideFloats(), mock.patch.object(torch, "finfo", narrowed):
            yield names
    finally:
        torch.set_default_dtype(default)


def _picked_in_single(resize: Any, x: torch.Tensor, *rest: Any, **keywords: Any) -> torch.Tensor:
    """A resize of FP64 x [N, C, ...] to the nearest, whose positions are computed in FP32."""
    import torch

    numel = math.prod(x.shape[2:])
    if numel > LARGEST_COUNT:
        return resize(x, *rest, **keywords)
    order = torch.arange(numel, dtype=torch.float32).reshape(1, 1, *x.shape[2:])
    picked = resize(order, *rest, **keywords)
    return x.flatten(2).index_select(2, picked.flatten().long()).reshape(*x.shape[:2], *picked.shape[2:])


def perturbed_twin(runner: ModuleRunner, seed: int) -> ModuleRunner | None:
    """The module with each weight moved by at most one unit in its last place; None as for `exact_twin`."""
    import torch

    copied = _copied(runner.module)
    if copied is None:
        return None
    generator = torch.Generator().manual_seed(seed)
    try:
        with torch.no_grad():
            for parameter in copied.parameters():
                if parameter.is_floating_point():
                    noise = torch.rand(parameter.shape, generator=generator).mul_(2).sub_(1).to(parameter.dtype)
                    parameter.add_(parameter * noise * torch.finfo(parameter.dtype).eps)
        return runner.with_module(copied)
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


def _copied(module: nn.Module) -> nn.Module | None:
    if weight_bytes(module) > LARGEST_COPY:
        return None
    try:
        return deep_copy(module, _uncopied(module))
    except Exception:  # noqa: BLE001 - what cannot be copied says so in many ways, a user's __deepcopy__ in any
        return None


def _uncopied(module: nn.Module) -> dict[int, Any]:
    """By identity what a copy shares with the module: functions of torch.jit hold nothing and cannot be copied."""
    import torch

    members = (value for part in module.modules() for value in vars(part).values())
    return {id(value): value for value in members if isinstance(value, torch.jit.ScriptFunction)}


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Denormal numbers count as zero in torch during the block."""
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


class Resampled:
    """A module in FP64 with the coordinates of its interpolations moved to one side (`proof.coordinates`)."""

    def __init__(self, exact: Run, sides: tuple[int, int] = (1, 1)) -> None:
        """`sides` are 1 or -1: of the last axis, and of those before it."""
        self._exact, self._sides = exact, sides

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        with _moved_coordinates(self._sides):
            return self._exact(inputs)


def _moved_coordinates(sides: tuple[int, int]) -> Any:
    """A dispatch mode under which what interpolates reads beside its coordinates."""
    along_last, along_others = (side * MOVED_BY for side in sides)

    class MovedCoordinates(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            name = func.overloadpacket.__name__
            if name in UPSAMPLING:
                return _upsampled(func, UPSAMPLING[name], args, kwargs, along_last, along_others)
            # Nearest (1) decides, and is not noise.
            if name in SAMPLING and args[2] != 1:
                x, grid, *rest = args
                steps = grid.new_tensor([along_last, *[along_others] * (grid.shape[-1] - 1)])
                return func(x, grid + steps, *rest, **kwargs)
            return func(*args, **kwargs)

    return MovedCoordinates()


def _upsampled(
    run: Any, axes: int, args: Sequence[Any], keywords: Mapping[str, Any], along_last: float, along_others: float
) -> Any:
    """The result, with the slope along each axis times its length and a step."""
    import torch

    x, *rest = args
    result = run(x, *rest, **keywords)
    for axis in range(x.dim() - axes, x.dim()):
        length = x.shape[axis]
        if length > 1 and result.shape[axis] != length:
            slope = torch.diff(x, dim=axis, append=x.narrow(axis, length - 1, 1))
            step = along_last if axis == x.dim() - 1 else along_others
            result = result + step * length * run(slope, *rest, **keywords)
    return result


class Resummed:
    """A module in FP64 whose normalisations take the mean and variance that FP32 gives when it adds in a row.

    torch adds in pairs, others in a row in each lane of a register: of many equal terms each sum is then rounded to the
    same side. Where the deviation is small beside the mean (a constant image), the mean's error is divided by it; where
    values are few (ties in a volume), the variance is off by a hundred times its rounding.
    """

    def __init__(self, exact: Run) -> None:
        self._exact = exact

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        with _added_in_a_row():
            return self._exact(inputs)


def _added_in_a_row() -> Any:
    """A mode under which normalisations, means and variances use sums made in a row."""

    class AddedInARow(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            name = func.overloadpacket.__name__
            if name in NORMALISING:
                return _with_sums_in_a_row(name, args, result)
            if name == "mean" and len(args) > 1 and args[1] and args[0].is_floating_point():
                return result + _mean_error(args[0], args[1]).reshape(result.shape)
            if name in SPREADS and args[0].is_floating_point():
                return _with_spread_in_a_row(name, args, kwargs, result)
            return result

    return AddedInARow()


def _with_sums_in_a_row(name: str, args: Sequence[Any], result: Sequence[Any]) -> Any:
    """The outputs of a normalisation: its first one moved by the errors of mean and deviation, times the factor."""
    x, weight = args[0], None
    normal, mean, inverse = result
    if name == "native_layer_norm":
        weight = args[2]
        moved = _moved_normal(x, list(range(x.dim() - len(args[1]), x.dim())), inverse)
    elif name == "native_group_norm":
        weight, groups = args[1], args[6]
        rows = x.reshape(x.shape[0], groups, -1)
        moved = _moved_normal(rows, [2], inverse[..., None]).reshape(x.shape)
        weight = None if weight is None else weight.reshape(1, -1, *[1] * (x.dim() - 2))
    else:
        if not mean.numel():  # the running ones are used
            return result
        moved = _moved_normal(x, [0, *range(2, x.dim())], inverse.reshape(1, -1, *[1] * (x.dim() - 2)))
        weight = None if args[1] is None else args[1].reshape(1, -1, *[1] * (x.dim() - 2))
    return (normal + (moved if weight is None else moved * weight), mean, inverse)


def _moved_normal(x: torch.Tensor, axes: Sequence[int], inverse: torch.Tensor) -> torch.Tensor:
    """By how much (x - mean) * inverse moves to first order; `inverse` is (variance + epsilon) ** -0.5."""
    mean, deviations = _mean_error(x, axes), x - x.mean(axes, keepdim=True)
    variance = _mean_error(deviations.square(), axes)
    return -(mean * inverse) - deviations * variance * inverse**3 / 2


def _with_spread_in_a_row(name: str, args: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> Any:
    """A variance or standard deviation (and the mean beside it), moved by the error of the sum of squares."""
    x, axes = args[0], args[1] if len(args) > 1 and args[1] else list(range(args[0].dim()))
    count, correction = math.prod(x.shape[a] for a in axes), keywords.get("correction")
    freedom = count - (1 if correction is None else correction)
    if freedom <= 0:
        return result
    spread, *means = result if isinstance(result, tuple) else (result,)
    error = _mean_error((x - x.mean(axes, keepdim=True)).square(), axes).reshape(spread.shape) * (count / freedom)
    if name.startswith("std"):
        # Of the root of a zero there is no first order.
        error = (error / (2 * spread)).nan_to_num(0.0, 0.0, 0.0)
    means = [m + _mean_error(x, axes).reshape(m.shape) for m in means]
    return (spread + error, *means) if means else spread + error


def _mean_error(x: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    """By group the mean that FP32 gives when it adds in a row less the true one; the axes are kept with size 1."""
    import numpy as np
    import torch

    axes = sorted(a % x.dim() for a in axes)
    rest = [a for a in range(x.dim()) if a not in axes]
    count = math.prod(x.shape[a] for a in axes)
    true = x.mean(axes, keepdim=True)
    if not count:
        return torch.zeros_like(true)
    rows = x.detach().permute(*rest, *axes).reshape(-1, count).numpy().astype(np.float32)
    whole = np.pad(rows, ((0, 0), (0, -count % LANES))).reshape(len(rows), -1, LANES)
    # numpy's `sum` adds in pairs, its `accumulate` in a row; torch's cumsum accumulates in FP64.
    sums = np.add.accumulate(whole, axis=1)[:, -1].astype(np.float64).sum(axis=1)
    return torch.from_numpy(sums).to(x.dtype).reshape(true.shape) / count - true
