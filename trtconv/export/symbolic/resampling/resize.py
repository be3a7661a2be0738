"""interpolate: area, sizes from a ratio of shapes, and nearest where rounding would pick another pixel."""

from __future__ import annotations

from typing import Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.sizes.evaluate import UnreadableError, evaluate_symbolic
from trtconv.export.symbolic.resampling.adaptive import pool_to
from trtconv.export.symbolic.resampling.antialias import resize_antialiased, resize_cubic, resize_linear
from trtconv.export.symbolic.resampling.scales import LONGEST_TRACED, whole_ratio, written_scale
from trtconv.export.symbolic.sizes import any_symbolic, arange, is_symbolic, per_axis, scalar

# Pairs of sizes at which the two formulas of nearest are compared.
PAIRS = 3000
LONGEST_PICKED = 8192
# No longer axis keeps its size by another scale than 1 that anybody writes.
MOST_COPIED = 4096
# Axes of [N, C, H, W].
IMAGES = 4
# Modes that are written out by the ratio that torch keeps for the positions.
INEXACT = ("nearest", "linear", "bilinear", "trilinear", "bicubic")


def _require_exact(x: Any, mode: str) -> None:
    """Raise UnsupportedError for bytes between which values are computed."""
    import torch

    if x.dtype == torch.uint8 and mode not in ("nearest", "nearest-exact"):
        raise UnsupportedError(
            f"F.interpolate of bytes (uint8, mode={mode!r}) is computed by torch in fixed point, which no operator of "
            "ONNX does",
            hint="resize floats: F.interpolate(x.float(), ...), and round and cast behind it where bytes are meant",
        )


