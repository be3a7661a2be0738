"""What runs a part of a graph in a proof: ONNX Runtime, or ONNX's own evaluator for the ops that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.proof.coordinates import move_coordinates
from trtconv.proof.original import Run
from trtconv.proof.rounding import ULPS
from trtconv.proof.scales import SEEDS, move_scales, rounds_to_steps

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


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

    def resampled(self, exact: Run | None = None) -> Sequence[Run]:
        """The graph with its coordinates moved to either side and its scales moved; empty when it has neither."""
        return self._resampled

    @cached_property
    def _resampled(self) -> tuple[Run, ...]:
        models = [move_coordinates(self._model, sign) for sign in (1, -1)]
        if rounds_to_steps(self._model):
            models += [_with_moved_scales(self._model, seed) for seed in range(SEEDS)]
        return tuple(
            OnnxRuntimeRunner(m.SerializeToString(), threads=1, exact=self._exact) for m in models if m is not None
        )


def _with_moved_scales(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    copy = type(model)()
    copy.CopyFrom(model)
    move_scales(copy, seed, ULPS)
    return copy


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
