"""Choosing between exporters by what their files compute."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from trtconv.core.errors import AccuracyError, TrtconvError, UnsupportedError
from trtconv.core.model.file import load_model
from trtconv.core.requests import ExportRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.causes import unnamed_cause
from trtconv.export.branches.explain import Fork, find_fork, locate_fork
from trtconv.export.branches.guards import guarded_sizes
from trtconv.export.branches.size_paths import SizePaths, explore_sizes
from trtconv.export.branches.split import CannotSplitError, Cut, find_cut
from trtconv.export.branches.value_exits import value_exits
from trtconv.export.branches.while_exported import asking_line
from trtconv.export.exporters.attempt import Attempt, ExportTask, Way, attempt, first_line
from trtconv.export.exporters.boundaries import probed
from trtconv.export.exporters.dynamo import OLDEST_OPSET, export_dynamo
from trtconv.export.exporters.infinities import spread_infinities
from trtconv.export.exporters.own_noise import allow_for_rounding
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.exporters.trace import ExportCandidate
from trtconv.export.exporters.value_branches import check_value_branches
from trtconv.export.module.nested import nested_hint
from trtconv.export.module.user_code import blame, format_frame
from trtconv.export.sizes.file_sizes import differing_sizes
from trtconv.export.sizes.float_sizes import computes_sizes_in_floats
from trtconv.export.sizes.scan import scan_sizes
from trtconv.proof.comparison import describe_failure
from trtconv.proof.joint_sizes import SizeCoverage, count_sizes
from trtconv.proof.points import SamplePoint
from trtconv.proof.probes.values import IN_WORDS
from trtconv.proof.proving import ProofVerdict
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import Samples, with_probes

# The order of preference: dynamo keeps higher-level operators; a module traced as it is stands before one whose
# numbers were replaced; an If, which TensorRT does not always build, and generalising, which traces often, come last.
WAYS = (
    Way("dynamo", export_dynamo),
    Way("dynamo", export_dynamo, symbolic=True),
    Way("torchscript", export_torchscript),
    Way("torchscript", export_torchscript, symbolic=True),
    Way("dynamo", export_dynamo, symbolic=True, splits=True),
    Way("torchscript", export_torchscript, generalises=True),
)


READS_A_VALUE = (
    "Python reads a value in that line, and the file keeps what it was: use torch.where or other tensor operations, or "
    "say with a value range which values there are (--input NAME:float32[...]=LOW:HIGH)"
)
IN_WHOLE_NUMBERS = (
    "a size is computed in floats, which have 53 bits in Python and 24 in the file and the engine, so that it is "
    "rounded to another whole number at some sizes: compute it in whole numbers (x.shape[2] * 7 // 10 for "
    "int(x.shape[2] * 0.7)), or give ranges with --dynamic without those sizes"
)
FIXED_SIZE = (
    "that line makes a plain number of a size, and the file keeps it: compute it with + - * // % on x.shape, hold "
    "what depends on the size in a tensor and index it, or fix the size with --dynamic"
)
# Paths by size of which the reference keeps a sample.
MOST_PATHS = 8
# What torch.export says when Python's own functions on numbers got a size.
SIZE_LOST = ("Constraints violated", "data-dependent", "SymInt", "SymFloat", "built-in function")


@dataclass(frozen=True)
class ChosenExport:
    """The proven candidate, what led to it, and the samples (with the rounding measured meanwhile)."""

    candidate: ExportCandidate
    verdict: ProofVerdict
    attempts: tuple[Attempt, ...]
    samples: Samples
    notes: tuple[str, ...] = ()
    sizes: SizeCoverage | None = None


def choose(job: ExportTask) -> ChosenExport:
    """Try the ways in order and take the first whose file equals the module.

    Raises AccuracyError when files were made but none is equal, TrtconvError when no exporter made one.
    """
    attempts: list[Attempt] = []
    waiting = list(ways(job.request))
    paths: SizePaths | None = None
    while waiting:
        way = waiting.pop(0)
        if not worth_trying(way, attempts):
            continue
        result = attempt(way, job)
        job, result = allow_for_rounding(job, result)
        if result.equal:
            paths = paths or size_paths(job)
            result = scan_sizes(
                job,
                result,
                paths,
                [*suspect_sizes(attempts, job.request.space), *rounded_sizes(result, job)],
                thorough=way.exporter == "torchscript" or way.splits or rounds_sizes(result),
            )
        if result.equal and paths is not None:
            job = with_paths(job, paths)
            job, result = probed(job, result)
            job, result = allow_for_rounding(job, result)
        if result.equal and way.exporter == "torchscript":
            job, result = check_value_branches(job, result, allow_for_rounding)
        infinities = spread_infinities(job, result) if result.equal else ()
        # Its session holds the weights once more.
        result = replace(result, runs=None)
        attempts.append(result)
        if not any(w.cut for w in (way, *(a.way for a in attempts))):
            waiting = [*cuts_at_one(job, result), *waiting]
        if result.equal and result.candidate is not None and result.verdict is not None:
            attempt_lines = tuple(a.describe() for a in attempts) if len(attempts) > 1 else ()
            notes = (*attempt_lines, *result.candidate.notes, *infinities)
            return ChosenExport(result.candidate, result.verdict, tuple(attempts), job.samples, notes, result.sizes)
        if len(attempts) == 1 and asking_line(job.runner, job.samples.cheapest) is not None:
            waiting = [replace(w, as_in_a_run=True) for w in (way, *waiting)]
        if not waiting and result.asks:
            # What the user wrote for exporters may be all that they can follow.
            waiting = [replace(w, as_exported=True) for w in ways(job.request)]
    raise export_error(attempts, job, paths)


def size_paths(job: ExportTask) -> SizePaths:
    """The module's decisions by size, followed over the whole space."""
    space = job.request.space
    if count_sizes(space) == 1:
        return SizePaths(paths=1, followed=1, total=1)
    job.progress.phase("following the module's decisions by size")
    started = time.monotonic()
    starts = [dict(job.sizes), space.pick("min"), space.pick("max")]
    paths = explore_sizes(job.runner, job.request.inputs, space, starts, job.request.source.base)
    job.seconds["paths"] = time.monotonic() - started
    return paths


