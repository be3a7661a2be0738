"""One attempt to export: a file with its verdict, or the error that was raised instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.artifacts import out_of_space, unwritable
from trtconv.core.dtypes import dtype_from_onnx
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.model.file import load_structure
from trtconv.core.progress import Progress
from trtconv.core.requests import ExportRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.by_size.size_run import FROM_VALUES
from trtconv.export.branches.guards import in_words, requirements
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.plain_numbers import plain_numbers
from trtconv.export.branches.while_exported import answered, may_ask
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.lasting.outside import as_before_trace
from trtconv.export.module.flat_module import flat_module
from trtconv.export.module.noise.drawn import judge_random_file
from trtconv.export.module.operator_lines import lacking_operator
from trtconv.export.module.runner import ModuleRunner, load_dynamo, to_tensor
from trtconv.export.module.user_code import Frame
from trtconv.export.sizes.exact.floats import inexact_numbers
from trtconv.export.sizes.float_sizes import FLOATS_OF_SIZES
from trtconv.export.symbolic.builtins import symbolic_builtins
from trtconv.proof.comparison import describe_failure
from trtconv.proof.joint_sizes import SizeCoverage
from trtconv.proof.original import MakeInputs
from trtconv.proof.points import PATH, SamplePoint
from trtconv.proof.proving import ProofVerdict, RememberedRuns, prove
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import Samples, with_probes
from trtconv.proof.sizes import traced_sizes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Export = Callable[[Trace, Path, int | None], ExportCandidate]


@dataclass(frozen=True)
class ExportTask:
    """What is exported and to where: everything that an attempt needs."""

    request: ExportRequest
    runner: ModuleRunner
    samples: Samples
    make: MakeInputs
    sizes: tuple[tuple[str, int], ...]
    folder: Path
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    def point(self, sizes: Mapping[str, int], values: str = "random") -> SamplePoint:
        """The point with these sizes on a path through the module; dims that are not given are as traced."""
        return SamplePoint(PATH, tuple({**dict(self.sizes), **sizes}.items()), values, self.request.source.seed)

    def trace(self, sizes: dict[str, int] | None = None, space: ShapeSpace | None = None) -> Trace:
        """The module with inputs of the traced sizes, or of others; for the whole space, or a part of it."""
        chosen = dict(self.sizes) if sizes is None else sizes
        first = self.samples.items[0]
        inputs = first.inputs
        if sizes is not None:
            inputs = self.make(SamplePoint("traced", tuple(sizes.items()), "random", first.point.seed))
        specs, runner = self.request.inputs, self.runner
        flat = flat_module(runner.module, runner.binding, runner.caches)
        return Trace(
            flat,
            tuple(to_tensor(inputs[s.name]) for s in specs),
            specs,
            tuple(first.outputs),
            space or self.request.space,
            tuple(chosen.items()),
            self.request.source.base,
        )


@dataclass(frozen=True)
class Way:
    """One way to export.

    `symbolic` traces with Python's own number functions replaced by ones that keep sizes. The user's code that asks
    whether it is being exported is told no, since what it then does need not be what it does in a run; packages are
    told so where `as_in_a_run`, and nobody where `as_exported`. A way that `generalises` records at `sizes` too.
    """

    exporter: str
    export: Export
    symbolic: bool = False
    generalises: bool = False
    splits: bool = False
    scripts: bool = False
    cuts: tuple[Cut, ...] = ()
    sizes: tuple[tuple[tuple[str, int], ...], ...] = ()
    as_in_a_run: bool = False
    as_exported: bool = False

    def __str__(self) -> str:
        parts = [self.exporter]
        parts += ["with symbolic int, min and max"] if self.symbolic else []
        parts += ["at several sizes, generalised"] if self.generalises else []
        parts += ["with its loops scripted"] if self.scripts else []
        parts += ["for each side of a branch"] if self.splits else []
        parts += [f"at {cut.dim}={cut.last}" for cut in self.cuts]
        parts += ["with the path of a plain run"] if self.as_in_a_run else []
        parts += ["with the path of an export"] if self.as_exported else []
        return " ".join(parts)

    @property
    def folder(self) -> str:
        """The folder name for its files."""
        flags = (self.symbolic, self.generalises, self.splits, self.scripts, self.as_in_a_run, self.as_exported)
        return "-".join([self.exporter, *(str(int(f)) for f in flags), *(f"{cut.dim}{cut.last}" for cut in self.cuts)])


@dataclass(frozen=True)
class Attempt:
    """What one way came to: a candidate with its verdict and the sizes tried, or the error that it raised.

    `asks`: the user's code asks whether it is being exported. `plain_numbers` are the lines that made a number of a
    tensor in a recorded run, and the number. `uncompared` is a note on sizes that were left out of the comparison.
    """

    way: Way
    candidate: ExportCandidate | None = None
    verdict: ProofVerdict | None = None
    error: Exception | None = None
    sizes: SizeCoverage | None = None
    runs: RememberedRuns | None = None
    asks: bool = False
    plain_numbers: Mapping[Frame, float] = field(default_factory=dict)
    uncompared: str = ""

    @property
    def equal(self) -> bool:
        """True when there is a file, and it equals the module at every sample point."""
        return self.verdict is not None and self.verdict.equal

    @property
    def outcome(self) -> str:
        """What it came to, in words."""
        if self.verdict is None:
            return f"could not export: {first_line(self.error)}"
        if self.verdict.failure is None:
            return f"equal at every sample point (largest error {self.verdict.worst:.2g})"
        return describe_failure(self.verdict.failure)

    def describe(self) -> str:
        """One line for the manifest."""
        return f"{self.way}: {self.outcome}"


def describe_attempts(attempts: Iterable[Attempt]) -> list[str]:
    """One line for each outcome, for error details: where paths are split, a dozen ways fail by one cause."""
    ways: dict[str, list[Way]] = {}
    for attempt in attempts:
        ways.setdefault(attempt.outcome, []).append(attempt.way)
    return [
        f"{', '.join(map(str, same)) if len(same) < 3 else f'{same[0]} and {len(same) - 1} other ways'}: {text}"
        for text, same in ways.items()
    ]


def attempt(way: Way, job: ExportTask) -> Attempt:
    """Export one way and compare with the module. Only InvalidRequestError is raised; other errors are kept."""
    job.progress.phase(f"exporting with {way}")
    load_dynamo()
    attempt_folder = job.folder / way.folder
    attempt_folder.mkdir(exist_ok=True)
    started = time.monotonic()
    lines: list[Frame] = []
    try:
        candidate, numbers = write_attempt(way, job, attempt_folder, lines)
        _require_types(candidate.model, job.samples.items[0].outputs)
    except InvalidRequestError:
        raise
    except Exception as error:
        # torch's exporters raise whatever a module makes them raise; a full disk is not the module's fault.
        full = out_of_space(error)
        if full is not None:
            raise unwritable(job.request.output, full) from error
        return Attempt(way, error=error, asks=bool(lines))
    finally:
        key = f"generalise:{way.exporter}" if way.generalises else f"export:{way.exporter}"
        job.seconds[key] = job.seconds.get(key, 0.0) + time.monotonic() - started
    job.progress.phase(f"comparing what {way} wrote")
    runs = RememberedRuns(partial(OnnxRuntimeRunner, candidate.model, rounded=True))
    verdict = prove(runs.opened, job.samples.items, job.request.tolerance)
    candidate, verdict = judge_random_file(candidate, verdict, job.samples.items, job.request.tolerance)
    job.seconds["compare"] = job.seconds.get("compare", 0.0) + verdict.seconds
    return Attempt(way, candidate, verdict, runs=runs, asks=bool(lines), plain_numbers=numbers)


def write_attempt(
    way: Way, job: ExportTask, attempt_folder: Path, asking: list[Frame]
) -> tuple[ExportCandidate, dict[Frame, float]]:
    """What one way writes, and the lines that make numbers of tensors; `asking` gets those that ask for an export.

    Raises what the exporter raises.
    """
    trace, module = job.trace(), job.runner.module
    with (
        # Runs after it are not to meet its symbols.
        as_before_trace(module),
        symbolic_builtins(trace.flat) if way.symbolic else nullcontext(),
        _answering(way, module) as lines,
        _watching(way) as numbers,
        inexact_numbers() as inexact,
    ):
        try:
            candidate = _export(way, job, trace, attempt_folder)
        finally:
            asking += lines
    return (replace(candidate, notes=(*candidate.notes, FLOATS_OF_SIZES)) if inexact else candidate), numbers


def compared_at_samples(
    job: ExportTask, attempt: Attempt, samples: Sequence[ReferenceSample]
) -> tuple[ExportTask, Attempt]:
    """The job with these samples too, and the attempt compared there, where its file can still be run."""
    if not samples:
        return job, attempt
    job = replace(job, samples=with_probes(job.samples, job.runner, samples))
    if attempt.verdict is None or attempt.runs is None:
        return job, attempt
    verdict = prove(attempt.runs.opened, job.samples.items[-len(samples) :], job.request.tolerance)
    comparisons = (*attempt.verdict.comparisons, *verdict.comparisons)
    verdict = replace(verdict, comparisons=comparisons, advisory=attempt.verdict.advisory)
    return job, replace(attempt, verdict=verdict)


def _require_types(model: Path, outputs: Mapping[str, Array]) -> None:
    """Raise UnsupportedError where an exporter gave an output another type: the values may agree."""
    for value in load_structure(model).graph.output:
        expected, element = outputs.get(value.name), value.type.tensor_type.elem_type
        if expected is None or expected.dtype.kind not in "iubf" or element == 0:
            continue
        written = dtype_from_onnx(element).name
        if written != expected.dtype.name:
            raise UnsupportedError(
                f"the output '{value.name}' is {written} in the file and {expected.dtype.name} in the module",
                hint="compute it in a type for which ONNX has more operators (int32, int64, float32), and cast it last",
            )


def _watching(way: Way) -> AbstractContextManager[dict[Frame, float]]:
    """Where a recorded run makes numbers of tensors; torch.export refuses that itself."""
    return plain_numbers() if way.exporter == "torchscript" else nullcontext({})


def _answering(way: Way, module: Any) -> AbstractContextManager[list[Frame]]:
    """Where the user's code, or any, is told that it is not being exported; gives the lines that ask."""
    if way.as_in_a_run:
        return answered(False)
    own = not way.as_exported and may_ask(module)
    return answered(False, own=True) if own else nullcontext([])


