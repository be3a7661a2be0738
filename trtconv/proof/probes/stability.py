"""The noise floor at a probe: nothing but rounding where the original is stable.

A probe puts operands on the boundary of a decision, so many elements may fall to the other side in FP64. Those are
allowed what they were measured to be off; the others, however few, only the rounding of their own kind. How far the
outputs move with the inputs is not asked: at a boundary they jump, and which side is right is what a probe asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trtconv.proof.noise.noise_floor import NoiseFloor, OutputProfile
from trtconv.proof.statistics.columns import FLIP

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def probe_floor(profile: OutputProfile, output: Array, errors: Array | None) -> NoiseFloor:
    """The floor of an output at a probe, from |own precision - FP64| there; both arrays have the output's shape."""
    import numpy as np

    if errors is None or not output.size:
        return profile.floor(output, errors, random=False)
    scale = np.broadcast_to(profile.floor(output, None, random=False).scale, output.shape)
    flips = errors > FLIP * scale
    floor = profile.floor(output, np.where(flips, np.float32(0.0), errors), random=False)
    if not flips.any():
        return floor
    return replace(floor, error=np.maximum(floor.error, np.where(flips, errors, np.float32(0.0))).astype(np.float32))
