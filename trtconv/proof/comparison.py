"""Comparing what should be equal: one output at one sample point, element by element, with what is allowed to each.

NaN agrees with NaN, an infinity with the same infinity. What is allowed comes from `proof.allowance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.report import OutputComparison
from trtconv.proof.allowance import OUTLIERS, Allowance, allow
from trtconv.proof.statistics.row_order import in_order_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def compare_output(
    name: str, point: str, expected: Array, actual: Array, allowance: Allowance | None = None
) -> OutputComparison:
    """Compare one output. The dtypes may differ only in precision; a change between float and integer is an error.

    Without an allowance the noise of `expected` counts as unknown.
    """
    shapes = tuple(expected.shape), tuple(actual.shape)
    if shapes[0] != shapes[1]:
        reason = f"shape {list(shapes[1])}, expected {list(shapes[0])}"
        return OutputComparison(name, point, False, reason, *shapes)
    if _kind(expected) != _kind(actual):
        reason = f"dtype {actual.dtype}, expected {expected.dtype}"
        return OutputComparison(name, point, False, reason, *shapes)
    if expected.size == 0:
        return OutputComparison(name, point, True, "empty", *shapes, 0.0, 0.0, 1.0, 0.0, max_scaled=0.0)
    deviation = _deviate(expected, actual, allowance or allow(expected))
    return deviation.judged(name, point)


def compare_bits(name: str, point: str, expected: Array, actual: Array) -> OutputComparison | None:
    """The comparison of outputs that are equal to the last bit, without what would be allowed; None for others."""
    import numpy as np

    alike = expected.dtype == actual.dtype and expected.shape == actual.shape and expected.size > 0
    if not alike or not np.array_equal(_bytes(expected), _bytes(actual)):
        return None
    shape, values = tuple(expected.shape), expected.reshape(-1)
    values = values if values.dtype.name in ("float32", "float64") else values.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinities of both signs have no sum
        is_finite = np.isfinite(values.sum())
    finite = values if is_finite else values[np.isfinite(values)]
    return OutputComparison(
        name,
        point,
        True,
        "",
        shape,
        shape,
        0.0,
        0.0,
        1.0,
        0.0,
        (0,) * len(shape),
        float(values[0]),
        float(values[0]),
        0.0,
        0.0,
        expected_range=(float(finite.min()), float(finite.max())) if finite.size else (),
    )


def _bytes(array: Array) -> Array:
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True)
class _Deviation:
    """By how much each element is off. All arrays are flat; `same` elements (NaN with NaN too) are off by nothing."""

    shape: tuple[int, ...]
    expected: Array
    actual: Array
    allowance: Allowance
    same: Array
    error: Array
    allowed: Array

    @property
    def bad(self) -> Array:
        """Not `error > allowed`, which a NaN in the allowance would never be."""
        import numpy as np

        with np.errstate(all="ignore"):
            return ~(self.error <= self.allowed)

    def relative_to(self, scale: Array) -> Array:
        """The errors as shares of a scale; nothing is a share of nothing."""
        import numpy as np

        with np.errstate(all="ignore"):
            return np.where(self.same, 0.0, self.error / scale)

    def judged(self, name: str, point: str) -> OutputComparison:
        """The comparison of the output, with the element that is furthest beyond what it is allowed."""
        import numpy as np

        bad, finite = self.bad, np.isfinite(self.expected)
        magnitude = np.where(finite, np.abs(self.expected), 0.0)
        shares = self.relative_to(np.maximum(self.allowed, 1e-300))
        scaled = self.relative_to(np.maximum(_flat(self.allowance.scale, self.shape) + magnitude, 1e-300))
        relative = self.relative_to(np.maximum(magnitude, 1e-30))
        # That element need not be the one with the largest error.
        worst = int(np.argmax(shares)) if bad.any() else int(np.argmax(self.error))
        cosine, values = _cosine(self.expected, self.actual), self.expected[finite]
        reasons = self._reasons(bad, cosine)
        return OutputComparison(
            name,
            point,
            not reasons,
            "; ".join(reasons),
            self.shape,
            self.shape,
            float(self.error.max()),
            float(relative.max()),
            cosine,
            float(bad.mean()),
            tuple(int(i) for i in np.unravel_index(worst, self.shape)),
            float(self.expected[worst]),
            float(self.actual[worst]),
            float(scaled.max()),
            float(shares.max()),
            float(np.median(self.allowed)),
            (float(values.min()), float(values.max())) if values.size else (),
        )

    def _reasons(self, bad: Array, cosine: float) -> list[str]:
        reasons = []
        if float(bad.mean()) > self.allowance.mismatched:
            limit = _allowed_in_words(self.allowed, bad)
            reasons.append(f"{int(bad.sum())} of {bad.size} elements differ by more than {limit}")
            reasons += [self.allowance.why] if self.allowance.why else []
        if self.allowance.cosine is not None and not cosine >= self.allowance.cosine:
            reasons.append(f"cosine {cosine:.6f} under {self.allowance.cosine}")
        return reasons


def _deviate(expected: Array, actual: Array, allowance: Allowance) -> _Deviation:
    import numpy as np

    shape = tuple(expected.shape)
    expected, actual = expected.astype(np.float64).reshape(-1), actual.astype(np.float64).reshape(-1)
    error, same = errors_of(expected, actual)
    return _Deviation(shape, expected, actual, allowance, same, error, _allowed_to(error, allowance, shape))


def errors_of(expected: Array, actual: Array) -> tuple[Array, Array]:
    """By element of two flat arrays in FP64, by how much one is off, and whether it is the same: NaN is with NaN.

    Beside a number, NaN is off by infinity.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        error = np.abs(actual - expected)
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    error[same] = 0.0
    error[np.isnan(error)] = np.inf
    return error, same


