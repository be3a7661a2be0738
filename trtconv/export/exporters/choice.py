"""Choosing between exporters by what their files compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trtconv.core.errors import AccuracyError
from trtconv.core.model.file import load_model, load_structure
from trtconv.core.requests import ExportRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.by_size.size_paths import SizePaths
from trtconv.export.branches.guards import guarded_sizes, unproved_guards
from trtconv.export.branches.joined.cuts import CannotSplitError, Cut
from trtconv.export.branches.plain_numbers import choices_in_words, numbers_in_words, unfollowed_in_words
from trtconv.export.branches.split import find_cut
from trtconv.export.branches.turning_sizes import near_ties
from trtconv.export.branches.value_exits import value_exits
from trtconv.export.branches.while_exported import asking_line
from trtconv.export.exporters.attempt import Attempt, ExportTask, Way, attempt, describe_attempts
from trtconv.export.exporters.boundaries import probed, probed_at
from trtconv.export.exporters.dynamo import OLDEST_OPSET, export_dynamo
from trtconv.export.exporters.far_values import far_notes
from trtconv.export.exporters.kept.paths import compared_at_large_values, compared_at_sizes, path_sizes
from trtconv.export.exporters.kept.recordings import Move, Recordings, moves_of
from trtconv.export.exporters.kept.ways import KeptWay, kept_ways
from trtconv.export.exporters.own_noise import allow_for_rounding
from trtconv.export.exporters.scripted.export import export_scripted
from trtconv.export.exporters.scripted.parts import NoLoopError
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.exporters.trace import ExportCandidate
from trtconv.export.exporters.tracing.size_loops import unrolls_by_size
from trtconv.export.exporters.value_branches import check_value_branches
from trtconv.export.lasting.outside import as_before_trace
from trtconv.export.module.noise.near_ties import told_ties
from trtconv.export.refusal import TEXT_OF_SIZE, export_error, rounded_dims, size_paths
from trtconv.export.sizes.file_sizes import differing_sizes, rounds_anything
from trtconv.export.sizes.float_sizes import FLOATS_OF_SIZES, meets_floats_of_sizes
from trtconv.export.sizes.scan import scan_sizes
from trtconv.proof.joint_sizes import SizeCoverage
from trtconv.proof.proving import ProofVerdict
from trtconv.proof.sampling import Samples

# The order of preference: dynamo keeps higher-level operators; a module traced as it is stands before one whose
# numbers were replaced; an If, which TensorRT does not always build, generalising, which traces often, and a Loop,
# which takes its steps one by one, come last.
WAYS = (
    Way("dynamo", export_dynamo),
    Way("dynamo", export_dynamo, symbolic=True),
    Way("torchscript", export_torchscript),
    Way("torchscript", export_torchscript, symbolic=True),
    Way("dynamo", export_dynamo, symbolic=True, splits=True),
    Way("torchscript", export_torchscript, generalises=True),
    Way("torchscript", export_scripted, scripts=True),
)

# Dims whose size of 1 is exported apart.
MOST_CUTS = 3
# Sizes to which formulas are fitted beside those that are always recorded.
MOST_FITTED = 24
# Sizes at which a recording differs and that become samples, each also fed at the boundaries of its decisions.
MOST_FED = 6
# What torch.export says when Python's own functions on numbers got a size.
SIZE_LOST = (
    "Constraints violated", "data-dependent", "SymInt", "SymFloat", "built-in function", "aten_bitwise",
    "SplitToSequence",
)  # fmt: skip


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
    moves: list[Move] = []
    doubtful: list[tuple[int, ChosenExport]] = []
    decides = False
    wrong_by_text = ""
    by_manner = {symbolic: Recordings(job, symbolic) for symbolic in (False, True)}
    while waiting:
        way = waiting.pop(0)
        if not worth_trying(way, attempts):
            continue
        recordings = by_manner[way.symbolic and way.exporter == "torchscript"]
        result = attempt(way, job)
        job, result = allow_for_rounding(job, result)
        if result.equal:
            if paths is None:
                with as_before_trace(job.runner.module):
                    paths = size_paths(job)
            result = scan_sizes(
                job,
                result,
                paths,
                [*suspect_sizes(attempts, job.request.space), *rounded_sizes(result, job)],
                _dims_to_scan(way, paths, result, job),
            )
        if result.equal and paths is not None:
            job, result = compared_at_sizes(job, result, path_sizes(paths))
            job, result = allow_for_rounding(job, result)
        if result.equal and paths is not None:
            job, result = probed(job, result, path_sizes(paths))
            job, result = allow_for_rounding(job, result)
        if result.equal and paths is not None:
            moves = moves_of(result, paths, recordings)
            at = tuple(tuple(m.sizes.items()) for m in moves if m.where)[:MOST_FITTED]
            waiting = [replace(w, sizes=at) if w.generalises and at else w for w in waiting]
            fed = [m.sizes for m in moves[:MOST_FED]]
            job, result = compared_at_sizes(job, result, fed)
            job, result = probed_at(job, result, fed)
            job, result = compared_at_large_values(job, result, paths, [m.sizes for m in moves])
            job, result = allow_for_rounding(job, result)
        if result.equal:
            job, result = check_value_branches(job, result, allow_for_rounding)
        far = far_notes(job, result) if result.equal else ()
        waiting = [*_with_size_of_failure(way, result), *waiting]
        # Its session holds the weights once more.
        result = replace(result, runs=None)
        attempts.append(result)
        tried = [w.cuts for w in (*(a.way for a in attempts), *waiting)]
        # Few cuts first, and all before other ways.
        apart = [w for w in cuts_at_smallest(job, result) if w.cuts not in tried]
        waiting = sorted([*apart, *waiting], key=lambda w: len(w.cuts) or MOST_CUTS + 1)
        if result.equal and result.candidate is not None and result.verdict is not None:
            attempt_lines = tuple(a.describe() for a in attempts) if len(attempts) > 1 else ()
            left_out = kept_ways(job, result, path_sizes(paths), moves, recordings) if paths is not None else ()
            doubts = (*(k.note for k in left_out), *_doubts(job, result, paths))
            ties = told_ties(result.candidate.model, job.samples.items, job.runner)
            uncompared = (result.uncompared,) if result.uncompared else ()
            unfollowed = _unfollowed(job, result, paths) if not doubts else ()
            notes = (*attempt_lines, *result.candidate.notes, *far, *ties, *uncompared, *unfollowed, *doubts)
            chosen = ChosenExport(result.candidate, result.verdict, tuple(attempts), job.samples, notes, result.sizes)
            if not doubts:
                return chosen
            # Another way may hold the formula, or both ways of a decision.
            certain = next((k.note for k in left_out if k.certain), "")
            wrong_by_text = wrong_by_text or certain
            if not certain:
                doubtful.append((len(doubts), chosen))
            waiting = _holding_both(left_out, way, waiting)
            decides = decides or bool(left_out)
        if len(attempts) == 1 and unrolls_by_size(result.error):
            # All other ways unroll it, and are tried where no script can be made.
            waiting.sort(key=lambda w: not w.scripts)
        if len(attempts) == 1 and asking_line(job.runner, job.samples.cheapest) is not None:
            waiting = [replace(w, as_in_a_run=True) for w in (way, *waiting)]
        if not waiting and any(a.asks for a in attempts) and not way.as_exported:
            # What the user wrote for exporters may be all that they can follow.
            waiting = [replace(w, as_exported=True) for w in ways(job.request)]
        if (doubtful or wrong_by_text) and not any((w.symbolic and not w.splits) or decides for w in waiting):
            break
    if doubtful:
        return min(doubtful, key=lambda pair: pair[0])[1]
    if wrong_by_text:
        raise AccuracyError(wrong_by_text, hint=TEXT_OF_SIZE, details=describe_attempts(attempts))
    # That there is no loop explains nothing.
    raise export_error([a for a in attempts if not isinstance(a.error, NoLoopError)], job, paths)


def _dims_to_scan(way: Way, paths: SizePaths, result: Attempt, job: ExportTask) -> frozenset[str] | None:
    """Every dim (None) of a file whose trace nobody proved; of another those of the sizes that it rounds."""
    unproved = way.exporter == "torchscript" or way.splits or paths.astray
    return None if unproved else rounded_dims(result, job.request.inputs)


def _doubts(job: ExportTask, result: Attempt, paths: SizePaths | None) -> tuple[str, ...]:
    """Notes on a recorded run that took a size for a number, chose one of several, or computes with one in FP32."""
    candidate = result.candidate
    if candidate is None or candidate.exporter != "torchscript":
        return ()
    # Those of a generalised file are followed.
    numbers = {} if result.way.generalises else result.plain_numbers
    if numbers:
        of_values = value_exits(job.runner, [job.samples.items[0].inputs])
        numbers = {frame: number for frame, number in numbers.items() if frame not in of_values}
    base = job.request.source.base
    notes: tuple[str, ...] = (numbers_in_words(numbers, candidate.sizes, base),) if numbers else ()
    if paths is not None and paths.choices and not result.way.symbolic:
        notes += (choices_in_words(paths.choices, candidate.sizes, base),)
    return (*notes, FLOATS_OF_SIZES) if meets_floats_of_sizes(load_model(candidate.model).graph) else notes


def _unfollowed(job: ExportTask, result: Attempt, paths: SizePaths | None) -> tuple[str, ...]:
    """The note on a file of a module whose decisions by size were neither guarded, nor followed, nor all compared."""
    candidate, sizes = result.candidate, result.sizes
    if candidate is None or paths is None or sizes is None or sizes.complete:
        return ()
    # torch.export guards a number that it makes of a size, and not the text of one.
    unguarded = candidate.exporter == "torchscript" or paths.in_text
    if not unguarded or not paths.obstacle or not paths.numbers:
        return ()
    base = job.request.source.base
    return (unfollowed_in_words(paths.numbers, candidate.sizes, base, sizes.tried, sizes.total),)


def _with_size_of_failure(way: Way, result: Attempt) -> list[Way]:
    """A formula that was fitted to some sizes and fails at another is fitted to that one, too."""
    failed_point = result.verdict.at if result.verdict is not None and not result.equal else None
    if not way.generalises or failed_point is None or failed_point.dims in way.sizes or len(way.sizes) >= MOST_FITTED:
        return []
    return [replace(way, sizes=(*way.sizes, failed_point.dims))]


def _holding_both(left_out: Sequence[KeptWay], way: Way, waiting: list[Way]) -> list[Way]:
    """The ways to try after a file that keeps something of the sizes at which it was made."""
    at_one = dict.fromkeys(n for k in left_out for n in k.at_one)
    cuts = (*way.cuts, *(c for name in at_one if (c := Cut(name, 1)) not in way.cuts))
    apart = [Way("dynamo", export_dynamo, symbolic=True, splits=True, cuts=cuts)] if cuts != way.cuts else []
    apart = apart if len(cuts) <= MOST_CUTS else []
    if way.exporter == "dynamo" and not any(k.unguarded for k in left_out):
        # All other sizes are guarded.
        return apart
    return [*apart, *waiting]


def ways(request: ExportRequest) -> tuple[Way, ...]:
    """The ways that a request allows."""
    if request.exporter != "auto":
        return tuple(w for w in WAYS if w.exporter == request.exporter)
    too_old = request.opset is not None and request.opset < OLDEST_OPSET
    return tuple(w for w in WAYS if not (too_old and w.exporter == "dynamo"))


def cuts_at_smallest(job: ExportTask, result: Attempt) -> list[Way]:
    """Where a file of dynamo's differs at a size of 0 or 1: the way that exports that size and larger ones apart.

    torch.export takes these sizes for cases that no one means: `if x.shape[0] == 1` is false in its trace, and no
    guard says so.
    """
    failed_point = result.verdict.at if result.verdict is not None and result.way.exporter == "dynamo" else None
    if failed_point is None:
        return []
    space, before = job.request.space, result.way.cuts
    small = [Cut(n, v) for n, v in failed_point.dims if v <= 1 and space[n].min <= v < space[n].max]
    cuts = [cut for cut in small if cut not in before]
    # One of them may be enough.
    together = [(*before, cut) for cut in cuts] + ([(*before, *cuts)] if len(cuts) > 1 else [])
    return [Way("dynamo", export_dynamo, symbolic=True, splits=True, cuts=c) for c in together if len(c) <= MOST_CUTS]


def rounded_sizes(attempt: Attempt, job: ExportTask) -> list[dict[str, int]]:
    """Joint sizes at which the file's FP32 makes another whole number of a size than Python's FP64 does."""
    if attempt.candidate is None or not rounds_anything(load_structure(attempt.candidate.model).graph):
        return []
    return differing_sizes(load_model(attempt.candidate.model).graph, job.request.inputs, job.request.space)


def suspect_sizes(attempts: list[Attempt], space: ShapeSpace) -> list[dict[str, int]]:
    """Sizes at which an earlier file was wrong, and those next to which dynamo saw a branch: the last of one side and
    the first of the other, and those at which a last bit decides.
    """
    candidates: list[dict[str, int]] = []
    for before in attempts:
        if before.verdict is not None and before.verdict.at is not None:
            candidates.append(before.verdict.at.sizes)
        candidates += guarded_sizes(str(before.error), space)
        candidates += [t for guard in unproved_guards(str(before.error)) for t in near_ties(guard, space)]
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
    if way.splits and not way.cuts:
        # Traced as it is, a module may fail at a number before it comes to its branch.
        return any("Constraints violated" in str(a.error) for a in alike)
    return way.exporter == "torchscript" or any(w in text for w in SIZE_LOST)


def _manner(way: Way) -> tuple[str, bool, bool]:
    return way.exporter, way.as_in_a_run, way.as_exported
