"""What an engine of TensorRT 8.6 adds at a Tanh: its own kernel is off by up to a hundred thousandth of the result.

Measured on an H200 (benchmarks/results/gpu_fast_tanh.json): 1.04e-5 of tanh(x) where TensorRT computes it itself,
alone, behind a product or a convolution, in a GELU by tanh and in a Mish; 2e-7 where Myelin compiles it with others.
ONNX Runtime and torch have every digit, so that no rounding of the original shows it. What comes of it at an output is
measured in the graph that the engine was built from, with each Tanh off by that much to either side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.check.blame.origins import graph_of
from trtconv.check.compare.subjects import Subject
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import graphs_of, replace_nodes, walk_nodes
from trtconv.core.model.file import external_files, load_model
from trtconv.core.precision import FP32, TF32
from trtconv.proof.allowance import Allowance, Arithmetic

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

# Of tanh(x); the largest that was measured is 0.68 of it.
TANH_ERROR = 2.0**-16
MEASURED = re.compile(r"\btensorrt 8\.")


class FastTanh:
    """What the Tanh nodes of a graph add to each output, measured at a sample when it is asked for."""

    def __init__(self, graph: Path) -> None:
        self._graph = graph
        self._runs: tuple[OnnxRuntimeRunner, ...] | None = None
        self._errors: dict[str, dict[str, Array]] = {}

    def added(self, sample: ReferenceSample, allowed: Mapping[str, Allowance]) -> dict[str, Allowance]:
        """What is allowed, with what comes of the Tanh nodes; unchanged where the graph cannot be run."""
        point = str(sample.point)
        if point not in self._errors:
            self._errors[point] = self._measured(sample.inputs)
        errors = self._errors[point]
        return {n: _with(a, errors[n]) if n in errors else a for n, a in allowed.items()}

    def _measured(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        import numpy as np

        try:
            self._runs = self._runs or tuple(
                OnnxRuntimeRunner(_with_tanh_off(load_model(self._graph), error).SerializeToString())
                for error in (0.0, TANH_ERROR, -TANH_ERROR)
            )
            right, *others = (run(inputs) for run in self._runs)
        except TrtconvError:
            return {}
        errors: dict[str, Array] = {}
        for name, value in right.items():
            if value.dtype.kind == "f" and all(o[name].shape == value.shape for o in others):
                with np.errstate(invalid="ignore"):
                    changes = [np.abs(o[name].astype(np.float64) - value.astype(np.float64)) for o in others]
                errors[name] = np.nan_to_num(np.maximum(*changes), nan=0.0, posinf=0.0)
        return errors


def fast_tanh_of(subject: Subject, arithmetic: Arithmetic) -> FastTanh | None:
    """For an FP32 engine of TensorRT 8 whose graph lies beside it and has a Tanh; None for anything else."""
    if subject.engine is None or arithmetic.precision not in (FP32.name, TF32.name):
        return None
    graph = graph_of(subject.path) if MEASURED.search(subject.runner) else None
    if graph is None:
        return None
    try:
        model = load_model(graph)
    except TrtconvError:
        return None
    has_tanh = any(n.op_type == "Tanh" and not n.domain for n in walk_nodes(model.graph.node))
    return FastTanh(graph) if has_tanh and not external_files(model) else None


def _with(allowed: Allowance, error: Array) -> Allowance:
    usual = None if allowed.usual is None else allowed.usual + error
    return replace(allowed, limit=allowed.limit + error, usual=usual)


def _with_tanh_off(model: onnx.ModelProto, error: float) -> onnx.ModelProto:
    """The model, in place, with each Tanh of FP32 times 1 and an error."""
    import onnx

    factor = "trtconv_tanh_factor"
    model.graph.initializer.append(onnx.helper.make_tensor(factor, onnx.TensorProto.FLOAT, [], [1.0 + error]))
    for graph in graphs_of(model.graph):
        nodes = []
        for node in graph.node:
            nodes.append(node)
            if node.op_type == "Tanh" and not node.domain:
                output = node.output[0]
                node.output[0] = f"{output}/exact"
                nodes.append(onnx.helper.make_node("Mul", [node.output[0], factor], [output], f"{output}/off"))
        replace_nodes(graph, nodes)
    return model
