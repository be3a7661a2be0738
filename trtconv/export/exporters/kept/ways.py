"""Ways by size that a file leaves out, though it equals the module at every sample: values that no sample has tell
them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.file import load_model
from trtconv.core.text.listing import list_first, name_sizes
from trtconv.export.branches.explain import find_fork
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.export.exporters.kept.recordings import Move, Recordings
from trtconv.export.exporters.kept.views import written_views
from trtconv.export.exporters.scripted.parts import in_scripts
from trtconv.export.module.user_code import Frame, quote_frame
from trtconv.export.sizes.generalise.align import constant_array

if TYPE_CHECKING:
    import onnx

MOST_SHOWN = 3
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class KeptWay:
    """What a file keeps of some sizes: the `note` on it, and the dims at whose size of 1 the module does otherwise.

    `unguarded`: torch.export has no guard for it at other sizes either. `certain`: the file is wrong there.
    """

    note: str
    at_one: tuple[str, ...] = ()
    unguarded: bool = False
    certain: bool = False


def kept_ways(
    job: ExportTask, attempt: Attempt, points: Sequence[Sizes], moves: Sequence[Move], recordings: Recordings
) -> tuple[KeptWay, ...]:
    """What the file of the attempt keeps of the sizes at which it was made; `points` are sizes on each path.

    torch.export guards all sizes but 1, of which it takes a dim for none, and those that stand in a text. A recorded
    run guards nothing: `moves` says what is otherwise at other sizes.
    """
    candidate, way = attempt.candidate, attempt.way
    if candidate is None:
        return ()
    if way.splits and not way.cuts:
        # Its parts are cut where guards say so, and none speaks of a size of 1.
        return (*_written_views(job), *_by_text(job, candidate.model, moves))
    recorded = candidate.exporter == "torchscript"
    left_out = [*_written_views(job)]
    if recorded:
        left_out += _one_way(job, attempt, candidate.sizes, points, recordings)
        left_out += [] if left_out else _moved(job, attempt, moves)
    else:
        left_out += _at_one(job, points, recordings) or _by_text(job, candidate.model, moves)
    cut = {c.dim for c in way.cuts}
    return tuple(k for k in left_out if not cut or not set(k.at_one) <= cut)


def _one_way(
    job: ExportTask,
    attempt: Attempt,
    recorded_at: Sequence[tuple[str, int]],
    points: Sequence[Sizes],
    recordings: Recordings,
) -> list[KeptWay]:
    """Where the module's way is another at another size.

    Parts that are scripts hold both, and numbers that are followed are those of each way.
    """
    for sizes in points[1:]:
        line = _fork(job, points[0], sizes)
        if line is None or (attempt.way.scripts and in_scripts(job.runner.module, line)):
            continue
        if recordings.differ(points[0], sizes, numbers=not attempt.way.generalises) is not False:
            return [KeptWay(_decides_in_words(job, line, recorded_at))]
    return []


def _at_one(job: ExportTask, points: Sequence[Sizes], recordings: Recordings) -> list[KeptWay]:
    """Where the module does otherwise at a size of 1."""
    base, space = dict(job.sizes), job.request.space
    alone = [{name: 1} for name in base if space[name].min <= 1]
    at_one = [p for p in points if any(size == 1 != base[name] for name, size in p.items())]
    for sizes in (*at_one, *(alone if at_one else ())):
        ones = tuple(name for name, size in sizes.items() if size == 1 != base[name])
        line = _fork(job, base, sizes)
        if line is not None and recordings.differ(base, sizes, numbers=True) is not False:
            return [KeptWay(_decides_in_words(job, line, tuple(base.items())), at_one=ones)]
        numbers = [m for m in recordings.moved(base, sizes) if m.values[0].dtype.kind == "f"]
        if line is None and numbers:
            note = f"the module computes with another number at {name_sizes(sizes)}, and the file with one at all sizes"
            return [KeptWay(note, at_one=ones)]
    return []


def _by_text(job: ExportTask, model: Path, moves: Sequence[Move]) -> list[KeptWay]:
    """Where the text of a size leads to another number, of which the file has one, or another way."""
    if not moves:
        return []
    graph = load_model(model).graph
    constants, branches = _constants(graph), any(node.op_type == "If" for node in walk_nodes(graph.node))
    for move in moves:
        if [(n.dtype, n.tobytes()) in constants for n in move.numbers] == [True, False]:
            note = (
                f"the module takes another number at {name_sizes(move.sizes)} than at {name_sizes(dict(job.sizes))}, "
                f"by the text of a size, and the file would have one at all sizes: {move.where}"
            )
            return [KeptWay(note, unguarded=True, certain=True)]
        line = None if move.where or branches else _fork(job, dict(job.sizes), move.sizes)
        if line is not None:
            return [KeptWay(_decides_in_words(job, line, job.sizes), unguarded=True)]
    return []


def _constants(graph: onnx.GraphProto) -> frozenset[tuple[Any, bytes]]:
    """The constants of a file, of whatever shape: a scalar may be one of a row there."""
    tensors = [*graph.initializer, *(a.t for n in walk_nodes(graph.node) for a in n.attribute if a.name == "value")]
    return frozenset((a.dtype, a.tobytes()) for a in map(constant_array, tensors) if a is not None)


def _moved(job: ExportTask, attempt: Attempt, moves: Sequence[Move]) -> list[KeptWay]:
    """Where a number of the recording is another one at other sizes, or an operator."""
    assert attempt.candidate is not None
    recorded_at, numbers = attempt.candidate.sizes, [m for m in moves if m.where]
    if numbers:
        where = list_first(list(dict.fromkeys(m.where for m in numbers)), MOST_SHOWN)
        note = (
            f"a number of the size stands in the file as it was at {name_sizes(dict(recorded_at))}: {where}; at "
            f"{name_sizes(numbers[0].sizes)} it is another one, and the file equals the module at the points compared"
        )
        return [KeptWay(note)]
    for move in moves:
        line = _fork(job, dict(job.sizes), move.sizes)
        if line is not None:
            return [KeptWay(_decides_in_words(job, line, recorded_at))]
        if 1 not in move.sizes.values():
            # A size of 1 may be broadcast otherwise.
            note = (
                f"the module computes otherwise at {name_sizes(move.sizes)} than at {name_sizes(dict(recorded_at))}, "
                "as the file does at all sizes; it equals the module at the points compared"
            )
            return [KeptWay(note)]
    return []


def _written_views(job: ExportTask) -> list[KeptWay]:
    """Where what is written in place is a view at a size of 1, and a copy else."""
    base, space = dict(job.sizes), job.request.space
    ones = [name for name, size in base.items() if space[name].min <= 1 != size]
    lines = written_views(job.runner, job.samples.items[0].inputs) if ones else {}
    if not lines:
        return []
    different: dict[str, None] = {}
    moving: dict[Frame, None] = {}
    for names in [[name] for name in ones] + ([ones] if len(ones) > 1 else []):
        at_one = written_views(job.runner, job.make(job.point(dict.fromkeys(names, 1))))
        turned = [line for line, is_view in lines.items() if at_one.get(line, is_view) != is_view]
        moving |= dict.fromkeys(turned)
        if turned and not set(names) & set(different):
            different |= dict.fromkeys(names)
    if not different:
        return []
    names = list(different)
    where = list_first([quote_frame(line, job.request.source.base) for line in moving], MOST_SHOWN)
    note = (
        f"what is written in place is a view at {name_sizes(dict.fromkeys(names, 1))} and a copy else: "
        f"{where}; the file writes at all sizes as at {name_sizes(base)}"
    )
    return [KeptWay(note, at_one=tuple(names))]


def _fork(job: ExportTask, here: Sizes, there: Sizes) -> Frame | None:
    fork = find_fork(job.runner, job.make(job.point(here)), job.make(job.point(there)))
    return None if fork is None else fork.line


def _decides_in_words(job: ExportTask, line: Frame, sizes: Sequence[tuple[str, int]]) -> str:
    return (
        f"the module decides by the size: {quote_frame(line, job.request.source.base)}; the file keeps the way at "
        f"{name_sizes(dict(sizes))}, and equals the module at the points compared, those on the other ways too"
    )
