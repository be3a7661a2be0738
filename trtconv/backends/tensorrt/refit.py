"""New weights in an engine that was built for that: the plan is loaded, given them by name, and written again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.admission import AdmittedEngine, deserialize_engine
from trtconv.backends.tensorrt.messages import logger_of
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.text.listing import list_names

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SHOWN = 8


def refit_plan(trt: Any, capabilities: Capabilities, admitted: AdmittedEngine, weights: Mapping[str, Array]) -> bytes:
    """The plan with these weights, by the names that they have in the ONNX graph.

    Raises UnsupportedError naming the weights that the engine cannot take, and those that it then lacks, TrtconvError
    with TensorRT's words where it refuses.
    """
    import numpy as np

    path = admitted.file.path
    with logger_of(trt).collect() as messages:
        # The runtime has to outlive the engine, and the arrays the refit.
        deserialized = deserialize_engine(trt, capabilities, admitted)
        engine = deserialized.engine
        if not engine.refittable:
            raise UnsupportedError(
                f"'{path}' was not built to take new weights", hint="build it with --option refit=true"
            )
        refitter = trt.Refitter(engine, logger_of(trt))
        _require_places(path, refitter.get_all_weights(), weights)
        arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
        for name, array in arrays.items():
            if not refitter.set_named_weights(name, trt.Weights(array)):
                raise TrtconvError(
                    f"{capabilities} does not take the new weight '{name}' of '{path}'", details=messages.errors[:SHOWN]
                )
        missing = refitter.get_missing_weights()
        if missing:
            raise UnsupportedError(
                f"'{path}' wants {len(missing)} more weights: {list_names(sorted(missing), SHOWN)}",
                hint="build the engine again",
            )
        if arrays and not refitter.refit_cuda_engine():
            raise TrtconvError(f"{capabilities} cannot refit '{path}'", details=messages.errors[:SHOWN])
        return bytes(engine.serialize())


def _require_places(path: Path, replaceable: Iterable[str], weights: Mapping[str, Array]) -> None:
    """Raise UnsupportedError for weights that the engine has no place for."""
    fixed = {*weights} - {*replaceable}
    if fixed:
        raise UnsupportedError(
            f"'{path}' has no place for {len(fixed)} of the {len(weights)} new weights: "
            f"{list_names(sorted(fixed), SHOWN)}",
            hint="TensorRT computed other constants from them; build the engine again",
        )