def with_paths(job: ExportTask, paths: SizePaths) -> ExportTask:
    """The job with a sample on each path through the module: what comes after the export is compared there too."""
    present = {s.point.dims for s in job.samples.items}
    seed, samples = job.request.source.seed, []
    for sizes in paths.points[: min(paths.paths, MOST_PATHS) if paths.paths > 1 else 0]:
        point = SamplePoint("path", tuple({**dict(job.sizes), **sizes}.items()), "random", seed)
        if point.dims not in present:
            inputs = job.make(point)
            samples.append(ReferenceSample(point, inputs, job.runner(inputs)))
    return replace(job, samples=with_probes(job.samples, job.runner, samples)) if samples else job


def ways(request: ExportRequest) -> tuple[Way, ...]:
    """The ways that a request allows."""
    if request.exporter != "auto":
        return tuple(w for w in WAYS if w.exporter == request.exporter)
    too_old = request.opset is not None and request.opset < OLDEST_OPSET
    return tuple(w for w in WAYS if not (too_old and w.exporter == "dynamo"))


def cuts_at_one(job: ExportTask, result: Attempt) -> list[Way]:
    """Where a file of dynamo's differs at a size of 1: the way that exports 1 and more than 1 apart.

    torch.export takes a size of 1 for a case that no one means: `if x.shape[0] == 1` is false in its trace, and no
    guard says so.
    """
    failed_point = result.verdict.at if result.verdict is not None and result.way.exporter == "dynamo" else None
    space = job.request.space
    dims = (
        [n for n, v in failed_point.dims if v == 1 and space[n].min == 1 < space[n].max]
        if failed_point is not None
        else []
    )
    return [Way("dynamo", export_dynamo, symbolic=True, splits=True, cut=Cut(d, 1)) for d in dims]


