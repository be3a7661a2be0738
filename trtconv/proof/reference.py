"""The reference: what the original module computed at the sample points, so that no later room needs torch.

One safetensors file. Tensors are `p<index>/input/<name>`, `p<index>/output/<name>`, and of the noise floor
`p<index>/error/<name>`, `.../scale/<name>` and `.../exact/<name>`, which broadcast over the output; the header's
`trtconv` entry is JSON with the schema version, the points, the inputs' specs, the output names and the shape space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trtconv.core.artifacts import replacing, require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.fixed_rows import FixedOutput, FixedRows, resized
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.tensors import TensorSpec, parse_tensor
from trtconv.core.text.json_text import parse_json
from trtconv.proof.noise.noise_floor import NoiseFloor
from trtconv.proof.points import SamplePoint

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_Kind = TypeVar("_Kind")

SCHEMA = 2
# No distribution of errors has its largest one so far out.
MOST_REACH = 1000.0
KINDS = ("input", "output", "error", "scale", "exact")


@dataclass(frozen=True)
class ReferenceInfo:
    """The header of a reference file. `chaotic` holds (point index, output) pairs; `reach` is by quantised output."""

    points: tuple[SamplePoint, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    space: ShapeSpace
    source: str = ""
    chaotic: frozenset[tuple[int, str]] = frozenset()
    reach: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ReferenceSample:
    """One point with its inputs, the module's outputs and their noise floors, by name.

    `pinned` are bools of an input's shape: the elements that a decision compares as they are (`noise.pinned`). It is
    not written into the file.
    """

    point: SamplePoint
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    floors: Mapping[str, NoiseFloor] = field(default_factory=dict)
    pinned: Mapping[str, Array] = field(default_factory=dict)


def write_reference(path: Path, info: ReferenceInfo, samples: list[ReferenceSample]) -> None:
    """Write a reference file atomically. `samples` are in the order of `info.points`."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors: dict[str, Array] = {}
    outputs = [(n, v) for s in samples for n, v in s.outputs.items()]
    elements = max((v.size for s in samples for v in (*s.inputs.values(), *s.outputs.values())), default=1)
    limits = _largest_errors(outputs, elements)
    for index, sample in enumerate(samples):
        parts = [sample.inputs, sample.outputs]
        for kind in KINDS[2:]:
            arrays_of_kind = {n: getattr(f, kind) for n, f in sample.floors.items()}
            if kind != "exact":
                # Casts to integers can be further off than all that an output holds, at infinities for one.
                arrays_of_kind = {n: np.minimum(v, limits.get(n, np.inf)) for n, v in arrays_of_kind.items()}
            parts.append(arrays_of_kind)
        for kind, arrays in zip(KINDS, parts, strict=True):
            for name, array in arrays.items():
                tensors[f"p{index}/{kind}/{name}"] = np.ascontiguousarray(array).reshape(array.shape)
    header = {
        "schema": SCHEMA,
        "points": [{"label": p.label, "dims": dict(p.dims), "values": p.values, "seed": p.seed} for p in info.points],
        "inputs": [str(s) for s in info.inputs],
        "outputs": list(info.outputs),
        "space": str(info.space),
        "source": info.source,
        "chaotic": [[i, n] for i, s in enumerate(samples) for n, f in s.floors.items() if f.chaotic],
    }
    reach = {n: f.reach for s in samples for n, f in s.floors.items() if f.reach}
    if reach:
        header["reach"] = reach
    with replacing(path) as temporary:
        try:
            save_file(tensors, str(temporary), metadata={"trtconv": json.dumps(header)})
        except SafetensorError as error:
            raise InvalidRequestError(
                f"the reference '{path}' cannot be written: {error}", hint="free some space, or choose another place"
            ) from error


