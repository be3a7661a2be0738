"""What a file decides within its own rounding is told: an index or a row that no machine promises to keep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import external_files, load_model, load_structure
from trtconv.core.model.provenance import origin_of
from trtconv.core.text.listing import list_first
from trtconv.proof.points import SamplePoint
from trtconv.proof.probes.near_ties import NearTie, find_rankings, near_ties
from trtconv.proof.reference import ReferenceSample

NEARLY_TIED = "nearly tied values are ranked"
# Each is run a few times up to the last ranking; more points find more pairs and the same nodes.
MOST_POINTS = 3
# A larger graph is not copied for this.
MOST_BYTES = 1 << 29
MOST_NAMED = 3


def told_ties(path: Path, samples: Sequence[ReferenceSample]) -> tuple[str, ...]:
    """A note on the rankings of a file that tie within their noise at the cheapest points with random values."""
    structure = load_structure(path)
    if not find_rankings(structure.graph) or external_files(structure) or path.stat().st_size > MOST_BYTES:
        return ()
    model = load_model(path)
    random = [s for s in samples if s.point.values == "random"]
    cheapest = sorted(random, key=lambda s: sum(v.nbytes for v in s.inputs.values()))[:MOST_POINTS]
    closest: dict[str, tuple[NearTie, SamplePoint]] = {}
    for sample in cheapest:
        try:
            ties = near_ties(model, sample.inputs, GraphRunner)
        except TrtconvError:
            # What cannot be run with its inner values as outputs is compared by its outputs alone.
            return ()
        for tie in ties:
            before = closest.get(tie.ranking.node)
            if before is None or tie.margin / tie.noise < before[0].margin / before[0].noise:
                closest[tie.ranking.node] = tie, sample.point
    return (_in_words(model, list(closest.values())),) if closest else ()


def _in_words(model: onnx.ModelProto, ties: list[tuple[NearTie, SamplePoint]]) -> str:
    origins = {n.name: origin_of(n) for n in model.graph.node}
    places = []
    for tie, point in ties:
        origin = origins.get(tie.ranking.node)
        line = origin.source if origin and origin.source else f"node '{tie.ranking.node}'"
        cut = ", some at the cut" if tie.cut and tie.ranking.values else ""
        places.append(
            f"{line} ({tie.ranking.op} at {point}: {tie.count} {'pair' if tie.count == 1 else 'pairs'}{cut}; the "
            f"closest, {tie.first:.7g} and {tie.second:.7g}, part by {tie.margin:.2g} and rounding moves them by "
            f"{tie.noise:.2g})"
        )
    return (
        f"{NEARLY_TIED}, which other machines, thread counts and precisions may rank "
        f"otherwise: {list_first(places, MOST_NAMED, '; ')}"
    )
