"""ONNX Runtime on the GPU, measured like the others where its CUDA provider is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.runtime.latency import Latency, WallInterval, measure
from trtconv.core.errors import MissingDependencyError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

PROVIDER = "CUDAExecutionProvider"


def measure_onnxruntime(model: Path, inputs: Mapping[str, Array], *, point: str, seconds: float = 1.0) -> Latency:
    """Measure a model with inputs and outputs bound to the GPU. A run waits for the device, so both times are host's.

    Raises MissingDependencyError where ONNX Runtime has no CUDA provider.
    """
    import onnxruntime as ort

    if PROVIDER not in ort.get_available_providers():
        raise MissingDependencyError(
            "the installed ONNX Runtime has no CUDA provider", hint="pip install onnxruntime-gpu"
        )
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(model), options, providers=[PROVIDER])
    if PROVIDER not in session.get_providers():
        raise MissingDependencyError(
            "ONNX Runtime's CUDA provider does not start here", hint="its CUDA and cuDNN versions must be installed"
        )
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    first = next(iter(inputs.values()))
    return measure(
        lambda: session.run_with_iobinding(binding),
        binding.synchronize_outputs,
        WallInterval,
        subject="ONNX Runtime CUDA",
        point=point,
        batch=first.shape[0] if first.ndim else 1,
        seconds=seconds,
    )
