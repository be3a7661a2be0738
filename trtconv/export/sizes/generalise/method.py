"""Generalising by differential export: trace at several sizes, see what moves, make it follow, prove it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.export.branches.plain_numbers import fixed_sizes
from trtconv.export.exporters.trace import ExportCandidate, Trace
from trtconv.export.sizes.generalise.align import align, constants_of, load_recording, require_same_structure
from trtconv.export.sizes.generalise.formulas import CannotFollowError
from trtconv.export.sizes.generalise.repair import repair
from trtconv.export.sizes.generalise.tables import TableSizes

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Export = Callable[[Trace, Path, int | None], ExportCandidate]
Retrace = Callable[[dict[str, int]], Trace]
STEPS = 3
# What recording at every size of its tables may take of a conversion.
LONGEST_SECONDS = 90.0


def other_sizes(trace: Trace) -> list[dict[str, int]]:
    """The traced sizes; then each dynamic dim at STEPS others with the rest as it was; then all of them at others."""
    base = dict(trace.sizes)
    moving = [n for n in base if trace.dynamic(n)]
    near = {n: _near(base[n], list(trace.space[n].values()[:128]), {*base.values()}) for n in moving}
    trace_sizes = [base]
    for name in moving:
        trace_sizes += [{**base, name: value} for value in near[name]]
    if len(moving) > 1:
        trace_sizes.append({**base, **{n: near[n][-1] for n in moving if near[n]}})
    return trace_sizes


def _near(size: int, values: list[int], others: set[int]) -> list[int]:
    """Sizes that are larger by steps that are not multiples of each other, 1 left out; smaller ones where needed.

    Those that equal the size of another dim come last: in the recording of a square what the two sides have in common
    is computed once.
    """
    index = values.index(size) if size in values else 0
    steps = [index + s for s in (3, 7, 12)] + [index - s for s in (1, 2, 3, 4)] + [index + s for s in (1, 2)]
    nearby = [values[i] for i in steps if 0 <= i < len(values) and values[i] > 1]
    distinct = dict.fromkeys(v for v in nearby if v != size)
    return sorted(distinct, key=lambda v: v in others)[:STEPS]


def generalise(
    export: Export,
    retrace: Retrace,
    trace: Trace,
    folder: Path,
    name: str,
    opset: int | None,
    more: Sequence[dict[str, int]] = (),
    spent: float = 0.0,
) -> ExportCandidate:
    """A candidate whose baked numbers follow the dims; `more` are sizes at which they are known to move.

    `spent` are the seconds that earlier ones took, which were wrong somewhere.
    Where recordings in which sizes are tensors, of which NumPy takes none, raise or differ in structure, plain numbers
    are put in their place.
    Raises CannotFollowError when nothing moved or something moved that no expression gives, StructureDiffersError
    when the graphs differ in more than numbers, and what the exporter raises.
    """
    started = time.monotonic()
    try:
        return _generalised(export, retrace, trace, folder, name, opset, more, spent)
    except CannotFollowError:
        raise
    except Exception as error:
        if time.monotonic() - started > LONGEST_SECONDS / 2:
            raise
        first = error
    try:
        fixed = _with_fixed_sizes(export)
        spent += time.monotonic() - started
        return _generalised(fixed, retrace, trace, folder / "fixed", name, opset, more, spent)
    except CannotFollowError:
        raise
    except Exception:  # noqa: BLE001 - what the module raises is not for the kind of sizes
        pass
    raise first


def _generalised(
    export: Export,
    retrace: Retrace,
    trace: Trace,
    folder: Path,
    name: str,
    opset: int | None,
    more: Sequence[dict[str, int]],
    spent: float,
) -> ExportCandidate:
    started = time.monotonic()
    sizes = other_sizes(trace)
    sizes += [s for s in more if s not in sizes]
    candidates, models = [], []
    for index, chosen in enumerate(sizes):
        trace_folder = folder / f"trace-{index}"
        trace_folder.mkdir(parents=True, exist_ok=True)
        candidates.append(export(retrace(chosen) if index else trace, trace_folder / name, opset))
        models.append(load_recording(candidates[-1].model))
        # A loop is seen at the second size already.
        require_same_structure(models[0].graph, models[-1].graph)
    moved = align([m.graph for m in models])
    if not moved:
        raise CannotFollowError("traced at other sizes the graph is the same")
    mean_seconds = (time.monotonic() - started) / len(sizes)
    # Formulas take the places of constants in the graph itself.
    wiring = type(models[0].graph)()
    wiring.node.extend(models[0].graph.node)
    wiring.input.extend(models[0].graph.input)
    left = LONGEST_SECONDS - spent
    again = _Again(export, retrace, trace, folder / "again", name, opset, wiring, mean_seconds, left)
    traced = [tuple(s.items()) for s in sizes]
    repair_notes = repair(models[0].graph, moved, traced, trace.specs, candidates[0].opset, again)
    candidates[0].model.write_bytes(models[0].SerializeToString(deterministic=True))
    seconds = time.monotonic() - started
    notes = (f"generalised from {len(sizes)} traces in {seconds:.1f} s", *repair_notes)
    return replace(candidates[0], seconds=seconds, notes=notes)


def _with_fixed_sizes(export: Export) -> Export:
    def exported(trace: Trace, output: Path, opset: int | None) -> ExportCandidate:
        with fixed_sizes():
            return export(trace, output, opset)

    return exported


@dataclass(frozen=True)
class _Again:
    """Records the module at every size that a table needs, each trace compared with `graph` in structure."""

    export: Export
    retrace: Retrace
    trace: Trace
    folder: Path
    name: str
    opset: int | None
    graph: onnx.GraphProto
    mean_seconds: float
    seconds_left: float

    @property
    def ranges(self) -> dict[str, range]:
        """The dims that move, and their values."""
        return {n: self.trace.space[n].values() for n, _ in self.trace.sizes if self.trace.dynamic(n)}

    def constants(self, names: Sequence[str], table_sizes: TableSizes) -> dict[str, list[Array]]:
        """The constants of `graph` that have these names, at each of the sizes.

        Raises CannotFollowError where that would take longer than is left, StructureDiffersError, and what the exporter
        raises.
        """
        seconds = self.mean_seconds * table_sizes.count
        if seconds > self.seconds_left:
            raise CannotFollowError(
                f"recording it at each of {table_sizes.count} sizes of {table_sizes} would take {seconds:.0f} s"
            )
        constants: dict[str, list[Array]] = {name: [] for name in names}
        for sizes in table_sizes:
            self.folder.mkdir()
            trace = self.retrace({**dict(self.trace.sizes), **sizes})
            candidate = self.export(trace, self.folder / self.name, self.opset)
            for name, value in constants_of(self.graph, load_recording(candidate.model).graph, names).items():
                constants[name].append(value)
            # Each holds the weights.
            shutil.rmtree(self.folder)
        return constants
