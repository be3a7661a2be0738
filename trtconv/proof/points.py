"""The sample points: the shapes and the values at which two things are compared.

Everything is a function of the shape space and a seed, so that a failure can be reproduced by naming its label.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.sizes import format_bytes
from trtconv.core.tensors import TensorSpec
from trtconv.proof.probes.masks import MASK_KINDS
from trtconv.proof.probes.values import INFINITE_KINDS, PROBE_KINDS, probe_kinds, probe_values

if TYPE_CHECKING:
    import numpy as np

# Values made for the decisions of one graph; they cannot be drawn from a spec.
BOUNDARY = "boundary"
PATH = "path"
"""The label of points at the sizes of other paths through the module."""


@dataclass(frozen=True)
class SamplePoint:
    """One shape with one kind of values. `advisory` points are compared and reported but never fail a check."""

    label: str
    dims: tuple[tuple[str, int], ...]
    values: str = "random"
    seed: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """The dims as a dict."""
        return dict(self.dims)

    @property
    def advisory(self) -> bool:
        """NaN inputs are advisory: frameworks differ in `max(NaN, 0)` and no author relies on it.

        So are infinities, which become NaN in any sum that has both and in Winograd's transforms; a difference there
        is told in a note.
        """
        return self.values == "nan" or self.values in INFINITE_KINDS

    @property
    def masks(self) -> bool:
        """True for values that differ from random ones in their masks only."""
        return self.values in MASK_KINDS

    @property
    def probes(self) -> bool:
        """True for values that were made to lie where something is decided."""
        return self.values in PROBE_KINDS or self.values == BOUNDARY

    def __str__(self) -> str:
        shape = " ".join(f"{n}={v}" for n, v in self.dims) or "static"
        return f"{self.label} ({shape}{'' if self.values == 'random' else ', ' + self.values})"


def _near(rng: DimRange, value: float) -> int:
    """The member of the range nearest to `value`."""
    low = -(-rng.min // rng.multiple) * rng.multiple
    steps = round((value - low) / rng.multiple)
    top = (rng.max - low) // rng.multiple
    return low + max(0, min(steps, top)) * rng.multiple


def awkward_size(rng: DimRange, fraction: float, avoid: Iterable[int] = ()) -> int:
    """A size near `fraction` of the way from min to max that divides by as little as the range allows.

    In units of the multiple it is odd, and not divisible by 3, 5 or 7 when there is such a value nearby, and not in
    `avoid`, so that two dims do not get the same size by chance and hide a swapped axis.
    """
    avoided = set(avoid)
    target = _near(rng, rng.min + fraction * (rng.max - rng.min))
    around = (
        sorted(rng.values(), key=lambda v: (abs(v - target), v))
        if len(rng.values()) <= 4096
        else [
            v for step in range(2048) for v in (target - step * rng.multiple, target + step * rng.multiple) if v in rng
        ]
    )

    def badness(value: int) -> tuple[int, int]:
        unit = value // rng.multiple
        shared = sum(2 if p == 2 else 1 for p in (2, 3, 5, 7) if unit % p == 0 and unit > 1)
        return shared + 4 * (value in avoided), 0

    window = around[:24] or [target]
    return min(window, key=lambda v: (badness(v), window.index(v)))


def _interior(space: ShapeSpace, fraction: float, batch: Iterable[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for index, (name, rng) in enumerate(space.dims):
        shifted = (fraction + 0.21 * index) % 0.9 + 0.05
        sizes[name] = awkward_size(rng, shifted, sizes.values())
        if name in set(batch) and sizes[name] == 1 and rng.max > 1:
            sizes[name] = min(v for v in rng.values() if v > 1)
    return sizes


def batch_dims(specs: Iterable[TensorSpec]) -> tuple[str, ...]:
    """Names that stand first in some input's dims: what users call the batch."""
    firsts = [s.dims[0] for s in specs if s.dims and isinstance(s.dims[0], str)]
    return tuple(dict.fromkeys(f for f in firsts if isinstance(f, str)))


