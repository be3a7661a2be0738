"""Choosing between exporters by what their files compute."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.comparison import describe_failure
from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError
from trtconv.core.progress import Progress
from trtconv.core.requests import ExportRequest
from trtconv.export.dynamo import OLDEST_OPSET, export_dynamo
from trtconv.export.flat_module import flat_module
from trtconv.export.module_runner import ModuleRunner, to_tensor
from trtconv.export.proof import Verdict, prove
from trtconv.export.samples import Samples
from trtconv.export.symbolic.builtins import symbolic_builtins
from trtconv.export.torchscript import export_torchscript
from trtconv.export.trace import Candidate, Trace
from trtconv.export.user_code import blame

Export = Callable[[Trace, Path, int | None], Candidate]


@dataclass(frozen=True)
class Way:
    """One way to export; `symbolic` traces with Python's own number functions replaced by ones that keep sizes."""

    exporter: str
    export: Export
    symbolic: bool = False

    def __str__(self) -> str:
        return f"{self.exporter} with symbolic int, min and max" if self.symbolic else self.exporter


@dataclass(frozen=True)
class Attempt:
    """What one exporter came to: a candidate with its verdict, or the error that it raised."""

    way: str
    candidate: Candidate | None = None
    verdict: Verdict | None = None
    error: Exception | None = None

    def describe(self) -> str:
        """One line for the manifest and for error details."""
        if self.verdict is None:
            return f"{self.way}: could not export: {first_line(self.error)}"
        if self.verdict.failure is None:
            return f"{self.way}: equal at every sample point (largest error {self.verdict.worst:.2g})"
        return f"{self.way}: {describe_failure(self.verdict.failure)}"


@dataclass(frozen=True)
class Choice:
    """The proven candidate, and what led to it."""

    candidate: Candidate
    verdict: Verdict
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...] = ()


def choose(
    request: ExportRequest, runner: ModuleRunner, samples: Samples, sizes: dict[str, int], folder: Path,
    progress: Progress, seconds: dict[str, float],
) -> Choice:  # fmt: skip
    """Try the exporters in order and take the first whose file equals the module.

    `auto` prefers dynamo, whose file keeps higher-level operators. Raises AccuracyError or TrtconvError when none is
    equal.
    """
    trace = make_trace(request, runner, samples, sizes)
    attempts: list[Attempt] = []
    for way in _order(request):
        progress.phase(f"exporting with {way}")
        attempt = _try(way, trace, request, samples, folder, seconds)
        attempts.append(attempt)
        if attempt.candidate is not None and attempt.verdict is not None and attempt.verdict.equal:
            notes = tuple(a.describe() for a in attempts) if len(attempts) > 1 else ()
            return Choice(attempt.candidate, attempt.verdict, tuple(attempts), notes)
    raise _failure(attempts, request)


def make_trace(request: ExportRequest, runner: ModuleRunner, samples: Samples, sizes: dict[str, int]) -> Trace:
    """What the exporters need, with the inputs of the first sample, which is the traced size."""
    first = samples.items[0]
    return Trace(
        flat_module(runner.module, runner.binding), tuple(to_tensor(first.inputs[s.name]) for s in request.inputs),
        request.inputs, tuple(first.outputs), request.space, tuple(sizes.items()), request.source.base,
    )  # fmt: skip


def _order(request: ExportRequest) -> tuple[Way, ...]:
    ways = (
        Way("dynamo", export_dynamo), Way("dynamo", export_dynamo, True),
        Way("torchscript", export_torchscript), Way("torchscript", export_torchscript, True),
    )  # fmt: skip
    if request.exporter != "auto":
        return tuple(w for w in ways if w.exporter == request.exporter)
    old = request.opset is not None and request.opset < OLDEST_OPSET
    return ways[2:] if old else ways


def _try(
    way: Way, trace: Trace, request: ExportRequest, samples: Samples, folder: Path, seconds: dict[str, float]
) -> Attempt:
    place = folder / f"{way.exporter}-{int(way.symbolic)}"
    place.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        with symbolic_builtins(trace.flat) if way.symbolic else nullcontext():
            candidate = way.export(trace, place / request.output.name, request.opset)
    except InvalidRequestError:
        raise
    except Exception as error:  # noqa: BLE001 - torch's exporters raise whatever a module makes them raise
        return Attempt(str(way), error=error)
    finally:
        seconds[f"export:{way.exporter}"] = seconds.get(f"export:{way.exporter}", 0.0) + time.monotonic() - started
    verdict = prove(candidate.model, samples.items, request.tolerance)
    seconds["compare"] = seconds.get("compare", 0.0) + verdict.seconds
    return Attempt(str(way), candidate, verdict)


def _failure(attempts: list[Attempt], request: ExportRequest) -> TrtconvError:
    details = [a.describe() for a in attempts]
    wrong = next((a for a in attempts if a.verdict is not None and a.verdict.failure is not None), None)
    if wrong is not None and wrong.verdict is not None and wrong.verdict.failure is not None:
        return AccuracyError(
            f"the exported model differs from the module: {describe_failure(wrong.verdict.failure)}",
            hint="no file was written; see the lines above for what each exporter gave", details=details,
        )  # fmt: skip
    error = attempts[0].error
    assert error is not None
    return TrtconvError(
        f"the module cannot be exported: {first_line(error)}",
        hint="rewrite that line with operations that the exporters know",
        details=details, where=blame(error, request.source.base),
    )  # fmt: skip


def first_line(error: BaseException | None) -> str:
    """The line of an exporter's error that says what is wrong."""
    if error is None:
        return ""
    if isinstance(error, TrtconvError):
        return error.message
    seen: BaseException = error
    while type(seen).__name__ in ("TorchExportError", "ConversionError") and seen.__cause__ is not None:
        seen = seen.__cause__
    lines = [line.strip() for line in str(seen).splitlines() if line.strip()]
    return f"{type(seen).__name__}: {lines[0][:300] if lines else ''}"
