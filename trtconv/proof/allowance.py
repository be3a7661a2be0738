"""What may differ: the noise floor, what the target's arithmetic adds, and the limits that a user named.

With `floor` and `scale` of an element (see `proof.noise_floor`), by default an error of

    spread * (TYPICAL * floor + UNITS * u * (scale + |expected|)) + added * (scale + |expected|)

is allowed. `u` is the unit roundoff of the output's type (2^-24 for FP32, also for FP64, which engines compute in
FP32). `spread` is 1 for ONNX Runtime and more for engines, `added` is what a narrower type loses. Where a user names
`rtol` or `atol`, that limit stands in place of the part of the formula that grows with the element or does not; the
floor's part is allowed in any case: nobody can be held to more than the original keeps. A named `atol` is in units of
the column's magnitude where that is over 1, since elements that cancel are as far off as their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.precision import FP16, FP32, HALVES, PRECISIONS, QUANTISED_NAMES, ROUNDINGS
from trtconv.core.tolerance import NO_LIMITS, Tolerance
from trtconv.proof.noise.noise_floor import CHAOTIC, TYPICAL, NoiseFloor, profile
from trtconv.proof.statistics.columns import ENOUGH, FLIP
from trtconv.proof.statistics.quantised_noise import least_cosine

if TYPE_CHECKING:
    import numpy as np

    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

# Unit roundoffs of a column's magnitude. Libraries differ in exp, erf and tanh by a few units, in each of some layers.
UNITS = 16.0
# An engine sums in another order again (split-K), and by Winograd's F(4x4, 3x3), of which the largest FP32 error was
# measured as 7 times that of direct convolution (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
# 2015, table of element errors). ONNX Runtime, which `spread` 1 is calibrated by, uses neither. Of 42 networks on an
# H200 (TensorRT 8.6.0, benchmarks/results/gpu_zoo_floor.json) the one with the largest error needed 2.1.
ENGINE_SPREAD = 4.0
# Half precision: what an original loses in FP32 says how it amplifies roundings, so that much times the ratio of the
# unit roundoffs is allowed, but never more than this share of the magnitude.
AMPLIFIED = 4.0
MOST_AMPLIFIED = 0.05
# Columns whose noise is within this factor of the output's typical one are sums of terms of one size. One that is small
# because its terms cancel (one logit among a thousand) is as far off as its neighbours in half precision as well.
ALIKE = 8.0
# Of noise with a long tail so many elements, or one of few, may be as far off as the noisiest one was in FP32.
OUTLIERS = 1e-3
# Numbers below the smallest normal FP32 count as zero on GPUs.
TINY = 2.0**-126
UNIT_ROUNDOFF = {p.name: p.unit_roundoff for p in PRECISIONS}
UNIT_OF_DTYPE = {p.dtype: p.unit_roundoff for p in HALVES}


@dataclass(frozen=True)
class Arithmetic:
    """What computes: its narrowest type (`fp32`, `tf32`, `fp16`, `bf16`), and is it an engine (or ONNX Runtime)."""

    precision: str = FP32.name
    engine: bool = False

    @property
    def spread(self) -> float:
        """How much further it may be from the original than ONNX Runtime is."""
        return ENGINE_SPREAD if self.engine else 1.0

    @property
    def unit(self) -> float:
        """The unit roundoff of its narrowest type."""
        return UNIT_ROUNDOFF[self.precision]

    def __str__(self) -> str:
        """`an fp16 engine`."""
        return f"{self.precision} {'in an engine' if self.engine else 'in ONNX Runtime'}"


ONNX_RUNTIME = Arithmetic()
FP32_ENGINE = Arithmetic(engine=True)


@dataclass(frozen=True)
class Allowance:
    """For one output at one point: the allowed error by element (broadcasts over the output), and further limits.

    `scale` is the magnitude by which errors are reported, `why` one line for people where something is remarkable.
    Where `usual` is there, all elements but OUTLIERS of them have to keep it, and the others `limit`.
    """

    limit: Array
    scale: Array
    cosine: float | None = None
    mismatched: float = 0.0
    why: str = ""
    usual: Array | None = None


def resolve_tolerance(
    output: str, named: Tolerance | None = None, per_output: Mapping[str, Tolerance] | None = None
) -> Tolerance:
    """The limits that a user named for an output: its own ones first, then those for all; None follows the floor."""
    return (per_output or {}).get(output, NO_LIMITS).over(named)


def allow(
    expected: Array,
    floor: NoiseFloor | None = None,
    tolerance: Tolerance | None = None,
    arithmetic: Arithmetic = ONNX_RUNTIME,
) -> Allowance:
    """What one output may differ by. Without a floor the magnitude is that of `expected`, and its noise unknown."""
    import numpy as np

    named = tolerance or NO_LIMITS
    if floor is not None and floor.reach:
        if arithmetic.precision in QUANTISED_NAMES:
            return _allow_quantised(expected, floor, named)
        # What quantisation costs is nothing that others may be off.
        floor = None
    floor = floor or profile([expected], [None]).floor(expected)
    with np.errstate(all="ignore"):
        magnitude = np.where(np.isfinite(expected), np.abs(expected.astype(np.float64)), 0.0)
        scale, noise = floor.scale.astype(np.float64), TYPICAL * floor.error.astype(np.float64)
        unit = UNIT_OF_DTYPE.get(expected.dtype.name, FP32.unit_roundoff)
        grows = arithmetic.spread * UNITS * unit
        if arithmetic.precision != FP32.name:
            grows = max(grows, ROUNDINGS * arithmetic.unit)
        # Steps of whole numbers are whole: a floor in float32 makes 19.9999995 of twelve twelfths of 20.
        limit, tail = arithmetic.spread * np.where(floor.exact, np.rint(noise), noise), None
        limit = limit + np.where(floor.exact, 0.0, _last_step(expected, limit))
        if named.atol is None:
            fixed = grows * scale + UNITS * TINY
            if arithmetic.precision != FP32.name:
                most, ratio = MOST_AMPLIFIED * _magnitude_of_terms(floor), AMPLIFIED * arithmetic.unit / unit
                tail = np.maximum(fixed, np.minimum(ratio * _largest_noise(floor), most))
                fixed = np.maximum(fixed, np.minimum(ratio * floor.error, most))
        else:
            fixed = named.atol * np.maximum(1.0, scale)
        relative = grows if named.rtol is None else named.rtol
        held = _held(floor, named)
        usual = limit + np.where(held, 0.0, fixed + relative * magnitude)
        limit = usual if tail is None else limit + np.where(held, 0.0, tail + relative * magnitude)
    why = ""
    if floor.chaotic:
        why = f"the original's own noise is large there: more than {CHAOTIC / TYPICAL:.1%} of most of its values"
    return Allowance(limit, scale, named.cosine, named.mismatched or 0.0, why, None if tail is None else usual)


def _allow_quantised(expected: Array, floor: NoiseFloor, named: Tolerance) -> Allowance:
    """What quantisation was measured to cost, and the roundings of what is left in half precision.

    An engine rounds at the same scales as the emulation, only elsewhere: its errors are of the same size.
    """
    import numpy as np

    magnitude = np.where(np.isfinite(expected), np.abs(expected.astype(np.float64)), 0.0)
    scale = floor.scale.astype(np.float64)
    limit = floor.reach * floor.error.astype(np.float64)
    fixed = ROUNDINGS * FP16.unit_roundoff * scale if named.atol is None else named.atol * np.maximum(1.0, scale)
    relative = ROUNDINGS * FP16.unit_roundoff if named.rtol is None else named.rtol
    cosine = named.cosine if named.cosine is not None else least_cosine(expected, floor)
    why = f"quantisation was measured to be off by up to {floor.reach:.0f} times its typical error"
    return Allowance(limit + fixed + relative * magnitude, scale, cosine, named.mismatched or 0.0, why)


def _largest_noise(floor: NoiseFloor) -> Array:
    """The noise of each element, but that of the noisiest one in channels of its kind, in units of their magnitudes.

    Of a softmax over large logits a few positions lie near a tie and amplify roundings ten times as much as the others.
    FP32 shows that there are such positions; the draw at one of them says little of it. Decisions that fell to the
    other side are left out.
    """
    import numpy as np

    scale, noise = np.broadcast_arrays(floor.scale.astype(np.float64), floor.error.astype(np.float64))
    with np.errstate(all="ignore"):
        relative = np.where((scale > 0.0) & (noise <= FLIP * scale), noise / scale, 0.0)
    others = tuple(a for a in range(noise.ndim) if a != 1 or noise.ndim == 1)
    typical = np.median(relative, axis=others, keepdims=True)
    middle = np.median(typical)
    alike = (typical >= middle / ALIKE) & (typical <= middle * ALIKE)
    return np.where(alike, np.maximum(noise, relative.max(initial=0.0, where=alike) * scale), noise)


def _magnitude_of_terms(floor: NoiseFloor) -> Array:
    """The scale of each element, but that of its neighbours in its sample where it is smaller and just as noisy."""
    import numpy as np

    scale, noise = np.broadcast_arrays(floor.scale.astype(np.float64), floor.error.astype(np.float64))
    typical = np.median(noise[noise > 0.0]) if (noise > 0.0).any() else 0.0
    alike = (noise >= typical / ALIKE) & (noise <= typical * ALIKE)
    by_sample = scale.ndim > 1 and scale[0].size >= ENOUGH
    groups = zip(scale, alike, strict=True) if by_sample else [(scale, alike)]
    neighbours = np.array([np.median(s[a]) if a.any() else 0.0 for s, a in groups])
    neighbours = neighbours.reshape(-1, *[1] * (scale.ndim - 1)) if scale.ndim else neighbours[0]
    return np.where(alike, np.maximum(scale, neighbours), scale)


def _last_step(expected: Array, limit: Array) -> Array:
    """One unit in the last place of bfloat16, where FP32 outputs were rounded to it at the end and may be off as far.

    Two numbers that differ by an allowed error before they are rounded differ by up to one unit more behind it.
    """
    import numpy as np

    none = np.zeros([1] * expected.ndim)
    if expected.dtype != np.float32:
        return none
    numbers = expected[np.isfinite(expected)]
    if not numbers.size or (numbers.view(np.uint32) & 0xFFFF).any():
        return none
    # |x| = m * 2^e with m from 0.5 to 1, and bfloat16 has 8 digits.
    exponents = np.frexp(np.where(np.isfinite(expected), expected, 0.0))[1]
    step = np.ldexp(1.0, exponents - 8)
    return np.where((limit >= step) & (expected != 0.0), step, 0.0)


def _held(floor: NoiseFloor, named: Tolerance) -> Array:
    """Whole numbers are exact unless a user named a limit."""
    import numpy as np

    if named.rtol is not None or named.atol is not None:
        return np.zeros_like(floor.exact)
    return floor.exact


def allowances(
    sample: ReferenceSample,
    tolerance: Tolerance | None = None,
    per_output: Mapping[str, Tolerance] | None = None,
    arithmetic: Arithmetic = ONNX_RUNTIME,
) -> dict[str, Allowance]:
    """What the outputs of a sample may differ by."""
    return {
        name: allow(value, sample.floors.get(name), resolve_tolerance(name, tolerance, per_output), arithmetic)
        for name, value in sample.outputs.items()
    }


def allowances_without_floor(
    outputs: Mapping[str, Array], tolerance: Tolerance | None = None, arithmetic: Arithmetic = ONNX_RUNTIME
) -> dict[str, Allowance]:
    """What outputs may differ by of which no noise was measured."""
    return {name: allow(value, None, tolerance, arithmetic) for name, value in outputs.items()}
