"""What runs a part of a graph in a proof: ONNX Runtime, or ONNX's own evaluator for the ops that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import walk_nodes
from trtconv.proof.noise import planes, scales
from trtconv.proof.noise.coordinates import move_coordinates
from trtconv.proof.noise.rounding import ULPS
from trtconv.proof.original import Run

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


# A copy and its session take the weights' memory twice more.
LARGEST_COPY = 1 << 28
# Operators of which the inputs from this one on are no values that a rounding moves.
NOT_MOVED = {"Pow": 1, "Resize": 1, "Upsample": 1, "Range": 0}


def open_model(model: onnx.ModelProto, *, exact: bool = True) -> tuple[Run, str]:
    """ONNX Runtime, or the reference evaluator where it lacks an op. Raises TrtconvError when both refuse.

    `exact` is that of `OnnxRuntimeRunner`.
    """
    try:
        return GraphRunner(model, exact=exact), "onnxruntime"
    except TrtconvError as error:
        problem = error.message
    try:
        return ReferenceRunner(model), "onnx.reference"
    except TrtconvError as error:
        raise TrtconvError(f"{problem}; {error.message}") from error


class GraphRunner:
    """A graph in ONNX Runtime, one thread. Raises TrtconvError when it does not take the graph."""

    def __init__(self, model: onnx.ModelProto, *, exact: bool = True) -> None:
        self._model, self._exact = model, exact
        self._run = OnnxRuntimeRunner(model.SerializeToString(), threads=1, exact=exact)

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        return self._run(inputs)

    def perturbed(self, seed: int) -> Run | None:
        """The graph with its FP32 weights moved; None for one that is too large to copy, and without any."""
        if self._model.ByteSize() > LARGEST_COPY:
            return None
        copy = type(self._model)()
        copy.CopyFrom(self._model)
        if not move_weights(copy, seed, ULPS):
            return None
        return OnnxRuntimeRunner(copy.SerializeToString(), threads=1, exact=self._exact)

    def resampled(self, exact: Run | None = None) -> Sequence[Run]:
        """The graph with its coordinates moved to either side, its scales and its planes; empty when it has none."""
        return self._resampled

    @cached_property
    def _resampled(self) -> tuple[Run, ...]:
        models = [move_coordinates(self._model, sign) for sign in (1, -1)]
        if scales.rounds_to_steps(self._model):
            models += [_changed(self._model, scales.move_scales, seed) for seed in range(scales.SEEDS)]
        if planes.normalises_planes(self._model):
            models += [_changed(self._model, planes.move_planes, seed) for seed in range(planes.SEEDS)]
        return tuple(
            OnnxRuntimeRunner(m.SerializeToString(), threads=1, exact=self._exact) for m in models if m is not None
        )


def _changed(
    model: onnx.ModelProto, change: Callable[[onnx.ModelProto, int, float], object], seed: int
) -> onnx.ModelProto:
    copy = type(model)()
    copy.CopyFrom(model)
    change(copy, seed, ULPS)
    return copy


def move_weights(model: onnx.ModelProto, seed: int, ulps: float) -> bool:
    """Move each FP32 initializer by up to so many units in its last place, in place; False where there is none.

    One that lies outside the model is left as it is, and so is what is no weight: an exponent of 1.9999999 has no power
    of a negative number, and a moved scale may add a row.
    """
    import numpy as np
    from onnx import TensorProto, numpy_helper

    fixed = {
        name
        for node in walk_nodes(model.graph.node)
        if node.op_type in NOT_MOVED
        for name in node.input[NOT_MOVED[node.op_type] :]
    }
    chance, some = np.random.default_rng(seed), False
    step = np.float32(ulps * np.finfo(np.float32).eps)
    for tensor in model.graph.initializer:
        outside = tensor.data_location == TensorProto.EXTERNAL
        if tensor.data_type != TensorProto.FLOAT or outside or tensor.name in fixed:
            continue
        values = numpy_helper.to_array(tensor)
        noise = chance.uniform(-1.0, 1.0, values.shape).astype(np.float32)
        # A zero stays one, and an infinity; the least number, which fills masks, does not become one.
        change = np.where(np.isfinite(values), values, 0) * step * noise
        with np.errstate(over="ignore"):
            others = (values + change).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(np.where(np.isfinite(others), others, values), tensor.name))
        some = True
    return some


class ReferenceRunner:
    """ONNX's own evaluator, for ops that ONNX Runtime lacks."""

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx.reference import ReferenceEvaluator

        try:
            self._evaluator: Any = ReferenceEvaluator(model)
        except Exception as error:
            raise TrtconvError(f"the reference evaluator refuses the part: {error}") from error
        self._outputs = [o.name for o in model.graph.output]
        self._inputs = {i.name for i in model.graph.input}

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        import numpy as np

        try:
            with np.errstate(all="ignore"):
                values = self._evaluator.run(None, {k: v for k, v in inputs.items() if k in self._inputs})
        except Exception as error:
            raise TrtconvError(f"the reference evaluator fails: {type(error).__name__}: {error}") from error
        return dict(zip(self._outputs, values, strict=True))
