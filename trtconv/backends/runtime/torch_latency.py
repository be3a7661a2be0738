"""The same measurement for a torch module: eager, torch.compile, and torch.compile with CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.backends.runtime.latency import Latency, measure
from trtconv.core.errors import MissingDependencyError
from trtconv.core.text.error_text import first_line

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MODES = ("eager", "compile", "compile + CUDA graph")


def measure_torch(
    module: Callable[..., Any],
    inputs: Mapping[str, Array],
    *,
    point: str,
    batch: int,
    tf32: bool = False,
    modes: Sequence[str] = MODES,
    seconds: float = 1.0,
) -> tuple[tuple[Latency, ...], dict[str, str]]:
    """Measure a module on the GPU; the second part says which modes failed and why.

    `inputs` go to the module in order. TF32 is set for convolutions and products alike, as the engine's is.
    Raises MissingDependencyError where torch has no CUDA.
    """
    import torch

    if not torch.cuda.is_available():
        raise MissingDependencyError("torch sees no GPU here", hint="install a torch with CUDA")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    moved = module.to("cuda").eval() if isinstance(module, torch.nn.Module) else module
    arguments = [torch.as_tensor(a).to("cuda") for a in inputs.values()]
    latencies, failed = [], {}
    for mode in modes:
        try:
            latencies.append(_measure_mode(torch, moved, arguments, mode, point, batch, seconds))
        except Exception as error:  # noqa: BLE001 - a compiler may fail in any way; the others are still measured
            failed[mode] = f"{type(error).__name__}: {first_line(error)}"
    return tuple(latencies), failed


class _TorchInterval:
    """An `Interval` by torch's events."""

    def __init__(self, torch: Any, stream: Any) -> None:
        self._stream = stream
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def begin(self) -> None:
        self._start.record(self._stream)

    def end(self) -> None:
        self._end.record(self._stream)

    def seconds(self) -> float:
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1e3


def _measure_mode(
    torch: Any, module: Any, arguments: list[Any], mode: str, point: str, batch: int, seconds: float
) -> Latency:
    torch._dynamo.reset()
    run = module
    if mode != "eager":
        options = {"mode": "reduce-overhead"} if mode == MODES[2] else {}
        run = torch.compile(module, dynamic=False, **options)
    stream = torch.cuda.current_stream()

    def launch() -> None:
        with torch.inference_mode():
            run(*arguments)

    for _ in range(3):
        launch()
    torch.cuda.synchronize()
    return measure(
        launch,
        torch.cuda.synchronize,
        lambda: _TorchInterval(torch, stream),
        subject=f"torch {mode}",
        point=point,
        batch=batch,
        seconds=seconds,
    )
