"""For which sizes of the shape space a graph is undefined, and which multiple of a dim makes it defined.

A skip connection that is halved and doubled again is off by one for odd sizes. ONNX's shape inference in strict mode
says so without running anything: an Add or Concat whose integer shapes do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import onnx
from onnx import shape_inference

from trtconv.core.model.file import signature
from trtconv.core.model.inference import infer_propagated, without_weights
from trtconv.core.progress import Progress
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.sizes import shape_points
from trtconv.proof.undefined_sizes import UndefinedDim, find_undefined
from trtconv.rewrite.graph.concrete import with_sizes

# Above this, inference at many sizes takes longer than the rewrite itself.
MANY_NODES = 5000


def warn_of_undefined_sizes(model: onnx.ModelProto, progress: Progress) -> list[str]:
    """Look at the recorded shape space: at its sample points first, closer when one of them is undefined."""
    interface = signature(model)
    named = {n for s in interface.inputs for n in s.names()}
    # A space that was recorded for other names says nothing of this graph.
    if not interface.space.dims or not named <= set(interface.space) or len(model.graph.node) > MANY_NODES:
        return []
    light = without_weights(model)
    points = shape_points(interface.space, interface.inputs)
    if all(problem_at(light, interface.inputs, p.sizes) is None for p in points):
        return []
    notes = [str(u) for u in undefined_dims(model, interface.space, interface.inputs)]
    for note in notes:
        progress.warn(note)
    return notes


def undefined_dims(
    model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], *, cover: bool = False
) -> tuple[UndefinedDim, ...]:
    """The dims with sizes at which strict shape inference objects; `cover` as in `find_undefined`."""
    light = without_weights(model)
    return find_undefined(lambda sizes: problem_at(light, specs, sizes), space, cover=cover)


def problem_at(light: onnx.ModelProto, specs: tuple[TensorSpec, ...], sizes: Mapping[str, int]) -> str | None:
    """What strict shape inference objects to at these sizes, in its first line, or None.

    Inference looks into both branches of an If: one that is not taken at these sizes may be undefined there.
    """
    try:
        infer_propagated(with_sizes(light, specs, sizes), strict=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        problem = _short(str(error))
        return None if re.match(r"If\b", problem) else problem
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
