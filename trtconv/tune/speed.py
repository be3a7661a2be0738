"""How long a candidate takes: its engine on the GPU of this machine, or nothing where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.backends.cuda.driver import probe_cuda
from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import Progress
from trtconv.core.requests import BuildRequest
from trtconv.tune.engine_layers import EngineLayers, read_engine_layers

if TYPE_CHECKING:
    import numpy as np

    from trtconv.tune.measure import Run

    Array = np.ndarray[Any, np.dtype[Any]]


# How often each layer is timed: for the share that a precision has in the whole.
RUNS = 20


@dataclass(frozen=True)
class Timed:
    """A candidate made ready: seconds of one run (the median, at the opt sizes), and how to run it.

    `layers` is what the engine itself tells of its layers.
    """

    seconds: float
    run: Run
    close: Any
    layers: EngineLayers = field(default_factory=EngineLayers)


class Stopwatch(Protocol):
    """Makes a model run and measures it."""

    name: str

    def open(self, model: Path, precision: str, inputs: Mapping[str, Array]) -> Timed:
        """Raises what building and running raise."""


class EngineStopwatch:
    """Engines by the backend of a build request, measured on the device."""

    def __init__(self, request: BuildRequest, progress: Progress) -> None:
        self._request, self._progress = request, progress
        self.name = "engine"

    def open(self, model: Path, precision: str, inputs: Mapping[str, Array]) -> Timed:
        """Build beside the model, load, and measure at `inputs`."""
        from trtconv.backends.runtime.latency import measure_engine
        from trtconv.backends.select import backend_of
        from trtconv.build import build_engine

        engine = model.with_suffix(".engine")
        build_engine(replace(self._request, model=model, output=engine, precision=precision), self._progress)
        session = backend_of(engine).load(engine, plugins=self._request.plugins)
        try:
            # Launching a small network takes longer than running it, in whatever precision.
            latency = measure_engine(session, inputs, point="opt", cuda_graph=True)
        except UnsupportedError:
            latency = measure_engine(session, inputs, point="opt")
        # Run once, since TensorRT 8.6 tells no types before the shapes are set.
        layers = read_engine_layers(session.layers(runs=RUNS))
        return Timed(latency.device.median, session, session.close, layers)


def stopwatch_here(request: BuildRequest, progress: Progress) -> Stopwatch | None:
    """What measures on this machine; None without a GPU: then speed is not known."""
    return EngineStopwatch(request, progress) if probe_cuda().gpus else None
