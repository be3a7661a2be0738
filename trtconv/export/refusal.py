"""Why no way of exporting gave an equal file: the error, with the line to blame and what to do."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import AccuracyError, TrtconvError, UnsupportedError
from trtconv.core.model.file import load_structure
from trtconv.core.model.provenance import origin_of
from trtconv.export.branches.by_size.number_paths import line_astray, with_runs_by_number
from trtconv.export.branches.by_size.parting import find_parting
from trtconv.export.branches.by_size.size_paths import SizePaths, explore_sizes
from trtconv.export.branches.causes import unnamed_cause
from trtconv.export.branches.explain import locate_fork
from trtconv.export.branches.value_exits import value_exits
from trtconv.export.exporters.attempt import Attempt, ExportTask, describe_attempts, first_line, root_error
from trtconv.export.module.operator_lines import empty_line, lacking_operator, named_line
from trtconv.export.module.user_code import blame, format_frame
from trtconv.export.recurrent.steps import OneLengthError
from trtconv.export.sizes.float_sizes import computes_sizes_in_floats, rounding_dims, rounding_nodes
from trtconv.export.sizes.whole_numbers import BeyondIntegersError
from trtconv.export.symbolic.recording.errors import CaughtErrorInRecordingError
from trtconv.proof.comparison import describe_failure
from trtconv.proof.joint_sizes import count_sizes
from trtconv.proof.points import BOUNDARY
from trtconv.proof.probes.values import IN_WORDS
from trtconv.proof.proving import ProofVerdict

if TYPE_CHECKING:
    import numpy as np

    from trtconv.core.tensors import TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

READS_A_VALUE = (
    "Python reads a value in that line, and the file keeps what it was: use torch.where or other tensor operations, or "
    "say with a value range which values there are (--input NAME:float32[...]=LOW:HIGH)"
)
IN_WHOLE_NUMBERS = (
    "a size is computed in floats, which have 53 bits in Python and 24 in the file and the engine, so that it is "
    "rounded to another whole number at some sizes: compute it in whole numbers (x.shape[2] * 7 // 10 for "
    "int(x.shape[2] * 0.7)), or give ranges with --dynamic without those sizes"
)
CUT_FLOATS = (
    "numbers are computed from a size in floats and cut to whole ones (floor, round, a comparison), so that a last bit "
    "decides, which the file has otherwise: compute them in whole numbers (torch.arange(w) * 10 // w)"
)
FIXED_SIZE = (
    "that line makes a plain number of a size, and the file keeps it: compute it with + - * // % on x.shape, hold "
    "what depends on the size in a tensor and index it, or fix the size with --dynamic"
)
EMPTY = (
    "a tensor without elements comes out of that line there, which exporters and ONNX Runtime compute otherwise than "
    "torch: give ranges with --dynamic in which it has some, or pad what it is cut from"
)
OF_NOTHING = (
    "a size is 0 there, and of no elements ONNX gives something else than torch (whose variance is NaN): give "
    "ranges with --dynamic from 1 on, or return early for that size (if y.shape[1] == 0)"
)
TEXT_OF_SIZE = (
    "a traced size has another text than its number: compare sizes as numbers, hold what depends on one in a tensor "
    "and index it, or give ranges with --dynamic in which it is the same"
)
GIVES_NAN = (
    "the module itself gives NaN there, at inputs as they are served: keep divisions from 0 / 0 (an epsilon in the "
    "divisor, or torch.where), or say with a value range which inputs there are"
)


def size_paths(job: ExportTask) -> SizePaths:
    """The module's decisions by size, followed over the whole space.

    Raises BeyondIntegersError where it computes a whole number of sizes that no file holds.
    """
    space = job.request.space
    if count_sizes(space) == 1:
        return SizePaths(paths=1, followed=1, total=1)
    job.progress.phase("following the module's decisions by size")
    started = time.monotonic()
    starts = [dict(job.sizes), space.pick("min"), space.pick("max")]
    base = job.request.source.base
    try:
        paths = explore_sizes(job.runner, job.request.inputs, space, starts, base)
    except BeyondIntegersError as error:
        error.where = format_frame(error.frame, base) if error.frame else ""
        raise
    if not paths.tables and not paths.obstacle:
        line = line_astray(job.runner, job.samples.items[0].inputs, paths.steps)
        if line is not None:

            def make(sizes: Mapping[str, int]) -> Mapping[str, Array]:
                return job.make(job.point(sizes))

            paths = with_runs_by_number(paths, job.runner, line, space, make, base)
    job.seconds["paths"] = time.monotonic() - started
    return paths


def rounds_sizes(result: Attempt) -> bool:
    """True when the file computes a size in FP32, where Python has FP64: it may be another one at a single size."""
    return result.candidate is not None and computes_sizes_in_floats(load_structure(result.candidate.model).graph)


def rounded_dims(result: Attempt, inputs: Sequence[TensorSpec]) -> frozenset[str] | None:
    """The dims of the sizes that `rounds_sizes` speaks of; none where there are none, None where that is not seen."""
    if result.candidate is None:
        return frozenset()
    return rounding_dims(load_structure(result.candidate.model).graph, inputs)


def export_error(attempts: list[Attempt], job: ExportTask, paths: SizePaths | None = None) -> TrtconvError:
    """The error when no way gave an equal file: where the module's way depends on the size, or what each way gave."""
    base = job.request.source.base
    details = describe_attempts(attempts)
    wrongs = [a.verdict for a in attempts if a.verdict is not None and a.verdict.failure is not None]
    # Both sides of a fork by size may be in such a file, and it is wrong for another reason.
    split = [a for a in attempts if a.way.splits and a.verdict is not None and a.verdict in wrongs]
    rounded = next((a.verdict for a in split if _is_rounded_size(a)), None)
    if rounded is not None:
        return _difference_error(attempts, job, rounded, paths)
    parting = find_parting(job.runner, job.samples.items, job.make, [w.at for w in wrongs if w.at is not None])
    both = split[-1].verdict if split and parting is not None and parting.by_size else None
    if parting is not None and both is not None and both.refusal is None and parting.has_both_ways(both.at):
        return _difference_error(attempts, job, both, paths)
    if parting is not None:
        kind = "the size" if parting.by_size else "the values of the inputs"
        described = parting.describe(base)
        is_loop = parting.by_size and described.startswith(("`for ", "`while "))
        stopped = _what_stops_a_loop(attempts) if is_loop else ""
        stopped = f"; the file cannot hold it as a loop: {stopped}" if stopped else ""
        return AccuracyError(
            f"the path through the module depends on {kind}: {described}{stopped}",
            hint=f"{'write the loop without that, or ' if stopped else ''}one graph holds one way: compute both and "
            "choose with torch.where, use torch.cond, replace a loop by tensor operations, or give ranges with "
            "--dynamic for which one way holds",
            details=details,
            where=locate_fork(parting.fork, base),
        )
    compared = [v for v in wrongs if v.refusal is None]
    if compared:
        # A file that follows the size, and cuts it otherwise, came closer than one that keeps a number of the trace.
        closest = (v for a in attempts for v in compared if a.verdict is v and _is_cut_otherwise(job, a))
        return _difference_error(attempts, job, next(closest, compared[0]), paths)
    if wrongs and wrongs[0].refusal is not None:
        refusal = wrongs[0].refusal
        return UnsupportedError(
            f"what was exported cannot be compared with the module: {refusal.message}",
            hint=refusal.hint or "no file was written; see the lines above for what each exporter gave",
            details=details,
        )
    for attempt in attempts:
        if isinstance(attempt.error, CaughtErrorInRecordingError):
            caught = attempt.error
            where = format_frame(caught.frame, base)
            return UnsupportedError(caught.message, hint=caught.hint, details=details, where=where)
    # That torch.export cannot have a recurrent layer is no reason why nothing could be recorded.
    errors = [a.error for a in attempts if a.error is not None]
    # A failed assertion is of torch's own insides, and names nothing that a user wrote.
    error = min(errors, key=lambda e: (isinstance(e, OneLengthError), isinstance(root_error(e), AssertionError)))
    own_hint = error.hint if isinstance(error, TrtconvError) else ""
    cause = unnamed_cause((a.error for a in attempts), job.runner, job.samples.items[0].inputs)
    lacking: dict[str, Attempt] = {}
    for attempt in attempts:
        if (name := lacking_operator(str(attempt.error))) is not None:
            lacking.setdefault(name, attempt)
    others = "".join(f"; {a.way.exporter} has no form of {name}" for name, a in lacking.items() if a.error is not error)
    operators = [f"aten::{name}" for name in lacking]
    return TrtconvError(
        cause.message if cause else f"the module cannot be exported: {first_line(error)}{others}",
        hint=cause.hint if cause else own_hint or "rewrite that line with operations that the exporters know",
        details=details,
        where=(cause.where if cause else None)
        or named_line(job.runner, job.samples.items[0].inputs, operators)
        or blame(error, base, packages=True)
        or named_line(job.runner, job.samples.items[0].inputs, details),
    )