def rounds_sizes(result: Attempt) -> bool:
    """True when the file computes a size in FP32, where Python has FP64: it may be another one at a single size."""
    return result.candidate is not None and computes_sizes_in_floats(load_model(result.candidate.model).graph)


def rounded_sizes(attempt: Attempt, job: ExportTask) -> list[dict[str, int]]:
    """Joint sizes at which the file's FP32 makes another whole number of a size than Python's FP64 does."""
    if attempt.candidate is None:
        return []
    return differing_sizes(load_model(attempt.candidate.model).graph, job.request.inputs, job.request.space)


def suspect_sizes(attempts: list[Attempt], space: ShapeSpace) -> list[dict[str, int]]:
    """Sizes at which an earlier file was wrong, and those next to which dynamo saw a branch: the last of one side and
    the first of the other.
    """
    candidates: list[dict[str, int]] = []
    for before in attempts:
        if before.verdict is not None and before.verdict.at is not None:
            candidates.append(before.verdict.at.sizes)
        candidates += guarded_sizes(str(before.error), space)
        try:
            cut = find_cut(str(before.error), space)
        except CannotSplitError:
            continue
        first = min((v for v in space[cut.dim].values() if v > cut.last), default=cut.last)
        candidates += [{cut.dim: cut.last}, {cut.dim: first}]
    return [sizes for i, sizes in enumerate(candidates) if sizes not in candidates[:i]]


def worth_trying(way: Way, before: list[Attempt]) -> bool:
    """False when an earlier attempt of the same exporter failed in a way that this one does not change."""
    alike = [a for a in before if _manner(a.way) == _manner(way)]
    plain = next((a for a in alike if not a.way.symbolic), None)
    if plain is None or plain.error is None or not (way.symbolic or way.splits or way.generalises):
        return True
    text = f"{type(plain.error).__name__}: {plain.error}"
    if way.splits and way.cut is None:
        return "Constraints violated" in text
    return way.exporter == "torchscript" or any(w in text for w in SIZE_LOST)


def _manner(way: Way) -> tuple[str, bool, bool]:
    return way.exporter, way.as_in_a_run, way.as_exported


def export_error(attempts: list[Attempt], job: ExportTask, paths: SizePaths | None = None) -> TrtconvError:
    """The error when no way gave an equal file: where the module's way depends on the size, or what each way gave."""
    base = job.request.source.base
    details = [a.describe() for a in attempts]
    wrongs = [a.verdict for a in attempts if a.verdict is not None and a.verdict.failure is not None]
    fork, at, by_size = _fork(job, wrongs)
    if fork is not None:
        here = str(job.samples.items[0].point)
        kind = "the size" if by_size else "the values of the inputs"
        return AccuracyError(
            f"the path through the module depends on {kind}: {fork.describe(here, at, base)}",
            hint="one graph holds one way: compute both and choose with torch.where, use torch.cond, replace a loop "
            "by tensor operations, or give ranges with --dynamic for which one way holds",
            details=details,
            where=locate_fork(fork, base),
        )
    compared = [v for v in wrongs if v.refusal is None]
    if compared:
        return _difference_error(attempts, job, compared[0], paths)
    if wrongs and wrongs[0].refusal is not None:
        refusal = wrongs[0].refusal
        return UnsupportedError(
            f"what was exported cannot be compared with the module: {refusal.message}",
            hint=refusal.hint or "no file was written; see the lines above for what each exporter gave",
            details=details,
        )
    error = attempts[0].error
    assert error is not None
    cause = unnamed_cause(a.error for a in attempts)
    return TrtconvError(
        cause.message if cause else f"the module cannot be exported: {first_line(error)}",
        hint=cause.hint if cause else "rewrite that line with operations that the exporters know",
        details=details,
        where=blame(error, base, packages=True),
    )