def interpolate(
    func: Any,
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """The handler of torch.nn.functional.interpolate. x is [N, C, ...spatial]."""
    _require_exact(x, mode)
    rank = x.dim() - 2
    scales = None if scale_factor is None else per_axis(scale_factor, rank)
    sizes = per_axis(size, rank) if size is not None else None
    if scales is not None and any_symbolic(scales) and not recompute_scale_factor and not align_corners:
        inexact = _by_inexact_ratio(x, scales, mode, antialias)
        if inexact is not None:
            return inexact
    if scales is not None and (any_symbolic(scales) or recompute_scale_factor):
        sizes, scales = [scaled_length(x.shape[i - rank], s) for i, s in enumerate(scales)], None
    if mode == "area":
        return pool_to(x, sizes or [scaled_length(x.shape[i - rank], s) for i, s in enumerate(scales or ())], "average")
    if antialias and mode in ("bilinear", "bicubic") and not align_corners:
        out = sizes or [scaled_length(x.shape[i - rank], s) for i, s in enumerate(scales or ())]
        steps = [x.shape[i - rank] / o if scales is None else 1.0 / scales[i] for i, o in enumerate(out)]
        return resize_antialiased(x, out, steps, mode)
    if mode == "nearest" and any_symbolic([*x.shape[2:], *(sizes or ())]):
        picked = _nearest(x, sizes, scales, rank)
        if picked is not None:
            return picked
    if mode == "nearest-exact" and any_symbolic([*x.shape[2:], *(sizes or ())]):
        whole = scales is not None and all(float(s).is_integer() for s in scales)
        return NotImplemented if whole else _pick_all(x, sizes, scales, rank, centre=0.5)
    if sizes is not None and size is None:
        return func(x, sizes, None, mode, align_corners, None, antialias)
    if scales is not None and mode in INEXACT:
        return _by_written_scales(func, x, scales, mode, align_corners)
    return NotImplemented


def _by_written_scales(func: Any, x: Any, scales: list[Any], mode: str, align_corners: Any) -> Any:
    """Resize by numbers of which the file cuts each length to the size that torch has."""
    lengths = [x.shape[i - len(scales)] for i in range(len(scales))]
    linear = mode.endswith("linear") and not align_corners
    written = [_written(n, s, copied=linear) for n, s in zip(lengths, scales, strict=True)]
    if written == [float(s) for s in scales]:
        return NotImplemented
    if align_corners:
        # The positions come from the sizes alone.
        return func(x, [scaled_length(n, s) for n, s in zip(lengths, scales, strict=True)], None, mode, align_corners)
    if None not in written:
        return func(x, None, written, mode, align_corners)
    return _axis_by_axis(x, scales, mode, [_number_step(s, x) for s in scales])


def _written(length: Any, scale: Any, copied: bool = False) -> float | None:
    """See `written_scale`, for all lengths that a size may have.

    `copied` says that torch copies an axis that keeps its size, whatever the scale was: a Resize does by 1 alone.
    """
    import numpy as np
    import torch

    if isinstance(length, torch.Tensor):
        bounds = [(1, longest) for longest in LONGEST_TRACED]
    else:
        values = [pair[0] for pair in _pairs(length, length)]
        bounds = [(min(values), max(values))]
        if copied and scale != 1.0:
            copies = {int(n * scale) == n for n in range(bounds[0][0], min(bounds[0][1], MOST_COPIED) + 1)}
            if True in copies:
                return 1.0 if copies == {True} else None
    written = (written_scale(np.arange(low, high + 1), float(scale)) for low, high in bounds)
    return next((w for w in written if w is not None), None)


def scaled_length(length: Any, scale: Any) -> Any:
    """floor(length * scale) as torch computes it; exact in integers when the scale is a size over this length.

    Also for a whole scale, with which torch's symbols stay comparable to others.
    """
    import torch

    if isinstance(scale, (int, float)) and float(scale).is_integer():
        return length * int(scale)
    if isinstance(length, torch.Tensor) and isinstance(scale, float):
        whole = whole_ratio(scale)
        if whole is None:
            raise UnsupportedError(
                f"a size times {scale:g} is cut in FP64, and no whole numbers give the same at every size",
                hint="compute the size in whole numbers: interpolate(x, size=(x.shape[-1] * a // b,))",
            )
        return torch.div(length * whole[0], whole[1], rounding_mode="floor")
    if isinstance(length, torch.Tensor) or isinstance(scale, torch.Tensor):
        return torch.floor(torch.as_tensor(length) * scale).to(torch.int64)
    ratio = _numerator_over(length, scale) if is_symbolic(scale) else None
    return torch.sym_int(length * scale) if ratio is None else ratio


def _by_inexact_ratio(x: Any, scales: list[Any], mode: str, antialias: bool) -> Any:
    """Resize by a ratio that need not give a whole size: torch then keeps the ratio for the positions.

    None when every axis comes out whole (its size over this length), or for another mode.
    """
    lengths = [x.shape[i - len(scales)] for i in range(len(scales))]
    steps = [_step(s, x) for s in scales]
    exact = [_numerator_over(n, s) is not None for n, s in zip(lengths, scales, strict=True)]
    if all(exact) or antialias or mode not in INEXACT or None in steps:
        return None
    return _axis_by_axis(x, scales, mode, steps)


def _axis_by_axis(x: Any, scales: list[Any], mode: str, steps: list[Any]) -> Any:
    for i, (scale, step) in enumerate(zip(scales, steps, strict=True)):
        axis = i - len(scales)
        length = x.shape[axis]
        out = scaled_length(length, scale)
        if mode == "nearest":
            x = x.index_select(axis, _picked(x, length, out, step))
        else:
            x = (resize_cubic if mode == "bicubic" else resize_linear)(x, axis, out, step)
    return x


def _number_step(scale: float, x: Any) -> Any:
    import torch

    return torch.full((), 1.0 / scale, dtype=torch.float32, device=x.device)


def _step(scale: Any, x: Any) -> Any:
    """Input pixels per output pixel as a float32 scalar; None for a number."""
    import torch

    if isinstance(scale, torch.Tensor):
        return 1.0 / scale
    expression = getattr(scale.node, "expr", None) if isinstance(scale, torch.SymFloat) else None
    if expression is None:
        return None
    if not _is_ratio(expression):
        return 1.0 / torch.full((), scale, dtype=torch.float32, device=x.device)
    environment = scale.node.shape_env
    up, down = (environment.create_symintnode(e, hint=int(environment.size_hint(e))) for e in expression.args)
    return scalar(down, x) / scalar(up, x)


def _is_ratio(expression: Any) -> bool:
    """True for a whole number over another."""
    ratio = type(expression).__name__ in ("IntTrueDiv", "FloatTrueDiv")
    return ratio and all(part.is_integer for part in expression.args)


def _numerator_over(length: Any, scale: Any) -> Any:
    """`a` when the scale was computed as a / length; None otherwise."""
    import torch

    expression = getattr(scale.node, "expr", None) if isinstance(scale, torch.SymFloat) else None
    if expression is None or not _is_ratio(expression) or not isinstance(length, torch.SymInt):
        return None
    numerator, denominator = expression.args
    if denominator != length.node.expr:
        return None
    environment = length.node.shape_env
    return environment.create_symintnode(numerator, hint=int(environment.size_hint(numerator)))


def _nearest(x: Any, sizes: list[Any] | None, scales: list[Any] | None, rank: int) -> Any:
    """Pick pixels by integer index along the axes where Resize may round to a neighbour; None when none may."""
    risky = []
    for i in range(rank):
        length = x.shape[i - rank]
        out = sizes[i] if sizes is not None else None
        factor = scales[i] if scales is not None else None
        if not nearest_is_safe(length, out, factor, images=x.dim() == IMAGES):
            risky.append(i)
    return _pick_all(x, sizes, scales, rank) if risky else None


def _pick_all(x: Any, sizes: list[Any] | None, scales: list[Any] | None, rank: int, centre: float = 0.0) -> Any:
    for i in range(rank):
        length = x.shape[i - rank]
        out = sizes[i] if sizes is not None else scaled_length(length, (scales or [])[i])
        x = x.index_select(i - rank, _picked(x, length, out, None if scales is None else 1.0 / scales[i], centre))
    return x


def _picked(x: Any, length: Any, out: Any, step: Any, centre: float = 0.0) -> Any:
    """min(floor((i + centre) * length / out), length - 1) in float32, which is how torch picks."""
    import torch

    output_index = arange(out, x).to(torch.float32) + centre
    if step is None:
        ratio = scalar(length, x) / scalar(out, x)
    else:
        ratio = step if isinstance(step, torch.Tensor) else torch.full((), step, dtype=torch.float32, device=x.device)
    if step is not None and not centre and x.dim() == IMAGES:
        # torch copies an axis of images that keeps its size, and repeats one that doubles, whatever the scale was.
        factor = scalar(out, x) / scalar(length, x)
        ratio = torch.where(torch.logical_or(factor == 1.0, factor == 2.0), 1.0 / factor, ratio)
    last = (scalar(length, x) - 1).to(torch.int64)
    pixel = torch.floor(output_index * ratio)
    if centre:
        pixel = torch.where(_rounds_to_one(output_index, ratio), torch.ones_like(pixel), pixel)
    return torch.minimum(pixel.to(torch.int64), last)


def _rounds_to_one(position: Any, ratio: Any) -> Any:
    """True where torch's CPU kernel of nearest-exact takes pixel 1 for a position * ratio of just under 1.

    The kernel computes floor(fma(ratio, position, -0.5) + 0.5) in float32. Below 0.5 floats lie twice as close as below
    1, so it rounds up from 1 - 1.5 * 2**-25, where the plain product rounds up from 1 - 2**-25; from pixel 2 on both
    agree. The difference from 1 is computed without rounding: each part of the ratio has so few bits that its
    product with a position under 1024 is a float32.
    """
    import torch

    high = torch.floor(ratio * 2.0**12) / 2.0**12
    rest = ratio - high
    middle = torch.floor(rest * 2.0**22) / 2.0**22
    from_one = ((high * position - 1.0) + middle * position) + (rest - middle) * position
    return torch.logical_and(from_one >= -1.5 * 2.0**-25, from_one < 0.0)


def nearest_is_safe(length: Any, out: Any, factor: float | None, images: bool = True) -> bool:
    """True when both formulas agree at every size that the symbols allow (at up to PAIRS of them).

    torch: floor(i * float32(length / out)), or of float32(1 / factor). ONNX Runtime: floor(i / float32(out / length)),
    or of float32(factor). They differ where i * length / out is a whole number that float32 misses. Sizes of a
    TorchScript trace have no ranges: a factor has to hold up to LONGEST_TRACED, and any other pair does not pass. A
    comparison need not see it, as in FP64 the module picks the other pixel too.
    """
    import torch

    if isinstance(factor, torch.Tensor) or (factor is None and isinstance(out, torch.Tensor)):
        return False
    if isinstance(length, torch.Tensor) and factor is None:
        return False
    try:
        return _agree_everywhere(length, out, factor, images)
    except UnreadableError:
        return False


def _agree_everywhere(length: Any, out: Any, factor: float | None, images: bool) -> bool:
    import torch

    if factor is not None:
        traced = isinstance(length, torch.Tensor)
        lengths = [*range(1, LONGEST_PICKED)] if traced else [pair[0] for pair in _pairs(length, length)]
        # torch copies an axis of images that keeps its size and repeats one that doubles, where the factor would pick
        # otherwise.
        if images and factor not in (1.0, 2.0) and any(int(n * factor) in (n, 2 * n) for n in lengths):
            return False
        if _written(length, factor) != factor:
            return False
        longest = max(lengths, default=1)
        return _agree(int(longest * factor), 1.0 / factor, factor)
    return all(_agree(o, n / o, o / n) for n, o in _pairs(length, out) if o > 0 and n > 0)


def _agree(outputs: int, step: float, scale: float) -> bool:
    import numpy as np

    output_index = np.arange(outputs, dtype=np.float32)
    return bool(np.array_equal(np.floor(output_index * np.float32(step)), np.floor(output_index / np.float32(scale))))


def _pairs(length: Any, out: Any) -> list[tuple[int, int]]:
    """Values of two sizes at the points of the symbols' ranges, spread evenly when there are many."""
    import numpy as np
    import torch

    symbols = sorted(
        {s for v in (length, out) if isinstance(v, torch.SymInt) for s in v.node.expr.free_symbols}, key=str
    )
    environment = next((v.node.shape_env for v in (length, out) if isinstance(v, torch.SymInt)), None)
    if environment is None:
        return [(int(length), int(out))]
    ranges = [_values(environment, s, max(2, int(PAIRS ** (1 / max(1, len(symbols)))))) for s in symbols]
    grids = dict(zip(symbols, (g.ravel() for g in np.meshgrid(*ranges, indexing="ij")), strict=True))
    return list(dict.fromkeys(zip(_at(length, grids), _at(out, grids), strict=True)))


def _values(environment: Any, symbol: Any, most: int) -> list[int]:
    bounds = environment.var_to_range[symbol]
    # A size read back from a tensor has infinite bounds.
    low = int(bounds.lower) if bounds.lower > -(1 << 40) else 1
    high = min(int(bounds.upper), low + 8192) if bounds.upper < 1 << 40 else low + 8192
    step = max(1, (high - low) // most)
    return list(range(low, high + 1, step))


def _at(value: Any, grids: dict[Any, Any]) -> list[int]:
    """A size at each point of the grids of its symbols; raises UnreadableError for a function that is not known."""
    import numpy as np
    import torch

    points = next(iter(grids.values())).size if grids else 1
    at_points = evaluate_symbolic(value.node.expr, grids) if isinstance(value, torch.SymInt) else np.asarray(value)
    return [int(n) for n in np.broadcast_to(at_points, points)]
