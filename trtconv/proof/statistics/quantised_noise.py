"""What quantisation itself costs, measured by emulation on data that neither calibrates nor judges.

A model in INT8 or FP8 is not equal to its original by intent: every activation is off by up to half a step, and what
comes out is a sum of thousands of such errors. How large they typically are, by column, differs between networks by a
factor of ten, and the largest of so many errors is far beyond the typical one. So both are measured: the quantised
graph and the original run on the search part, and the judging part, or an engine, may be off as far as that predicts.

Of eight trained networks (nine outputs, `examples/digits`), each split at random 300 times, the largest error of 64
unseen samples was at most 2.04 times the largest one of the other half in units of its column's typical error (99 % of
splits: 1.93), and 1 - cosine at most 2.5 times what the typical errors predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.precision import INT8, ROUNDINGS
from trtconv.proof.noise.noise_floor import LUCK, NoiseFloor
from trtconv.proof.statistics.columns import along, column_axes, magnitudes, rows_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Unseen samples are off by at most this many times the largest error that was measured; see above.
UNSEEN = 2.5
# 1 - cosine may be this many times what the typical errors predict.
UNSEEN_COSINE = 4.0
# A graph whose typical error is beyond so many roundings of its magnitude was quantised badly; more is not allowed.
MOST_NOISE = ROUNDINGS * INT8.unit_roundoff
# So many samples of the search part are enough for the largest error: with 64, a detector's scores reached 3.9 times.
SAMPLES = 256


@dataclass(frozen=True)
class QuantisedNoise:
    """Of one output: the typical error (root mean square) by column of `axis`, in the output's units.

    `reach` is how many typical errors an element may be off.
    """

    axis: int | None
    typical: Array
    scale: Array
    reach: float

    def floor(self, output: Array) -> NoiseFloor:
        """The floor at a point; it broadcasts over the output."""
        import numpy as np

        error = along(self.typical, self.axis, output.ndim).astype(np.float32)
        scale = along(self.scale, self.axis, output.ndim).astype(np.float32)
        return NoiseFloor(error, scale, np.zeros([1] * output.ndim, bool), reach=self.reach)


def measure_quantised_noise(expected: Sequence[Array], actual: Sequence[Array]) -> QuantisedNoise | None:
    """The noise of one output from its values in the original and in the quantised graph, one pair for each run.

    None for outputs of whole numbers, of which quantisation changes decisions and no digits. Of several axes of columns
    the one counts whose columns hold the most alike errors.
    """
    import numpy as np

    if not expected or expected[0].dtype.kind != "f":
        return None
    errors = [b.astype(np.float64) - a.astype(np.float64) for a, b in zip(expected, actual, strict=True)]
    if not all(np.isfinite(e).all() for e in errors):
        return None
    axes: tuple[int | None, ...] = column_axes([tuple(e.shape) for e in expected]) or (None,)
    return min((_along_axis(axis, expected, errors) for axis in axes), key=lambda noise: noise.reach)


def _along_axis(axis: int | None, expected: Sequence[Array], errors: Sequence[Array]) -> QuantisedNoise:
    import numpy as np

    rows = [rows_of(e, axis) for e in errors]
    count = sum(r.shape[1] for r in rows)
    typical = np.sqrt(sum((r**2).sum(axis=1) for r in rows) / max(1, count))
    typical = np.maximum(typical, max(float(np.median(typical)) / LUCK, 1e-300))
    largest = np.max([np.abs(r).max(axis=1, initial=0.0) for r in rows], axis=0)
    reach = UNSEEN * float((largest / typical).max(initial=1.0))
    scale = np.sqrt(np.mean([magnitudes(rows_of(e, axis)) ** 2 for e in expected], axis=0))
    # Over all columns: one of a class that is never there has no magnitude of its own.
    share = float(np.sqrt(np.mean(typical**2)) / max(float(np.sqrt(np.mean(scale**2))), 1e-300))
    return QuantisedNoise(axis, typical * min(1.0, MOST_NOISE / max(share, 1e-300)), scale, reach)


def least_cosine(expected: Array, floor: NoiseFloor) -> float | None:
    """The least cosine similarity that typical errors explain; None where the output is all zero, or empty."""
    import numpy as np

    if not expected.size:
        return None
    signal = float(np.mean(np.where(np.isfinite(expected), expected.astype(np.float64), 0.0) ** 2))
    noise = float(np.mean(np.broadcast_to(floor.error.astype(np.float64) ** 2, expected.shape)))
    if signal <= 0.0:
        return None
    return 1.0 - UNSEEN_COSINE * noise / signal / 2.0