def _difference_error(
    attempts: list[Attempt], job: ExportTask, wrong: ProofVerdict, paths: SizePaths | None
) -> AccuracyError:
    """A file was written that differs from the module, and the module's way is the same everywhere."""
    assert wrong.failure is not None
    details = [a.describe() for a in attempts]
    if paths is not None and paths.tables:
        return AccuracyError(
            f"the module looks its size up in a table, and a file holds one entry: {describe_failure(wrong.failure)}",
            hint="hold the table in a tensor and index it by the size, or give ranges with --dynamic for which one "
            "entry holds",
            details=details,
            where=paths.tables[0],
        )
    line, hint = reading_line(job, wrong), _difference_hint(job, wrong)
    if line:
        hint = READS_A_VALUE
    if any(
        v.failure is not None and v.failure.max_abs is None and rounds_sizes(a) for v, a in _wrong_attempts(attempts)
    ):
        hint = IN_WHOLE_NUMBERS
    elif not line and (fixed := fixed_size_line(job, wrong, paths)):
        line, hint = fixed, FIXED_SIZE
    message = f"the exported model differs from the module: {describe_failure(wrong.failure)}"
    return AccuracyError(message, hint=hint, details=details, where=line)


def _difference_hint(job: ExportTask, wrong: ProofVerdict) -> str:
    """What to do where no line is to blame: the values of the failing point may be none that the user feeds."""
    at = wrong.at
    if at is None or at.values == "random" or at.masks:
        return nested_hint(job.runner.module) or "no file was written; see the lines above for what each exporter gave"
    return (
        f"{IN_WORDS.get(at.values, f'the inputs are all {at.values}')} there; if yours never are, say what they are "
        "with a value range (--input NAME:float32[...]=LOW:HIGH) or a function (--sample FILE.py:FUNCTION)"
    )


def reading_line(job: ExportTask, wrong: ProofVerdict) -> str | None:
    """`net.py:12`: the first line at which the value that leaves torch differs between a good and the failing point."""
    failing = next((s.inputs for s in job.samples.items[1:] if s.point == wrong.at), None)
    if failing is None:
        return None
    usual, exits = (value_exits(job.runner, [inputs]) for inputs in (job.samples.items[0].inputs, failing))
    # A list or an array that leaves is not compared. A loop over strides reads another number in each turn.
    lines = [frame for frame, leaving in exits.items() if not leaving.numbers or leaving != usual.get(frame)]
    return format_frame(lines[0], job.request.source.base) if lines else None


def fixed_size_line(job: ExportTask, wrong: ProofVerdict, paths: SizePaths | None) -> str | None:
    """`net.py:12`: the first line that makes a plain number of a size, where a file is wrong at other sizes."""
    if wrong.at is None or wrong.at.values != "random" or wrong.at.dims == job.sizes:
        return None
    lines = (paths or size_paths(job)).lines
    return lines[0] if lines else None


def _wrong_attempts(attempts: list[Attempt]) -> list[tuple[ProofVerdict, Attempt]]:
    return [(a.verdict, a) for a in attempts if a.verdict is not None]


def _fork(job: ExportTask, wrongs: list[ProofVerdict]) -> tuple[Fork | None, str, bool]:
    """Where the run at the first sample and another run part, what that one was, and whether its size does it.

    The failing sizes are looked at first.
    """
    first, *others = job.samples.items
    same_sizes = replace(first.point, values="random", seed=first.point.seed + 1)
    fork = find_fork(job.runner, first.inputs, job.make(same_sizes))
    if fork is not None:
        return fork, "other values of the same size", False
    failed = list(dict.fromkeys(w.at for w in wrongs if w.at is not None))
    others.sort(key=lambda s: s.point not in failed)
    looked_at = [(s.point, s.inputs) for s in others[:6]]
    looked_at = [(at, job.make(at)) for at in failed if all(at != p for p, _ in looked_at)] + looked_at
    for point, inputs in looked_at:
        fork = find_fork(job.runner, first.inputs, inputs)
        if fork is not None:
            # A line at which a number leaves torch decides by a value, although another size met it here.
            by_value = fork.line in value_exits(job.runner, [first.inputs, inputs])
            return fork, str(point), point.values == "random" and not by_value
    return None, "", True
