"""What the conversion did: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtconv.core.model.provenance import Origin
from trtconv.rewrite.precision.half import WeightCounts

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class KeptNode:
    """A node that stays in FP32. `kind` is one word, `reason` a sentence; `origin` is its place in the user's code."""

    node: str
    op: str
    kind: str
    reason: str
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True)
class PrecisionReport:
    """The typed model and what was decided.

    `nodes` counts the nodes of all scopes: by `fp16` or `bf16`, `fp32`, and `other` for those without floats; inserted
    casts are counted apart. `weights` says how many weights were clamped, became zero, or lost bits.
    """

    model: onnx.ModelProto
    precision: str
    nodes: Mapping[str, int]
    fp32_nodes: tuple[KeptNode, ...]
    casts: int
    weights: WeightCounts

    def kinds(self) -> Mapping[str, int]:
        """How many nodes stay in FP32 for which kind of reason."""
        counts: dict[str, int] = {}
        for node in self.fp32_nodes:
            counts[node.kind] = counts.get(node.kind, 0) + 1
        return counts
