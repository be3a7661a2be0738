"""For which sizes of the shape space a graph is undefined, and which multiple of a dim makes it defined.

A skip connection that is halved and doubled again is off by one for odd sizes. ONNX's shape inference in strict mode
says so without running anything: an Add or Concat whose integer shapes do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from onnx import shape_inference

from trtconv.core.onnx_file import signature
from trtconv.core.progress import Progress
from trtconv.core.shapes import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.concrete import with_sizes
from trtconv.rewrite.facts import without_weights
from trtconv.rewrite.points import shape_points

MULTIPLES = (2, 4, 8, 16, 32, 64)
# Sizes looked at per dim: all of a small range, of a large one these many from both ends and around opt.
MANY = 24
# Above this, inference at many sizes takes longer than the rewrite itself.
MANY_NODES = 5000


@dataclass(frozen=True)
class UndefinedDim:
    """A dim with sizes at which the graph is undefined. `multiple` is None when no multiple up to 64 helps."""

    name: str
    sizes: tuple[int, ...]
    multiple: int | None
    problem: str

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.sizes[:4])) + (", ..." if len(self.sizes) > 4 else "")
        text = f"the graph is undefined at {self.name} = {shown} ({self.problem})"
        if self.multiple is None:
            return f"{text}; no multiple up to 64 helps"
        remedy = f"give the range as {self.name}=MIN:OPT:MAX%{self.multiple}"
        return f"{text}; multiples of {self.multiple} are defined: {remedy}"


def warn_of_undefined_sizes(model: onnx.ModelProto, progress: Progress) -> list[str]:
    """Look at the recorded shape space: at its sample points first, closer when one of them is undefined."""
    found = signature(model)
    if not found.space.dims or len(model.graph.node) > MANY_NODES:
        return []
    light = without_weights(model)
    points = shape_points(found.space, found.inputs)
    if all(problem_at(light, found.inputs, p.sizes) is None for p in points):
        return []
    notes = [str(u) for u in undefined_dims(model, found.space, found.inputs)]
    for note in notes:
        progress.warn(note)
    return notes


def undefined_dims(
    model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...]
) -> tuple[UndefinedDim, ...]:
    """Look at each dim on its own, the others at opt, or at a size that is defined when opt is not."""
    light = without_weights(model)
    base = _defined_base(light, space, specs)
    if base is None:
        return ()
    found = (_look(light, space, specs, base, name, rng) for name, rng in space.dims)
    return tuple(u for u in found if u is not None)


def _defined_base(light: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> dict[str, int] | None:
    """Sizes at which the graph is defined: opt, or the multiples of 64 nearest to it."""
    opt = space.pick("opt")
    round_up = {n: min(-(-v // 64) * 64, space[n].max) for n, v in opt.items()}
    for sizes in (opt, round_up, space.pick("max"), space.pick("min")):
        if problem_at(light, specs, sizes) is None:
            return sizes
    return None


def _look(
    light: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], base: dict[str, int], name: str,
    rng: DimRange,
) -> UndefinedDim | None:  # fmt: skip
    problems = {}
    for size in sizes_of(rng):
        problem = problem_at(light, specs, {**base, name: size})
        if problem is not None:
            problems[size] = problem
    if not problems:
        return None
    steps = [m for m in MULTIPLES if m % rng.multiple == 0 and any(v % m == 0 for v in rng.values())]
    multiple = next((m for m in steps if _all_defined(light, specs, base, name, rng, m)), None)
    first = min(problems)
    return UndefinedDim(name, tuple(sorted(problems)), multiple, problems[first])


def _all_defined(
    light: onnx.ModelProto, specs: tuple[TensorSpec, ...], base: dict[str, int], name: str, rng: DimRange, multiple: int
) -> bool:
    low = -(-rng.min // multiple) * multiple
    high = rng.max // multiple * multiple
    if low > high:
        return False
    sizes = sizes_of(DimRange(low, low, high, multiple))
    return all(problem_at(light, specs, {**base, name: s}) is None for s in sizes)


def sizes_of(rng: DimRange) -> list[int]:
    """The sizes of a range that are looked at, in order."""
    values = rng.values()
    if len(values) <= 3 * MANY:
        return list(values)
    middle = values.index(rng.opt) if rng.opt in values else len(values) // 2
    near = range(max(0, middle - MANY // 2), min(len(values), middle + MANY // 2))
    return sorted({*values[:MANY], *(values[i] for i in near), *values[-MANY:]})


def problem_at(light: onnx.ModelProto, specs: tuple[TensorSpec, ...], sizes: Mapping[str, int]) -> str | None:
    """What strict shape inference objects to at these sizes, in its first line, or None."""
    try:
        shape_inference.infer_shapes(with_sizes(light, specs, sizes), strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return _short(str(error))
    return None


def _short(text: str) -> str:
    """The op and the objection out of ONNX's long message."""
    op = re.search(r"op_type:(\w+)", text)
    name = re.search(r"node name: ([^)]+)\)", text)
    objection = text.split("[ShapeInferenceError]")[-1].split("\n")[0].strip().rstrip(".")
    differ = re.search(r"Inferred=(\d+) Declared=(\d+) Dimension=(\d+)", objection)
    if differ:
        objection = f"{differ[1]} against {differ[2]} on axis {differ[3]}"
    where = " ".join(p for p in (op[1] if op else "", f"'{name[1]}'" if name else "") if p)
    return f"{where}: {objection}"[:200] if where else objection[:200]