def _allowed_to(error: Array, allowance: Allowance, shape: tuple[int, ...]) -> Array:
    """The usual limit, or where few elements are beyond it the one for outliers."""
    limit = _flat(allowance.limit, shape)
    if allowance.usual is None:
        return limit
    usual = _flat(allowance.usual, shape)
    beyond = int((~(error <= usual)).sum())
    return limit if 0 < beyond <= max(1.0, OUTLIERS * error.size) else usual


def _flat(values: Array, shape: tuple[int, ...]) -> Array:
    import numpy as np

    return np.broadcast_to(values, shape).reshape(-1)


def _allowed_in_words(allowed: Array, bad: Array) -> str:
    import numpy as np

    limit = float(np.median(allowed[bad])) if bad.any() else 0.0
    return f"the allowed {limit:.2g}" if limit > 0.0 else "nothing, and these are whole numbers or exact"


def _kind(array: Array) -> str:
    return "float" if array.dtype.kind in "fV" or array.dtype.name == "bfloat16" else "integer"


def _cosine(expected_values: Array, actual_values: Array) -> float:
    import numpy as np

    both = np.isfinite(expected_values) & np.isfinite(actual_values)
    a, b = expected_values, actual_values
    if not both.all():
        a, b = a[both], b[both]
    top = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    if top == 0.0:
        return 1.0
    with np.errstate(all="ignore"):
        a, b = a / top, b / top
    # einsum and not `@`: BLAS wakes threads for a sum of microseconds, and waits for them on a busy machine.
    norm = math.sqrt(float(np.einsum("i,i", a, a)) * float(np.einsum("i,i", b, b)))
    return float(np.einsum("i,i", a, b)) / norm if norm else 0.0


def compare_outputs(
    point: str,
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    allowances: Mapping[str, Allowance] | None = None,
) -> tuple[OutputComparison, ...]:
    """Compare all outputs by name; a missing one fails, an extra one is ignored.

    Rows whose scores tie within what is allowed may stand in another order.
    """
    allowed = {n: (allowances or {}).get(n) or allow(v) for n, v in expected.items() if v.size}
    results = _compare_each(point, expected, actual, allowed)
    if any(not r.passed and r.max_abs is not None for r in results):
        ordered = in_order_of(
            expected, actual, {n: a.limit if a.usual is None else a.usual for n, a in allowed.items()}
        )
        if any(ordered[n] is not v for n, v in actual.items()):
            results = _compare_each(point, expected, ordered, allowed)
    return results


def _compare_each(
    point: str, expected: Mapping[str, Array], actual: Mapping[str, Array], allowed: Mapping[str, Allowance]
) -> tuple[OutputComparison, ...]:
    results = []
    for name, expected_output in expected.items():
        if name not in actual:
            results.append(OutputComparison(name, point, False, "output is missing", tuple(expected_output.shape), ()))
            continue
        results.append(compare_output(name, point, expected_output, actual[name], allowed.get(name)))
    return tuple(results)


def first_failure(results: Iterable[OutputComparison]) -> OutputComparison | None:
    """The first comparison that failed, in order, or None."""
    return next((r for r in results if not r.passed), None)


def describe_failure(result: OutputComparison) -> str:
    """One line for people: which output, where, how far off."""
    if result.max_abs is None:
        return f"output '{result.output}' at {result.point}: {result.reason}"
    at = list(result.at)
    return (
        f"output '{result.output}' at {result.point}: {result.reason}; largest error {result.max_abs:.3g}, worst at "
        f"{at} (expected {result.expected_at:.6g}, got {result.actual_at:.6g})"
    )


def shows_nothing(comparisons: Iterable[OutputComparison]) -> tuple[str, ...]:
    """The outputs that a constant would have passed for: their values vary by no more than what is allowed.

    Give it the comparisons at points with random values. Whole numbers and empty outputs say what they say.
    """
    ranges: dict[str, tuple[float, float]] = {}
    allowed: dict[str, float] = {}
    for result in comparisons:
        if result.allowed is None or len(result.expected_range) != 2:
            continue
        low, high = ranges.get(result.output, result.expected_range)
        ranges[result.output] = min(low, result.expected_range[0]), max(high, result.expected_range[1])
        allowed[result.output] = max(allowed.get(result.output, 0.0), result.allowed)
    return tuple(n for n, (low, high) in ranges.items() if high - low <= 2.0 * allowed[n] and allowed[n] >= 0.0)
