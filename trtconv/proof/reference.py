"""The reference: what the original module computed at the sample points, so that no later room needs torch.

One safetensors file. Tensors are `p<index>/input/<name>` and `p<index>/output/<name>`, and `p<index>/rounding/<name>`
where the module's own rounding was measured for each element; the header's `trtconv` entry is JSON with the schema
version, the points, the inputs' specs, the output names, the shape space and roundings that are one number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import replacing, require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.tensors import TensorSpec, parse_tensor
from trtconv.proof.joint_sizes import SizeCoverage, coverage_of
from trtconv.proof.points import SamplePoint

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SCHEMA = 1


@dataclass(frozen=True)
class ReferenceInfo:
    """The header of a reference file. `rounding` is point index to output to one number for all elements."""

    points: tuple[SamplePoint, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    space: ShapeSpace
    source: str = ""
    rounding: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sizes: SizeCoverage | None = None


@dataclass(frozen=True)
class ReferenceSample:
    """One point with its inputs and the module's outputs, by name.

    `rounding` is the difference between the module's FP32 and FP64 outputs, where it was measured: one number for an
    output, or an array of the output's shape.
    """

    point: SamplePoint
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    rounding: Mapping[str, float | Array] = field(default_factory=dict)


def write_reference(path: Path, info: ReferenceInfo, samples: list[ReferenceSample]) -> None:
    """Write a reference file atomically. `samples` are in the order of `info.points`."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors: dict[str, Array] = {}
    for index, sample in enumerate(samples):
        rounding = {n: r for n, r in sample.rounding.items() if not isinstance(r, (int, float))}
        for kind, arrays in (("input", sample.inputs), ("output", sample.outputs), ("rounding", rounding)):
            for name, array in arrays.items():
                tensors[f"p{index}/{kind}/{name}"] = np.ascontiguousarray(array).reshape(array.shape)
    header = {
        "schema": SCHEMA,
        "points": [{"label": p.label, "dims": dict(p.dims), "values": p.values, "seed": p.seed} for p in info.points],
        "inputs": [str(s) for s in info.inputs],
        "outputs": list(info.outputs),
        "space": str(info.space),
        "source": info.source,
        "sizes": info.sizes.as_dict() if info.sizes else None,
        "rounding": {str(i): _numbers(s) for i, s in enumerate(samples) if _numbers(s)},
    }
    with replacing(path) as temporary:
        try:
            save_file(tensors, str(temporary), metadata={"trtconv": json.dumps(header)})
        except SafetensorError as error:
            raise InvalidRequestError(
                f"the reference '{path}' cannot be written: {error}", hint="free some space, or choose another place"
            ) from error


def _numbers(sample: ReferenceSample) -> dict[str, float]:
    return {n: float(r) for n, r in sample.rounding.items() if isinstance(r, (int, float))}


def read_reference_info(path: Path) -> ReferenceInfo:
    """Read the header only. Raises InvalidRequestError when the file is no reference."""
    from safetensors import SafetensorError, safe_open

    require_file(path, "reference")
    try:
        with safe_open(str(path), framework="numpy") as stream:
            header = json.loads((stream.metadata() or {})["trtconv"])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InvalidRequestError(
            f"'{path}' is not a reference file of trtconv", hint="export the module again to make one"
        ) from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no table")
    if header.get("schema") != SCHEMA:
        raise InvalidRequestError(
            f"the reference '{path}' has schema {header.get('schema')}, this trtconv reads {SCHEMA}",
            hint="export again",
        )
    try:
        points = tuple(
            SamplePoint(p["label"], tuple((n, int(v)) for n, v in p["dims"].items()), p["values"], p["seed"])
            for p in header["points"]
        )
        return ReferenceInfo(
            points, tuple(parse_tensor(t) for t in header["inputs"]), tuple(header["outputs"]),
            parse_space([header["space"]]), header.get("source", ""), _roundings(header.get("rounding", {})),
            sizes=coverage_of(header["sizes"]) if header.get("sizes") else None,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, InvalidRequestError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _damaged(path: Path, words: str) -> InvalidRequestError:
    return InvalidRequestError(f"the reference '{path}' is damaged ({words})", hint="export the module again")


def _roundings(data: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Raises ValueError for what is no rounding error: it is added to the tolerance."""
    found = {str(index): {str(n): float(r) for n, r in outputs.items()} for index, outputs in data.items()}
    if not all(0.0 <= r < math.inf for outputs in found.values() for r in outputs.values()):
        raise ValueError("a rounding error that is no number from 0 up")
    return found


def read_samples(path: Path) -> Iterator[ReferenceSample]:
    """Yield the samples one after another, so that only one point is in memory."""
    from safetensors import safe_open

    info = read_reference_info(path)
    with safe_open(str(path), framework="numpy") as stream:
        names = list(stream.keys())
        limits = _largest_roundings(stream, names)
        for index, point in enumerate(info.points):
            arrays: dict[str, dict[str, Array]] = {}
            for kind in ("input", "output", "rounding"):
                head = f"p{index}/{kind}/"
                arrays[kind] = {n[len(head) :]: stream.get_tensor(n) for n in names if n.startswith(head)}
            missing = [s.name for s in info.inputs if s.name not in arrays["input"]]
            if missing:
                raise _damaged(path, f"point {point.label} has no input '{missing[0]}'")
            for name, allowed in arrays["rounding"].items():
                if name not in arrays["output"] or allowed.shape != arrays["output"][name].shape:
                    raise _damaged(path, f"the rounding of '{name}' at {point.label} has another shape")
            ordered = {n: arrays["output"][n] for n in info.outputs if n in arrays["output"]}
            rounding: dict[str, float | Array] = {**info.rounding.get(str(index), {}), **arrays["rounding"]}
            _require_plausible(path, point, rounding, limits)
            yield ReferenceSample(point, arrays["input"], ordered, rounding)


def _largest_roundings(stream: Any, names: list[str]) -> dict[str, float]:
    """The largest error by output that rounding can explain: two values of the output differ by no more.

    That is twice the largest value at any point, or 2 where all are small. An output of integers may hold indices,
    which reach as far as the largest tensor has elements.
    """
    import numpy as np

    limits: dict[str, float] = {}
    elements = max((math.prod(stream.get_slice(n).get_shape()) for n in names), default=1)
    for name in names:
        _, kind, output = (*name.split("/", 2), "", "")[:3]
        if kind != "output":
            continue
        array = stream.get_tensor(name)
        finite = np.abs(array[np.isfinite(array)].astype(np.float64)) if array.dtype.kind in "fiu" else np.ones(1)
        largest = 2.0 * max(1.0, float(finite.max(initial=0.0)), elements if array.dtype.kind in "iu" else 0.0)
        limits[output] = max(limits.get(output, 0.0), largest)
    return limits


def _require_plausible(
    path: Path, point: SamplePoint, rounding: Mapping[str, float | Array], limits: Mapping[str, float]
) -> None:
    """Raise InvalidRequestError for an allowance with which any output would pass."""
    import numpy as np

    for name, allowed in rounding.items():
        numbers = np.asarray(allowed, np.float64)
        if not bool(np.all(numbers >= 0.0)):
            raise _damaged(path, f"the rounding of '{name}' at {point.label} is negative or no number")
        largest = float(numbers.max(initial=0.0))
        if largest > limits.get(name, 0.0):
            raise _damaged(
                path,
                f"it allows '{name}' an error of {largest:.3g} at {point.label}, more than the output's own values "
                f"({limits.get(name, 0.0) / 2:.3g})",
            )
