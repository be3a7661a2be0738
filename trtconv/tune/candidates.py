"""Candidates: which groups of nodes compute in which precision, and the graph that says so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod

import onnx

from trtconv.core.data.samples import Batch
from trtconv.core.errors import UnsupportedError
from trtconv.core.precision import FP32, HALF_NAMES, QUANTISED_NAMES, precision_named
from trtconv.core.progress import Progress
from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.precision import convert_precision
from trtconv.rewrite.precision.convert import half_nodes
from trtconv.rewrite.precision.qdq.apply import Calibrated, QuantisePlan, calibrate, insert, prepared
from trtconv.rewrite.precision.qdq.layers import LAYER_OPS, Layer, layer_of
from trtconv.rewrite.precision.qdq.placement import place_pairs
from trtconv.tune.groups import NodeGroup, group_by_module

# Bytes of a value: what a layer costs where its speed is not known.
BYTES = {FP32.name: 4, **dict.fromkeys(HALF_NAMES, 2), **dict.fromkeys(QUANTISED_NAMES, 1)}


@dataclass(frozen=True)
class Candidate:
    """`groups` compute in `precision`, all else in `rest`, of which the nodes `rest_fp32` stay FP32."""

    precision: str = FP32.name
    groups: tuple[str, ...] = ()
    rest: str = FP32.name
    rest_fp32: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A short hash of what it says."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def without(self, group: str) -> Candidate:
        """The same with one group less."""
        return Candidate(self.precision, tuple(g for g in self.groups if g != group), self.rest, self.rest_fp32)

    def __str__(self) -> str:
        if not self.groups:
            return FP32.name
        rest = f", the rest {self.rest}" if self.rest != FP32.name else ""
        return f"{self.precision} in {len(self.groups)} groups{rest}"


@dataclass(frozen=True)
class Assignment:
    """A candidate in the words of a rewrite: names of nodes instead of groups."""

    precision: str
    quantise_only: tuple[str, ...] | None
    rest: str
    keep_fp32: tuple[str, ...]


class CandidateModels:
    """Makes the graphs of candidates out of one FP32 model; calibrates once for each precision."""

    def __init__(
        self, model: onnx.ModelProto, target: Target, runs: Sequence[Batch], method: str, progress: Progress
    ) -> None:
        # Names are those that the graph has after a rewrite: a ledger that names them repeats the result.
        self.model, self.target = model, target
        self._runs, self._method, self._progress = runs, method, progress
        self._graph = index_model(prepared(model), target)
        self._calibrated: dict[str, Calibrated] = {}
        self._groups: dict[str, tuple[NodeGroup, ...]] = {}

    def groups(self, precision: str) -> tuple[NodeGroup, ...]:
        """The groups that could compute in a precision. Raises UnsupportedError where there are none."""
        if precision not in self._groups:
            origins = {n.name: n.origin for n in self._graph.nodes.values()}
            if precision in HALF_NAMES:
                names = half_nodes(self.model, precision)
            else:
                calibrated = self._calibration(precision)
                layers = place_pairs(calibrated.graph, calibrated.precision).layers
                names = tuple(layer.node.name for layer in layers)
            self._groups[precision] = group_by_module((n, origins[n]) for n in names if n in origins)
        if not self._groups[precision]:
            raise UnsupportedError(f"nothing in the model could compute in {precision}", hint="leave it out")
        return self._groups[precision]

    def nodes(self, candidate: Candidate) -> tuple[str, ...]:
        """The nodes of the candidate's groups."""
        members = {g.name: g.nodes for g in self.groups(candidate.precision)}
        return tuple(node for name in candidate.groups for node in members[name])

    def assignment(self, candidate: Candidate) -> Assignment:
        """What a rewrite has to be told."""
        if not candidate.groups:
            return Assignment(FP32.name, None, FP32.name, ())
        chosen = self.nodes(candidate)
        if candidate.precision in HALF_NAMES:
            keep = tuple(n for g in self.groups(candidate.precision) for n in g.nodes if n not in set(chosen))
            return Assignment(candidate.precision, None, FP32.name, keep)
        return Assignment(candidate.precision, chosen, candidate.rest, candidate.rest_fp32)

    def build(self, candidate: Candidate) -> onnx.ModelProto:
        """The graph of a candidate; the FP32 model itself for one without groups."""
        choice = self.assignment(candidate)
        if not candidate.groups:
            return self.model
        if choice.precision in HALF_NAMES:
            return convert_precision(self.model, choice.precision, keep_nodes=choice.keep_fp32).model
        precision = precision_named(choice.precision)
        plan = QuantisePlan(precision, self._method, choice.quantise_only, choice.rest, choice.keep_fp32)
        return insert(self._calibration(choice.precision), plan).model

    def cost(self, candidate: Candidate) -> float:
        """Bytes that the layers with weights move and multiply: an order, and no latency."""
        chosen = set(self.nodes(candidate)) if candidate.groups else set()
        total = 0.0
        for node in self._graph.find(*LAYER_OPS):
            layer = layer_of(self._graph, node)
            if isinstance(layer, Layer):
                stays = candidate.precision in HALF_NAMES or node.name in candidate.rest_fp32
                rest = FP32.name if stays or not candidate.groups else candidate.rest
                own = candidate.precision if node.name in chosen else rest
                total += BYTES[own] * layer.k * layer.n * self._positions(layer)
        return total

    def _positions(self, layer: Layer) -> int:
        """How many rows the product has per sample, as far as the sizes are fixed."""
        dims = self._graph.dims(layer.node.outputs[0]) or ()
        spatial = dims[2:] if layer.node.op.startswith("Conv") else dims[1:-1]
        return prod(d for d in spatial if isinstance(d, int))

    def _calibration(self, precision: str) -> Calibrated:
        if precision not in self._calibrated:
            self._calibrated[precision] = calibrate(
                self.model, precision_named(precision), self._runs, self.target, self._progress, method=self._method
            )
        return self._calibrated[precision]