def read_reference_info(path: Path) -> ReferenceInfo:
    """Read the header only. Raises InvalidRequestError for any other file."""
    from safetensors import SafetensorError, safe_open

    require_file(path, "reference")
    try:
        with safe_open(str(path), framework="numpy") as stream:
            header = parse_json((stream.metadata() or {})["trtconv"])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise InvalidRequestError(
            f"'{path}' is not a reference file of trtconv", hint="export the module again to make one"
        ) from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a table")
    if header.get("schema") != SCHEMA:
        raise InvalidRequestError(
            f"the reference '{path}' has schema {header.get('schema')}, this trtconv reads {SCHEMA}",
            hint="export again",
        )
    try:
        points = tuple(
            SamplePoint(
                _of(str, p["label"]),
                tuple((n, int(v)) for n, v in p["dims"].items()),
                _of(str, p["values"]),
                _of(int, p["seed"]),
            )
            for p in header["points"]
        )
        return ReferenceInfo(
            points,
            tuple(parse_tensor(t) for t in header["inputs"]),
            tuple(_of(str, n) for n in _of(list, header["outputs"])),
            parse_space([header["space"]]),
            _of(str, header.get("source", "")),
            frozenset((int(i), str(n)) for i, n in header.get("chaotic", [])),
            {str(n): _reach(r) for n, r in header.get("reach", {}).items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InvalidRequestError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _of(kind: type[_Kind], value: Any) -> _Kind:
    """The value of a header's field, which may be anything. Raises TypeError for another type."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r:.60} is not of type {kind.__name__}")
    return value


def _reach(value: Any) -> float:
    """How many typical errors an element may be off. Raises ValueError for what would allow anything."""
    reach = float(value)
    if not 0.0 < reach < MOST_REACH:
        raise ValueError(f"an element may not be off by {value} typical errors")
    return reach


def _damaged(path: Path, reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"the reference '{path}' is damaged ({reason})", hint="export the module again")


def read_samples(path: Path) -> Iterator[ReferenceSample]:
    """Yield the samples one after another, so that only one point is in memory."""
    from safetensors import safe_open

    info = read_reference_info(path)
    with safe_open(str(path), framework="numpy") as stream:
        names = list(stream.keys())
        elements = max((math.prod(stream.get_slice(n).get_shape()) for n in names), default=1)
        split = ((n, *n.split("/", 2)) for n in names if n.count("/") >= 2)
        outputs = ((output, stream.get_tensor(n)) for n, _, kind, output in split if kind == "output")
        limits = _largest_errors(outputs, elements)
        for index, point in enumerate(info.points):
            arrays: dict[str, dict[str, Array]] = {}
            for kind in KINDS:
                head = f"p{index}/{kind}/"
                arrays[kind] = {n[len(head) :]: stream.get_tensor(n) for n in names if n.startswith(head)}
            missing = [s.name for s in info.inputs if s.name not in arrays["input"]]
            if missing:
                raise _damaged(path, f"point {point.label} has no input '{missing[0]}'")
            floors = {
                n: _floor(path, point, n, arrays, (index, n) in info.chaotic, info.reach.get(n, 0.0))
                for n in arrays["error"]
            }
            ordered = {n: arrays["output"][n] for n in info.outputs if n in arrays["output"]}
            _require_plausible(path, point, floors, limits)
            yield ReferenceSample(point, arrays["input"], ordered, floors)


def _largest_errors(outputs: Iterable[tuple[str, Array]], elements: int) -> dict[str, float]:
    """The largest error by output that rounding can explain: two values of the output differ by no more.

    That is twice the largest value at any point, or 2 where all are small. An output of integers may hold indices,
    which reach as far as the largest tensor has `elements`.
    """
    import numpy as np

    limits: dict[str, float] = {}
    for name, array in outputs:
        finite = np.abs(array[np.isfinite(array)].astype(np.float64)) if array.dtype.kind in "fiu" else np.ones(1)
        largest = 2.0 * max(1.0, float(finite.max(initial=0.0)), elements if array.dtype.kind in "iu" else 0.0)
        limits[name] = max(limits.get(name, 0.0), largest)
    return limits


def _require_plausible(
    path: Path, point: SamplePoint, floors: Mapping[str, NoiseFloor], limits: Mapping[str, float]
) -> None:
    """Raise InvalidRequestError for an allowance with which any output would pass."""
    for name, floor in floors.items():
        largest = max(floor.largest, float(floor.scale.max(initial=0.0)))
        if largest > limits.get(name, 0.0):
            raise _damaged(
                path,
                f"it allows '{name}' an error of {largest:.3g} at {point.label}, more than the output's own values "
                f"({limits.get(name, 0.0) / 2:.3g})",
            )


def _floor(
    path: Path, point: SamplePoint, name: str, arrays: Mapping[str, Mapping[str, Array]], chaotic: bool, reach: float
) -> NoiseFloor:
    """One floor out of the file: numbers from 0 up that broadcast over the output, since they are what is allowed."""
    import numpy as np

    try:
        error, scale, exact = (arrays[kind][name] for kind in KINDS[2:])
        shape = arrays["output"][name].shape
        for part in (error, scale, exact):
            if np.broadcast_shapes(part.shape, shape) != shape:
                raise ValueError
        if not (np.all(error >= 0) and np.all(scale >= 0) and np.isfinite(error).all() and np.isfinite(scale).all()):
            raise ValueError
    except (KeyError, ValueError) as problem:
        raise _damaged(path, f"the noise floor of '{name}' at {point.label} does not fit the output") from problem
    return NoiseFloor(error, scale, exact.astype(bool), chaotic, reach)


def formed_samples(samples: Iterable[ReferenceSample], form: FixedRows | None) -> Iterator[ReferenceSample]:
    """The samples of a reference with outputs and noise floors in that form; as they are without one."""
    for sample in samples:
        yield formed_sample(sample, form)


def formed_sample(sample: ReferenceSample, form: FixedRows | None) -> ReferenceSample:
    """One sample in that form. Rows that do not count are zero, and allowed nothing."""
    if form is None:
        return sample
    by_name = {o.output: o for o in form.outputs}
    floors = {n: _formed_floor(f, by_name[n]) if n in by_name else f for n, f in sample.floors.items()}
    return replace(sample, outputs=form.pad(sample.outputs), floors=floors)


def _formed_floor(floor: NoiseFloor, item: FixedOutput) -> NoiseFloor:
    def along(array: Array) -> Array:
        return array if array.shape[item.axis] == 1 else resized(array, item.axis, item.rows)

    return replace(floor, error=along(floor.error), scale=along(floor.scale), exact=along(floor.exact))
