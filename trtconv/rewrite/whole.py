"""The comparison of the two whole graphs, once, after all rules."""

from __future__ import annotations

import onnx

from trtconv.backends.onnxruntime_cpu import OnnxRuntimeRunner
from trtconv.core.comparison import (
    DEFAULT_TOLERANCE,
    OutputComparison,
    compare_outputs,
    describe_failure,
    first_failure,
)
from trtconv.core.errors import TrtconvError
from trtconv.core.onnx_file import external_files
from trtconv.core.sampling import SamplePoint, sample_inputs, sample_points
from trtconv.core.shapes import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.proof import by_type
from trtconv.rewrite.result import Proof

MAX_BYTES = 1 << 30
MAX_POINTS = 3
# Above this, one point with random values and the one with zeros have to do.
MANY_NODES = 10_000


def compare_whole(
    before: onnx.ModelProto, after: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...]
) -> Proof:
    """Run both graphs at the two smallest distinct shapes with random values and at the smallest with zeros.

    `passed` is None when they could not be run: weights on disk are not read for this (`trtconv check` does).
    """
    if external_files(before):
        return Proof(None, note="the weights are on disk and were not read; `trtconv check` compares the whole graph")
    if before.ByteSize() > MAX_BYTES:
        return Proof(None, note="the model is over 1 GiB; `trtconv check` compares the whole graph")
    try:
        first = OnnxRuntimeRunner(before.SerializeToString(), threads=1)
    except TrtconvError as error:
        return Proof(None, note=f"before: {error.message}")
    try:
        last = OnnxRuntimeRunner(after.SerializeToString(), threads=1)
    except TrtconvError as error:
        return Proof(False, "onnxruntime", note=f"after: {error.message}")
    points = _points(space, specs)
    return _compare(first, last, points if len(before.graph.node) <= MANY_NODES else points[-2:], specs)


def _compare(
    first: OnnxRuntimeRunner, last: OnnxRuntimeRunner, points: list[SamplePoint], specs: tuple[TensorSpec, ...]
) -> Proof:
    results: list[OutputComparison] = []
    shapes, labels, notes = [], [], []
    for point in points:
        feed = sample_inputs(specs, point)
        try:
            expected = first(feed)
        except TrtconvError as error:
            notes.append(f"before, at {point}: {error.message}")
            continue
        try:
            actual = last(feed)
        except TrtconvError as error:
            return Proof(False, "onnxruntime", note=f"after, at {point}: {error.message}")
        results += compare_outputs(str(point), expected, actual, DEFAULT_TOLERANCE, by_type(actual))
        shapes.append(tuple((n, tuple(a.shape)) for n, a in feed.items()))
        labels.append(str(point))
    failure = first_failure(tuple(results))
    note = describe_failure(failure) if failure else "; ".join(notes)
    passed = failure is None if results else None
    return Proof(passed, "onnxruntime", tuple(labels), tuple(shapes), tuple(results), note)


def _points(space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> list[SamplePoint]:
    """Small points first: the whole graph has to run twice at each."""

    def cost(point: SamplePoint) -> int:
        total = 0
        for spec in specs:
            size = 1
            for dim in spec.shape(point.sizes):
                size *= dim
            total += size
        return total

    points = sample_points(space, specs)
    random = sorted((p for p in points if p.values == "random"), key=cost)
    zeros = [p for p in points if p.values == "zeros"]
    return [*random[: MAX_POINTS - 1], *zeros[:1]]