def _difference_error(
    attempts: list[Attempt], job: ExportTask, wrong: ProofVerdict, paths: SizePaths | None
) -> AccuracyError:
    """A file was written that differs from the module, and the module's way is the same everywhere."""
    assert wrong.failure is not None
    details = describe_attempts(attempts)
    if paths is not None and paths.tables:
        return AccuracyError(
            f"the module looks its size up in a table, and a file holds one entry: {describe_failure(wrong.failure)}",
            hint="hold the table in a tensor and index it by the size, or give ranges with --dynamic for which one "
            "entry holds",
            details=details,
            where=paths.tables[0],
        )
    line = reading_line(job, wrong)
    hint = READS_A_VALUE if line else _difference_hint(wrong)
    rounding = next((a for a in attempts if _is_rounded_size(a)), None)
    if rounding is not None and rounding.candidate is not None:
        nodes = rounding_nodes(load_structure(rounding.candidate.model).graph)
        line, hint = line or origin_of(next(nodes)).source or None, IN_WHOLE_NUMBERS
    elif not line and (cutting := [a for a in attempts if a.verdict is wrong and _is_cut_otherwise(job, a)]):
        line, hint = _cutting_line(cutting[0]), CUT_FLOATS
    elif not line and (empty := _empty_line(job, wrong)):
        line, hint = empty, EMPTY
    elif not line and hint != OF_NOTHING:
        fixed = fixed_size_line(job, wrong, paths) or _number_line(attempts, job, wrong)
        line, hint = (fixed, FIXED_SIZE) if fixed else (line, hint)
    message = f"the exported model differs from the module: {describe_failure(wrong.failure)}"
    return AccuracyError(message, hint=hint, details=details, where=line)


