"""The module recorded at other sizes: what differs there, a file that was made at one of them cannot have."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.by_size.size_paths import SizePaths
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.export.exporters.scripted.refused_scripts import UnseenWriteError
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.sizes.generalise.align import (
    Moved,
    StructureDiffersError,
    align,
    describe_reader,
    load_recording,
)
from trtconv.export.symbolic.builtins import symbolic_builtins

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Sizes = Mapping[str, int]
# What recording at other sizes may take, beside as long as the file's own export took.
SECONDS, LEAST_RECORDED = 2.0, 2


@dataclass(frozen=True)
class Move:
    """What is otherwise when the module is recorded at other sizes.

    `where` is the node that reads a constant which is another one there, `numbers` that constant at the file's sizes
    and there; both are empty where the operators are others.
    """

    sizes: Sizes
    where: str = ""
    numbers: tuple[Array, ...] = ()


@dataclass
class Recordings:
    """Records the module of a task at sizes, once at each; with functions on numbers that keep sizes if `symbolic`."""

    job: ExportTask
    symbolic: bool = False
    _graphs: dict[frozenset[tuple[str, int]], onnx.GraphProto | None] = field(default_factory=dict)

    def take(self, attempt: Attempt) -> None:
        """Take the file of an attempt that is such a recording for the one at its sizes."""
        candidate, way = attempt.candidate, attempt.way
        alike = not (attempt.asks or way.as_in_a_run) and self.job.request.opset is None
        if alike and candidate is not None and candidate.exporter == "torchscript" and way.symbolic == self.symbolic:
            graph = load_recording(candidate.model).graph
            self._graphs.setdefault(frozenset({**dict(self.job.sizes), **dict(candidate.sizes)}.items()), graph)

    def at(self, sizes: Sizes) -> onnx.GraphProto | None:
        """The graph of a run at these sizes; None where it cannot be recorded. Raises UnseenWriteError."""
        chosen = {**dict(self.job.sizes), **sizes}
        key = frozenset(chosen.items())
        if key not in self._graphs:
            self._graphs[key] = self._recorded(chosen)
        return self._graphs[key]

    def _recorded(self, sizes: dict[str, int]) -> onnx.GraphProto | None:
        folder = self.job.folder / "recordings"
        folder.mkdir()
        try:
            trace = self.job.trace(sizes)
            with symbolic_builtins(trace.flat) if self.symbolic else nullcontext():
                candidate = export_torchscript(trace, folder / self.job.request.output.name, None)
            return load_recording(candidate.model).graph
        except UnseenWriteError:
            raise
        except Exception:  # noqa: BLE001 - the exporter raises whatever a module makes it raise
            return None
        finally:
            # Each holds the weights.
            shutil.rmtree(folder)

    def differ(self, here: Sizes, there: Sizes, *, numbers: bool) -> bool | None:
        """True where the two recordings have other operators, or other `numbers`; None where that cannot be seen."""
        try:
            moved = self._between(here, there)
        except StructureDiffersError:
            return True
        return None if moved is None else numbers and bool(moved)

    def moved(self, here: Sizes, there: Sizes) -> tuple[Moved, ...]:
        """The constants that differ between recordings with the same operators; none where these differ."""
        with suppress(StructureDiffersError):
            return tuple(m for m in self._between(here, there) or () if not m.is_attribute)
        return ()

    def moves(self, points: Sequence[Sizes], seconds: float) -> list[Move]:
        """What is otherwise at other sizes: at `points`, then over the ranges, for about so many CPU `seconds`."""
        effort = Effort(seconds, LEAST_RECORDED)
        base = dict(self.job.sizes)
        moves: list[Move] = []
        for sizes in (*points, *_spread(self.job.request.space, base)):
            if not effort.step():
                break
            there = {**base, **sizes}
            try:
                moved = self._between(base, there) or ()
            except StructureDiffersError:
                moves.append(Move(there))
            else:
                graph = self.at(base)
                if moved and graph is not None:
                    first = moved[0]
                    moves.append(Move(there, describe_reader(graph, first), first.values))
            if sizes not in points:
                # Each holds the weights, and is hardly asked for again.
                self._graphs.pop(frozenset(there.items()))
        return moves

    def _between(self, here: Sizes, there: Sizes) -> tuple[Moved, ...] | None:
        """What moved between two recordings; None where one cannot be made. Raises StructureDiffersError."""
        graphs = self.at(here), self.at(there)
        return None if graphs[0] is None or graphs[1] is None else align([graphs[0], graphs[1]])


def moves_of(attempt: Attempt, paths: SizePaths, recordings: Recordings) -> list[Move]:
    """What is otherwise at other sizes than those of a file that is one run, or was made where sizes stand in texts.

    Nothing for another file.
    """
    candidate, way = attempt.candidate, attempt.way
    if candidate is None or way.generalises or way.scripts:
        return []
    if candidate.exporter != "torchscript" and not paths.in_text:
        return []
    recordings.take(attempt)
    return recordings.moves((*paths.named, *paths.points), SECONDS + candidate.seconds)


def _spread(space: ShapeSpace, base: Sizes) -> Iterator[Sizes]:
    """Sizes of all dims at the ends, each at both, and then of one dim each, the dims in turn.

    Of one: the ends, the middle, the middles of the halves, and so on. What moves with any dim moves at the first two,
    and these are all that there is time for in a large network.
    """
    orders = {name: [size for size in _halved(space[name].values()) if size != base[name]] for name in base}
    moving = {name: order for name, order in orders.items() if order}
    if len(moving) > 1:
        for first in (0, 1):
            yield {name: order[(first + i) % 2 % len(order)] for i, (name, order) in enumerate(moving.items())}
    alone = ([{name: size} for size in order] for name, order in moving.items())
    yield from (sizes for row in zip_longest(*alone) for sizes in row if sizes is not None)


def _halved(values: Sequence[int]) -> list[int]:
    order, waiting = [values[-1], values[0]], [(0, len(values) - 1)]
    while waiting:
        low, high = waiting.pop(0)
        middle = (low + high) // 2
        if low < middle:
            order.append(values[middle])
            waiting += [(low, middle), (middle, high)]
    return list(dict.fromkeys(order))
