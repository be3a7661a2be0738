"""Inputs that lie exactly where a decision compares them: what an original loses by rounding there.

An original's noise is what it does when its inputs and weights move by a rounding. At `x == -9999` that takes the other
side, though nothing rounds there: each right graph decides alike. So elements that a decision compares as they are fed
are left where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.proof.original import Branching, Gated, Logistic, Original, Reordering, Resampling, Run, Summing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

# The digits of FP32 and of FP16 that are all their own.
DIGITS, DIGITS_OF_HALVES = 7, 3
# A number's neighbours, which are fed beside it.
NEAR = 4 * 2.0**-23


def measured_at(original: Original, sample: ReferenceSample) -> Original:
    """The original as its noise is measured at a sample."""
    return PinnedOriginal(original, sample) if sample.pinned else original


def exact_at(exact: Run | None, sample: ReferenceSample) -> Run | None:
    """The original in FP64 as its noise is measured at a sample: 0.7 is fed as the FP32 number next to it and as 0.7.

    What is nearer counts. In FP64 a 0.7 in the code and one of FP32 are two numbers: `x >= 0.7` is false for the
    latter.
    """
    return _Nearest(exact, sample) if exact is not None and sample.pinned else exact


@dataclass(frozen=True)
class PinnedOriginal:
    """An original whose pinned elements do not move, nor do its weights, to which they may be compared."""

    original: Original
    sample: ReferenceSample

    @property
    def weight_bytes(self) -> int:
        """The bytes of its weights."""
        return self.original.weight_bytes

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once in its own precision. Raises TrtconvError."""
        return self.original(self._put_back(inputs))

    def exact(self) -> Run | None:
        """The same in FP64 (`exact_at`)."""
        return exact_at(self.original.exact(), self.sample)

    def is_another_in_fp64(self, inputs: Mapping[str, Array]) -> bool:
        """Whether the original takes another path in FP64."""
        return isinstance(self.original, Branching) and self.original.is_another_in_fp64(inputs)

    def perturbed(self, seed: int) -> Run | None:
        """None: its weights stay as they are."""
        return None

    def flushed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once with denormal numbers taken for zero. Raises TrtconvError."""
        return self.original.flushed(self._put_back(inputs))

    def resampled(self, exact: Run | None = None) -> Sequence[Run]:
        """Its FP64 `exact` with coordinates, scales and planes moved; empty when it has none."""
        return self.original.resampled(exact) if isinstance(self.original, Resampling) else ()

    def inexact(self, exact: Run) -> Sequence[Run]:
        """Its FP64 `exact` with inexact gates; empty when it has none."""
        return self.original.inexact(exact) if isinstance(self.original, Gated) else ()

    def resummed(self, exact: Run) -> Run:
        """Its FP64 `exact` with sums in another order, where it has such."""
        return self.original.resummed(exact) if isinstance(self.original, Summing) else exact

    def logistic(self, exact: Run) -> Run:
        """Its FP64 `exact` with inexact logistics, where it has such."""
        return self.original.logistic(exact) if isinstance(self.original, Logistic) else exact

    def reranked(self, seed: int, ties: bool) -> Run | None:
        """The same with what it ranks nearly equal in another order; None where it ranks nothing."""
        return self.original.reranked(seed, ties) if isinstance(self.original, Reordering) else None

    def _put_back(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        import numpy as np

        pinned = self.sample.pinned
        return {n: np.where(pinned[n], self.sample.inputs[n], v) if n in pinned else v for n, v in inputs.items()}


@dataclass(frozen=True)
class _Nearest:
    """An FP64 run whose pinned elements are FP32 or FP16 numbers, and the decimal ones that were written."""

    run: Run
    sample: ReferenceSample

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        import numpy as np

        written = dict(inputs)
        for name, pinned in self.sample.pinned.items():
            halves = self.sample.inputs[name].dtype.itemsize == 2
            decimals = as_written(inputs[name], DIGITS_OF_HALVES if halves else DIGITS)
            written[name] = np.where(pinned, decimals, inputs[name])
        first, second = self.run(inputs), self.run(written)
        return {n: _nearer(v, second.get(n), self.sample.outputs.get(n)) for n, v in first.items()}


def as_written(values: Array, digits: int = DIGITS) -> Array:
    """FP64 numbers rounded to the decimal digits that FP32 holds, or fewer: what 0.7 in FP32 was before."""
    import numpy as np

    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.maximum(np.abs(values), 1e-30)))
        # Dividing by a whole power of ten gives the double that the digits stand for; multiplying by 1e-7 does not.
        power, places = 10.0 ** np.abs(digits - 1 - size), digits - 1 - size
        rounded = np.where(places >= 0, np.round(values * power) / power, np.round(values / power) * power)
    result: Array = np.where(np.isfinite(values) & (values != 0), rounded, values)
    return result


def near_numbers(values: Array, numbers: Sequence[float]) -> Array:
    """Which elements are one of the numbers, or within a few roundings of it."""
    import numpy as np

    at = np.zeros(values.shape, bool)
    for number in numbers:
        at |= np.abs(values.astype(np.float64) - number) <= NEAR * abs(number)
    return at


def _nearer(one: Array, other: Array | None, to: Array | None) -> Array:
    import numpy as np

    if other is None or to is None or not one.shape == other.shape == to.shape or one.dtype.kind not in "fiub":
        return one
    with np.errstate(all="ignore"):
        far = np.abs(one.astype(np.float64) - to.astype(np.float64))
        near = np.abs(other.astype(np.float64) - to.astype(np.float64)) < far
    result: Array = np.where(near, other, one)
    return result