def _difference_hint(wrong: ProofVerdict) -> str:
    """What to do where no line is to blame: the values of the failing point may be none that the user feeds."""
    at = wrong.at
    if at is not None and 0 in at.sizes.values():
        return OF_NOTHING
    if wrong.failure is not None and wrong.failure.expected_at is not None and math.isnan(wrong.failure.expected_at):
        return GIVES_NAN
    if at is None or at.values == "random" or at.masks:
        return "no file was written; see the lines above for what each exporter gave"
    return (
        f"{IN_WORDS.get(at.values, f'the inputs are all {at.values}')} there; if yours never are, say what they are "
        "with a value range (--input NAME:float32[...]=LOW:HIGH) or a function (--sample FILE.py:FUNCTION)"
    )


def reading_line(job: ExportTask, wrong: ProofVerdict) -> str | None:
    """`net.py:12`: the first line at which the value that leaves torch differs between a good and the failing point."""
    first = job.samples.items[0]
    failing = next((s for s in job.samples.items if s.point == wrong.at), first)
    # What cannot be run even as traced has a size that comes from values: one_hot of as many classes as there are.
    unrun = wrong.at == first.point and wrong.failure is not None and wrong.failure.max_abs is None
    if failing is first and not unrun:
        return None
    exits = value_exits(job.runner, [failing.inputs])
    usual = {} if unrun else value_exits(job.runner, [first.inputs])
    lines = [frame for frame, leaving in exits.items() if not leaving.numbers or leaving != usual.get(frame)]
    return format_frame(lines[0], job.request.source.base) if lines else None


