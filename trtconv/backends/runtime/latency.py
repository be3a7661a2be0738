"""How long an engine takes: device time and host time apart, with warm-up and enough runs to speak of percentiles.

Device time is between two events around one launch; host time is from the call until the result is there; throughput
is over launches back to back. Inputs lie on the device before the clock starts and nothing is copied while it runs.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.driver import probe_cuda

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import StreamTimer
    from trtconv.backends.protocol import EngineRunner

    Array = np.ndarray[Any, np.dtype[Any]]

WARM_UP_S = 0.3
MIN_RUNS, MAX_RUNS = 50, 2000


@dataclass(frozen=True)
class Percentiles:
    """Seconds over `runs` runs."""

    runs: int
    median: float
    mean: float
    p90: float
    p99: float
    least: float
    most: float


@dataclass(frozen=True)
class Latency:
    """One way of running one thing at one point. `batch` is the first input's first dim; throughput in samples/s."""

    subject: str
    point: str
    batch: int
    device: Percentiles
    host: Percentiles
    throughput: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, seconds as they are."""
        return asdict(self)


def percentiles(samples: Sequence[float]) -> Percentiles:
    """Nearest-rank percentiles of seconds."""
    ordered = sorted(samples)

    def rank(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    mean = sum(ordered) / len(ordered)
    return Percentiles(len(ordered), median, mean, rank(0.90), rank(0.99), ordered[0], ordered[-1])


class WallInterval:
    """An `Interval` by the clock of the host, for runs that return when the device has finished."""

    def __init__(self) -> None:
        self._begin = self._end = 0.0

    def begin(self) -> None:
        """Here the clock starts."""
        self._begin = time.perf_counter()

    def end(self) -> None:
        """Here it stops."""
        self._end = time.perf_counter()

    def seconds(self) -> float:
        """Seconds between both."""
        return self._end - self._begin


def measure(
    launch: Callable[[], object],
    synchronize: Callable[[], None],
    interval: Callable[[], StreamTimer],
    *,
    subject: str,
    point: str,
    batch: int,
    seconds: float = 1.0,
    warm_up: float = WARM_UP_S,
) -> Latency:
    """Measure anything that launches work on a stream. `seconds` bounds each of the three loops."""
    start, once = time.perf_counter(), 0
    while time.perf_counter() - start < warm_up or once < 3:
        launch()
        synchronize()
        once += 1
    estimate = (time.perf_counter() - start) / once
    runs = max(MIN_RUNS, min(MAX_RUNS, int(seconds / max(estimate, 1e-6))))
    host = []
    for _ in range(runs):
        start = time.perf_counter()
        launch()
        synchronize()
        host.append(time.perf_counter() - start)
    # Made before the loop, so that nothing but the launch lies between begin and end.
    intervals = [interval() for _ in range(runs)]
    for each in intervals:
        each.begin()
        launch()
        each.end()
    synchronize()
    device = [each.seconds() for each in intervals]
    start = time.perf_counter()
    for _ in range(runs):
        launch()
    synchronize()
    rate = runs * batch / (time.perf_counter() - start)
    return Latency(subject, point, batch, percentiles(device), percentiles(host), rate)


def measure_engine(
    session: EngineRunner,
    inputs: Mapping[str, Array],
    *,
    point: str,
    cuda_graph: bool = False,
    seconds: float = 1.0,
    warm_up: float = WARM_UP_S,
) -> Latency:
    """Measure an engine at the shapes of `inputs`."""
    prepared = session.prepare(inputs, cuda_graph=cuda_graph)
    first = session.inputs[0].name
    shape = tuple(inputs[first].shape) if first in inputs else ()
    # The context is pushed once for the whole measurement.
    with prepared.memory.current():
        return measure(
            prepared,
            prepared.synchronize,
            prepared.interval,
            subject="engine + CUDA graph" if cuda_graph else "engine",
            point=point,
            batch=shape[0] if shape else 1,
            seconds=seconds,
            warm_up=warm_up,
        )


def clock_state() -> dict[str, str]:
    """What nvidia-smi says of clocks, temperature and power of the GPU in use; empty where it is not installed."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    fields = ("name", "clocks.sm", "clocks.mem", "clocks.max.sm", "temperature.gpu", "power.draw", "pstate")
    # nvidia-smi counts all GPUs of the machine, CUDA only those of CUDA_VISIBLE_DEVICES, and in an order of its own.
    gpus = probe_cuda().gpus
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    command += [f"--id={_nvidia_smi_id(gpus[0].uuid)}"] if gpus else []
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = completed.stdout.splitlines()[0].split(",") if completed.stdout else []
    return dict(zip(fields, (v.strip() for v in values), strict=False))


def _nvidia_smi_id(uuid: str) -> str:
    """The 32 hexadecimal digits of CUDA's UUID as nvidia-smi writes them."""
    return "GPU-" + "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]))
