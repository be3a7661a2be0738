"""The module recorded at other sizes: what differs there, a file that was made at one of them cannot have."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import origin_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.exporters.attempt import ExportTask
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.sizes.generalise.align import Moved, StructureDiffersError, align

if TYPE_CHECKING:
    import onnx

Sizes = Mapping[str, int]
# What recording at other sizes may take, beside as long as the file's own export took.
SECONDS = 2.0


@dataclass(frozen=True)
class MovedNumber:
    """A constant that is another one when the module is recorded at other sizes; `where` is the node that reads it."""

    sizes: Sizes
    where: str


@dataclass
class Recordings:
    """Records the module of a task at sizes, once at each."""

    job: ExportTask
    _graphs: dict[frozenset[tuple[str, int]], onnx.GraphProto | None] = field(default_factory=dict)

    def at(self, sizes: Sizes) -> onnx.GraphProto | None:
        """The graph of a run at these sizes; None where it cannot be recorded."""
        chosen = {**dict(self.job.sizes), **sizes}
        key = frozenset(chosen.items())
        if key not in self._graphs:
            self._graphs[key] = self._recorded(chosen)
        return self._graphs[key]

    def _recorded(self, sizes: dict[str, int]) -> onnx.GraphProto | None:
        folder = self.job.folder / "recordings"
        folder.mkdir()
        try:
            candidate = export_torchscript(self.job.trace(sizes), folder / self.job.request.output.name, None)
            return load_model(candidate.model).graph
        except Exception:  # noqa: BLE001 - the exporter raises whatever a module makes it raise
            return None
        finally:
            # Each holds the weights.
            shutil.rmtree(folder)

    def differ(self, here: Sizes, there: Sizes) -> bool | None:
        """True where the two recordings have other operators or numbers; None where that cannot be seen."""
        graphs = self.at(here), self.at(there)
        try:
            return None if graphs[0] is None or graphs[1] is None else bool(align([graphs[0], graphs[1]]))
        except StructureDiffersError:
            return True

    def moved(self, here: Sizes, there: Sizes) -> tuple[Moved, ...]:
        """The constants that differ between recordings with the same operators; none where these differ."""
        graphs = self.at(here), self.at(there)
        if graphs[0] is None or graphs[1] is None:
            return ()
        try:
            return align([graphs[0], graphs[1]])
        except StructureDiffersError:
            return ()

    def moved_numbers(self, points: Sequence[Sizes], seconds: float) -> list[MovedNumber]:
        """Constants that are others at other sizes: at `points`, then over the ranges, for at most about `seconds`."""
        started = time.monotonic()
        base = dict(self.job.sizes)
        numbers: list[MovedNumber] = []
        for sizes in (*points, *_spread(self.job.request.space, base)):
            if time.monotonic() - started > seconds:
                break
            moved = [m for m in self.moved(base, sizes) if not m.is_attribute]
            graph = self.at(base)
            if moved and graph is not None:
                node = next((n for n in graph.node if moved[0].name in n.input), graph.node[moved[0].node])
                numbers.append(MovedNumber({**base, **sizes}, f"{node.op_type} of {origin_of(node)}"))
        return numbers


def _spread(space: ShapeSpace, base: Sizes) -> Iterator[Sizes]:
    """Sizes of one dim each, the dims in turn: the ends, the middle, the middles of the halves, and so on."""
    orders = [[{name: size} for size in _halved(space[name].values()) if size != base[name]] for name in base]
    return (sizes for row in zip_longest(*orders) for sizes in row if sizes is not None)


def _halved(values: Sequence[int]) -> list[int]:
    order, waiting = [values[-1], values[0]], [(0, len(values) - 1)]
    while waiting:
        low, high = waiting.pop(0)
        middle = (low + high) // 2
        if low < middle:
            order.append(values[middle])
            waiting += [(low, middle), (middle, high)]
    return list(dict.fromkeys(order))