def sample_points(
    space: ShapeSpace, specs: Iterable[TensorSpec] = (), *, traced: Mapping[str, int] | None = None, seed: int = 0
) -> tuple[SamplePoint, ...]:
    """The points at which a model over `space` is compared.

    Traced size (when given), min, opt, max, two corners (every second dim at its other end), three interior ones
    that divide by nothing, one with a batch over 1 at the min of everything else, and at an interior size the
    values zero, large (1e4), denormal and NaN. Where an input has a range, at max its highest values: no mask is ever
    all true at random, and no length as long as its axis. Then the probes that the dtypes ask for (`probes.values`),
    at a small size with a batch over 1. Points with equal sizes and values are given once.
    """
    batch = batch_dims(specs)
    low, high = space.pick("min"), space.pick("max")
    names = list(space)
    candidates: list[tuple[str, dict[str, int], str]] = []
    if traced is not None:
        candidates.append(("traced", {n: traced[n] for n in names}, "random"))
    candidates += [("opt", space.pick("opt"), "random"), ("min", low, "random"), ("max", high, "random")]
    inner = [_interior(space, f, batch) for f in (0.31, 0.57, 0.78)]
    candidates += [(f"interior-{i + 1}", sizes, "random") for i, sizes in enumerate(inner)]
    if len(names) > 1:
        for start in (0, 1):
            corner = {n: (low if (i % 2 == start) else high)[n] for i, n in enumerate(names)}
            candidates.append((f"corner-{start + 1}", corner, "random"))
    if batch:
        candidates.append(("batch", {**low, **{n: inner[0][n] for n in batch}}, "random"))
    at_inner_sizes = [inner[0], inner[1], space.pick("opt")] + ([candidates[0][1]] if traced is not None else [])
    small = min(at_inner_sizes, key=lambda sizes: math.prod(sizes.values()))
    candidates += [
        ("zeros", small, "zeros"),
        ("large", small, "large"),
        ("denormal", small, "denormal"),
        ("nan", small, "nan"),
    ]
    if any(has_highest(s) for s in specs):
        candidates.append(("full", high, "full"))
    rows = min(at_inner_sizes, key=lambda s: (any(s[n] == 1 < space[n].max for n in batch), math.prod(s.values())))
    candidates += [(f"probe-{kind}", rows, kind) for kind in probe_kinds((s.dtype.kind, s.value_range) for s in specs)]
    points: dict[tuple[Any, str], SamplePoint] = {}
    for label, sizes, values in candidates:
        dims = tuple((n, sizes[n]) for n in names)
        points.setdefault((dims, values), SamplePoint(label, dims, values, seed))
    return tuple(points.values())


def has_highest(spec: TensorSpec) -> bool:
    """True for inputs of which there is a highest value: booleans, integers, and floats with a value range."""
    return spec.dtype.kind in ("bool", "int") or spec.value_range is not None


def sample_array(spec: TensorSpec, point: SamplePoint) -> np.ndarray[Any, np.dtype[Any]]:
    """The values of one input at one point: shape `spec.shape(point.sizes)`, dtype `spec.dtype`.

    Random floats are standard normal, or uniform in the value range; random integers are uniform in the value range
    (default 0 to 9, inclusive), booleans are fair. `large` is random times 1e4 and `denormal` is random times 1e-40
    (float types only, and only without a value range; others stay random). `nan` sets one element in 64 to NaN.
    `full` is the highest value everywhere (true for booleans); floats without a value range stay random. Probes:
    see `probes.values`.
    """
    import numpy as np

    if point.values in PROBE_KINDS:
        random = sample_array(spec, replace(point, values="random"))
        return probe_values(point.values, random, spec.value_range, point.seed)
    # One stream per input, so that adding an input does not change the values of the others.
    rng = np.random.default_rng([point.seed, zlib.crc32(spec.name.encode()), zlib.crc32(point.label.encode())])
    shape, dtype = spec.shape(point.sizes), spec.dtype.numpy()
    low, high = spec.value_range or (0.0, 9.0)
    if point.values == "zeros":
        fill = min(max(0.0, low), high) if spec.value_range else 0.0
        return np.full(shape, fill).astype(dtype)
    if point.values == "full" and has_highest(spec):
        return np.full(shape, True if spec.dtype.kind == "bool" else high).astype(dtype)
    if spec.dtype.kind == "bool":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if spec.dtype.kind == "int":
        return np.asarray(rng.integers(int(low), int(high) + 1, shape), dtype)
    # Of a scalar NumPy gives a number and not an array.
    values = np.asarray(rng.uniform(low, high, shape) if spec.value_range else rng.standard_normal(shape))
    if not spec.value_range:
        top = {"large": 1e4, "denormal": 1e-40}
        values *= top.get(point.values, 1.0) if spec.dtype.name != "float16" or point.values != "large" else 64.0
    if point.values == "nan" and values.size:
        flat = values.reshape(-1)
        flat[:: 64 if flat.size >= 64 else max(1, flat.size)] = np.nan
        values = flat.reshape(shape)
    return values.astype(dtype)


def sample_inputs(specs: Iterable[TensorSpec], point: SamplePoint) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """All inputs at one point, by name. Raises InvalidRequestError when one does not fit the memory."""
    return {s.name: _fitting(s, point) for s in specs}


def _fitting(spec: TensorSpec, point: SamplePoint) -> np.ndarray[Any, np.dtype[Any]]:
    # Values are drawn as float64. NumPy raises something else where a size is beyond every machine.
    needed = 8 * math.prod(spec.shape(point.sizes))
    try:
        if needed >= 2**48:
            raise MemoryError
        return sample_array(spec, point)
    except MemoryError as error:
        raise InvalidRequestError(
            f"input '{spec.name}' {list(spec.shape(point.sizes))} needs {format_bytes(needed)} of memory, more than "
            "there is",
            hint="make its dims or the ranges given with --dynamic smaller",
        ) from error