def fixed_size_line(job: ExportTask, wrong: ProofVerdict, paths: SizePaths | None) -> str | None:
    """`net.py:12`: the first line that makes a plain number of a size, where a file is wrong at other sizes."""
    if not _at_another_size(job, wrong):
        return None
    lines = (paths or size_paths(job)).lines
    return lines[0] if lines else None


def _empty_line(job: ExportTask, wrong: ProofVerdict) -> str | None:
    """`net.py:12`: the first line that makes an empty tensor where a file cannot be run, if none does as traced."""
    first = job.samples.items[0].inputs
    shaped = wrong.failure is not None and wrong.failure.max_abs is None
    if wrong.at is None or not shaped or not _at_another_size(job, wrong) or empty_line(job.runner, first):
        return None
    return empty_line(job.runner, job.make(wrong.at))


def _number_line(attempts: list[Attempt], job: ExportTask, wrong: ProofVerdict) -> str | None:
    """`net.py:12`: the first line at which the recording that is wrong made a number of a size: `math.log(t + 1)`."""
    recorded = next((a.plain_numbers for a in attempts if a.verdict is wrong), {})
    if not recorded or not _at_another_size(job, wrong):
        return None
    of_values = value_exits(job.runner, [job.samples.items[0].inputs])
    lines = [frame for frame in recorded if frame not in of_values]
    return format_frame(lines[0], job.request.source.base) if lines else None


def _at_another_size(job: ExportTask, wrong: ProofVerdict) -> bool:
    return wrong.at is not None and wrong.at.values == "random" and wrong.at.dims != job.sizes


def _is_cut_otherwise(job: ExportTask, attempt: Attempt) -> bool:
    """True where a file that cuts floats of sizes was wrong at another size than the traced one."""
    verdict = attempt.verdict
    return verdict is not None and _at_another_size(job, verdict) and rounds_sizes(attempt)


def _cutting_line(attempt: Attempt) -> str | None:
    """The line of the first number that a file cuts, but for Resizes."""
    assert attempt.candidate is not None
    nodes = rounding_nodes(load_structure(attempt.candidate.model).graph)
    return next((source for n in nodes if n.op_type != "Resize" and (source := origin_of(n).source)), None)


def _is_rounded_size(attempt: Attempt) -> bool:
    """True where a file gave another shape and computes sizes in FP32."""
    failure = attempt.verdict.failure if attempt.verdict is not None else None
    return failure is not None and failure.max_abs is None and rounds_sizes(attempt)


def _what_stops_a_loop(attempts: Sequence[Attempt]) -> str:
    """Why a module with loops is no script that can be exported, in one line; empty where it is one."""
    verdict = next((a.verdict for a in attempts if a.way.scripts and a.error is None and a.verdict is not None), None)
    if verdict is not None and not verdict.equal and verdict.at is not None and verdict.at.values == BOUNDARY:
        return "a number that it compares with is another one in the file (beyond 64 bits, or rounded otherwise)"
    error = next((a.error for a in attempts if a.way.scripts and a.error is not None), None)
    line = first_line(error)
    return line.partition(": ")[2] if "is no script: " in line else line
