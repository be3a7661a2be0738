"""Comparing what should be equal: one output at one sample point.

An element agrees when `|actual - expected| <= atol * scale + rtol * |expected|`, where `scale` is the root mean square
of the finite expected elements but at least 1. The scale matters for inputs of large magnitude only: rounding in
FP32 is relative to the magnitude of the sums, so elements that cancel to nearly nothing cannot be held to an
absolute 1e-4 when their neighbours are 1e6. Elements that stand far over the small ones are left out of the scale:
they are fillings (-1e9 of a mask, the lowest number of a dtype), beside which any value would look small.

At points with large, zero or denormal values the module itself may be ill conditioned (a softmax over logits of 1e4,
the normalisation of a flat image). There export measures the module's own rounding, the difference between its FP32
and FP64 outputs, and `ROUNDING_FACTOR` times that is added to the tolerance of each element (see `core.rounding`).

NaN agrees with NaN, an infinity with the same infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


# Two FP32 evaluations with different orders of summation differ by the sum of both their rounding errors; what was
# measured of one is a sample of the other's, so a factor of two for the sum and two for luck.
ROUNDING_FACTOR = 4.0

# An element this many times the lower tenth of the magnitudes is a filling and not a neighbour: of a million normal
# values the largest is 40 times that tenth, of a million products of two 300 times.
FILLING = 2000.0


def compare_output(
    name: str, point: str, expected: Array, actual: Array, tolerance: Tolerance, rounding: float | Array = 0.0
) -> OutputComparison:
    """Compare one output. The dtypes may differ only in precision; a change between float and integer is an error.

    `rounding` is the measured rounding error of the module itself at this point, in the output's units: one number, or
    one for each element (of the shape of `expected`).
    """
    import numpy as np

    shapes = tuple(expected.shape), tuple(actual.shape)
    if shapes[0] != shapes[1]:
        reason = f"shape {list(shapes[1])}, expected {list(shapes[0])}"
        return OutputComparison(name, point, False, reason, *shapes)
    if _kind(expected) != _kind(actual):
        reason = f"dtype {actual.dtype}, expected {expected.dtype}"
        return OutputComparison(name, point, False, reason, *shapes)
    if expected.size == 0:
        return OutputComparison(name, point, True, "empty", *shapes, 0.0, 0.0, 1.0, 0.0, max_scaled=0.0)
    want, got = expected.astype(np.float64).reshape(-1), actual.astype(np.float64).reshape(-1)
    with np.errstate(all="ignore"):
        error = np.abs(got - want)
        same = (want == got) | (np.isnan(want) & np.isnan(got))
        error[same] = 0.0
        error[np.isnan(error)] = np.inf
        scale = _scale(want)
        magnitude = np.where(np.isfinite(want), np.abs(want), 0.0)
        allowed = tolerance.atol * scale + tolerance.rtol * magnitude + ROUNDING_FACTOR * np.ravel(rounding)
        # Not `error > allowed`, which a NaN in the allowance would never be.
        bad = ~(error <= allowed)
        scaled = error / (scale + magnitude)
        relative = np.where(same, 0.0, error / np.maximum(magnitude, 1e-30))
        worst = int(np.argmax(np.where(bad, error, -1.0))) if bad.any() else int(np.argmax(error))
        cosine = _cosine(want, got)
    fraction = float(bad.mean())
    reasons = []
    if fraction > tolerance.mismatched:
        reasons.append(f"{int(bad.sum())} of {bad.size} elements differ by more than the tolerance")
    if tolerance.cosine is not None and not cosine >= tolerance.cosine:
        reasons.append(f"cosine {cosine:.6f} under {tolerance.cosine}")
    return OutputComparison(
        name, point, not reasons, "; ".join(reasons), *shapes,
        float(error.max()), float(relative.max()), cosine, fraction,
        tuple(int(i) for i in np.unravel_index(worst, expected.shape)), float(want[worst]), float(got[worst]),
        float(scaled.max()),
    )  # fmt: skip


def _scale(want: Array) -> float:
    """The root mean square of the finite elements without fillings, at least 1."""
    import numpy as np

    sizes = np.abs(want[np.isfinite(want)])
    positive = sizes[sizes > 0.0]
    if not positive.size:
        return 1.0
    # A hundred thousand tell the tenth well enough; sorting all of a large output would take seconds.
    low = float(np.quantile(positive[:: max(1, positive.size // 100_000)], 0.1))
    kept = sizes[sizes <= FILLING * max(1e-3, low)]
    return max(1.0, float(np.sqrt(np.mean(kept * kept)))) if kept.size else 1.0


def _kind(array: Array) -> str:
    return "float" if array.dtype.kind in "fV" or array.dtype.name == "bfloat16" else "integer"


def _cosine(want: Array, got: Array) -> float:
    import numpy as np

    both = np.isfinite(want) & np.isfinite(got)
    a, b = want[both], got[both]
    top = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    if top == 0.0:
        return 1.0
    a, b = a / top, b / top
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 0.0


def compare_outputs(
    point: str,
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    tolerance: Tolerance,
    per_output: Mapping[str, Tolerance] | None = None,
    rounding: Mapping[str, float | Array] | None = None,
) -> tuple[OutputComparison, ...]:
    """Compare all outputs by name; a missing one fails, an extra one is ignored."""
    results = []
    for name, want in expected.items():
        if name not in actual:
            results.append(OutputComparison(name, point, False, "output is missing", tuple(want.shape), ()))
            continue
        chosen = (per_output or {}).get(name, tolerance)
        results.append(compare_output(name, point, want, actual[name], chosen, (rounding or {}).get(name, 0.0)))
    return tuple(results)


def first_failure(results: tuple[OutputComparison, ...]) -> OutputComparison | None:
    """The first comparison that failed, in order, or None."""
    return next((r for r in results if not r.passed), None)


def describe_failure(result: OutputComparison) -> str:
    """One line for people: which output, where, how far off."""
    if result.max_abs is None:
        return f"output '{result.output}' at {result.point}: {result.reason}"
    at = list(result.at)
    return (
        f"output '{result.output}' at {result.point}: {result.reason}; largest error {result.max_abs:.3g} at {at} "
        f"(expected {result.expected_at:.6g}, got {result.actual_at:.6g})"
    )
