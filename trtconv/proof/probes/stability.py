"""What an original's own rounding allows at a probe: nothing but rounding where it is stable.

A probe puts operands on the boundary of a decision, so many elements may fall to the other side in FP64. Those are
allowed what they were measured to be off; the others, however few, only the rounding of their own kind. How far the
outputs move with the inputs is not asked: at a boundary they jump, and which side is right is what a probe asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtconv.proof.noise_floor import SPREAD

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# An error over this share of the output's magnitude is a decision that fell to the other side, and no rounding.
FLIP = 1e-3


def probe_allowance(errors: Array, output: Array) -> float | Array:
    """What each element is allowed, from |FP32 - FP64| of the original at a probe; both of the output's shape."""
    import numpy as np

    if not errors.size:
        return 0.0
    finite = np.abs(output[np.isfinite(output)].astype(np.float64))
    scale = max(float(np.sqrt(np.mean(finite * finite))), 1e-30) if finite.size else 1.0
    flips = errors > FLIP * scale
    stable = errors[~flips]
    usual = SPREAD * float(np.quantile(stable, 0.9)) if stable.size else 0.0
    if not flips.any():
        return min(usual, float(errors.max())) if usual else float(errors.max())
    return np.where(flips, errors, np.minimum(np.maximum(errors, usual), FLIP * scale)).astype(np.float32)
