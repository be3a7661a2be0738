"""Whether one side of a cut holds for both: torch cuts where its own functions ask, and often for nothing.

nn.TransformerEncoder with a padding mask is exported for lengths from three on, and that graph is right for one and
two. An If for it would be in the way of what follows it, and no TensorRT takes one in another.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.explain import find_fork
from trtconv.export.branches.joined.cuts import Cut
from trtconv.proof.proving import prove
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.export.exporters.attempt import ExportTask
    from trtconv.proof.points import SamplePoint

    Array = np.ndarray[Any, np.dtype[Any]]

# All sizes below the cut are tried, where they are so few, with these values.
FEW = 8
VALUES = ("random", "zeros", "full")


def last_uncovered(job: ExportTask, model: Path, low: ShapeSpace, cut: Cut, above: Mapping[str, int]) -> int | None:
    """The largest size below a cut at which the model for sizes above it is not right; None where there is none.

    Where the user's lines are run otherwise than at the sizes `above`, it is not. Other dims are at their ends and in
    the middle.
    """
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    lengths = low[cut.dim].values()
    if len(lengths) > FEW:
        return cut.last
    corners = [dict(low.pick(end)) for end in ("min", "opt", "max")]
    try:
        run, usual = OnnxRuntimeRunner(model, rounded=True), job.make(job.point(above))
    except TrtconvError:
        return cut.last
    for length in reversed(lengths):
        points = [job.point({**corner, cut.dim: length}, kind) for corner in corners for kind in VALUES]
        if not all(_is_right(job, run, point, usual) for point in dict.fromkeys(points)):
            return length
    return None


def _is_right(job: ExportTask, run: OnnxRuntimeRunner, point: SamplePoint, usual: Mapping[str, Array]) -> bool:
    inputs = job.make(point)
    try:
        if find_fork(job.runner, usual, inputs) is not None:
            return False
        outputs = job.runner(inputs)
    except TrtconvError:
        return False
    sample = ReferenceSample(point, inputs, outputs, job.samples.floors_at(point, outputs))
    return prove(lambda: run, [sample], job.request.tolerance).equal