def _export(way: Way, job: ExportTask, trace: Trace, attempt_folder: Path) -> ExportCandidate:
    from trtconv.export.branches.joined.covering import last_uncovered
    from trtconv.export.branches.split import export_split
    from trtconv.export.sizes.generalise.method import generalise

    name, opset = job.request.output.name, job.request.opset
    if way.splits:
        return export_split(
            way.export,
            job.trace,
            trace,
            lambda part: traced_sizes(part, job.request.inputs),
            attempt_folder / name,
            opset,
            cuts=way.cuts,
            uncovered=partial(last_uncovered, job),
        )
    if way.generalises:
        sizes = [dict(s) for s in way.sizes]
        spent = job.seconds.get(f"generalise:{way.exporter}", 0.0)
        return generalise(way.export, job.trace, trace, attempt_folder, name, opset, sizes, spent)
    return way.export(trace, attempt_folder / name, opset)


def root_error(error: BaseException) -> BaseException:
    """What an error of torch's exporters wraps, or the error itself."""
    while type(error).__name__ in ("TorchExportError", "ConversionError") and error.__cause__ is not None:
        error = error.__cause__
    return error


def first_line(error: BaseException | None) -> str:
    """The line of an exporter's error that says what is wrong."""
    if error is None:
        return ""
    if isinstance(error, TrtconvError):
        return error.message
    cause = root_error(error)
    needs = requirements(str(cause)) or in_words(str(cause))
    if needs:
        return needs
    operator = lacking_operator(str(cause))
    if operator is not None:
        of_complex = " of complex numbers" if "complex-valued" in str(cause) else ""
        # `x.view(torch.int32)` is no other shape of x, but its bits read as another type.
        of_bits = " of the bits as another type" if "overload='dtype'" in str(cause) else ""
        return f"the exporter has no form of {operator}{of_complex}{of_bits}"
    if type(cause).__name__ in FROM_VALUES:
        return "torch.export cannot follow a number that the module reads from values, or a size that depends on them"
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    # A line that announces the cause, as of torch.cond, is told with it.
    count = 2 if lines and lines[0].endswith(":") else 1
    text = " ".join(lines[:count])[:300]
    # Classes of the converter's own and of the exporter's tell a user nothing.
    inner = type(cause).__module__.startswith(("trtconv.", "torch.onnx."))
    return text if inner and text else f"{type(cause).__name__}: {text}"
