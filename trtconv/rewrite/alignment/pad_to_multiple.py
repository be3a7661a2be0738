"""`--pad-to-multiple` on a graph: Pad and Slice around it, so that it takes every size of its shape space.

Rules run on the padded graph afterwards, so that targets without a Pad mode get what they have instead.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.model.file import external_files
from trtconv.core.model.inference import without_weights
from trtconv.core.shape_space.alignment import covering_space
from trtconv.core.shape_space.crops import Observe, cropped_axes
from trtconv.core.shape_space.padded_graph import insert_padding
from trtconv.core.shape_space.padding import Padding, padded_inputs
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure
from trtconv.proof.points import SamplePoint, sample_inputs, sample_points
from trtconv.rewrite.graph.concrete import ConcreteShapes

MAX_POINTS = 5


def pad_model(
    model: onnx.ModelProto,
    specs: tuple[TensorSpec, ...],
    space: ShapeSpace,
    multiples: Mapping[str, int],
    mode: str,
    *,
    proof: bool,
) -> tuple[onnx.ModelProto, list[str]]:
    """The padded model, and notes. Raises InvalidRequestError when an output cannot be cut back."""
    covered = covering_space(space, multiples)
    pads = padded_inputs(specs, space, multiples, mode)
    padding = Padding(pads, cropped_axes(_observer(model, specs), specs, covered, multiples))
    padded = insert_padding(model, padding, specs, space)
    notes = [f"--pad-to-multiple: {padding.describe()}"]
    if proof and external_files(model):
        notes.append("the padding was not run: the weights are on disk; `trtconv check` compares the whole graph")
    elif proof:
        _prove(model, padded, padding, specs, space)
    return padded, notes


def _observer(model: onnx.ModelProto, specs: tuple[TensorSpec, ...]) -> Observe:
    """The outputs' shapes by inference, or by running the graph where that does not tell."""
    light = without_weights(model)
    runners: list[OnnxRuntimeRunner] = []

    def observe(sizes: Mapping[str, int]) -> Mapping[str, tuple[int, ...]]:
        concrete = ConcreteShapes(light, specs, sizes)
        output_shapes = {v.name: concrete.shape(v.name) for v in model.graph.output}
        if all(s is not None for s in output_shapes.values()):
            return {n: s for n, s in output_shapes.items() if s is not None}
        if external_files(model):
            unknown = next(n for n, s in output_shapes.items() if s is None)
            raise TrtconvError(
                f"the size of output '{unknown}' cannot be told without reading the weights",
                hint="use --align, or give --pad-to-multiple to `trtconv export`",
            )
        if not runners:
            runners.append(OnnxRuntimeRunner(model.SerializeToString(), threads=1))
        inputs = sample_inputs(specs, SamplePoint("probe", tuple(sizes.items())))
        return {n: tuple(a.shape) for n, a in runners[0](inputs).items()}

    return observe


def _prove(
    before: onnx.ModelProto, after: onnx.ModelProto, padding: Padding, specs: tuple[TensorSpec, ...], space: ShapeSpace
) -> None:
    """The padded graph equals the graph on inputs that NumPy padded, its outputs cut by NumPy."""
    padded_original = padding.around(OnnxRuntimeRunner(before.SerializeToString(), threads=1))
    runner = OnnxRuntimeRunner(after.SerializeToString(), threads=1)
    points = [p for p in sample_points(space, specs) if p.values == "random"]
    # Small points first: the graph runs twice at each.
    points.sort(key=lambda p: sum(sample.size for sample in sample_inputs(specs, p).values()))
    for point in points[:MAX_POINTS]:
        inputs = sample_inputs(specs, point)
        results = compare_outputs(str(point), padded_original(inputs), runner(inputs))
        failure = first_failure(results)
        if failure is not None:
            raise AccuracyError(
                f"the padded graph differs from the graph on padded inputs: {describe_failure(failure)}",
                hint="use --align instead",
            )
