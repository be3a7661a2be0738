"""In which type an engine's layers compute, as the engine itself tells it: counted, timed, and by ONNX node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtconv.core.precision import FP8, PRECISIONS

if TYPE_CHECKING:
    from trtconv.backends.tensorrt.layers import LayerInfo

# TensorRT fuses attention and norms into regions of which it tells no type.
UNTOLD = "not told"


@dataclass(frozen=True)
class EngineLayers:
    """`counts` and `seconds` of layers by precision; `nodes` gives for each ONNX node the precision of its layer."""

    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)

    def elsewhere(self, chosen: Collection[str], precision: str) -> tuple[str, ...]:
        """Those of the chosen nodes that the engine computes in another precision, as far as it tells."""
        return tuple(n for n in chosen if self.nodes.get(n, UNTOLD) not in (precision, UNTOLD))

    def share(self, chosen: Collection[str], precision: str) -> float | None:
        """The share of the chosen nodes that compute in a precision; None where the engine tells it of none."""
        types = [self.nodes[n] for n in chosen if self.nodes.get(n, UNTOLD) != UNTOLD]
        return types.count(precision) / len(chosen) if types else None

    def as_dict(self) -> dict[str, Any]:
        """Counts, and shares of the time where it was measured."""
        total = sum(self.seconds.values())
        shares = {n: round(s / total, 4) for n, s in self.seconds.items()} if total else {}
        return {"layers": dict(self.counts), "time": shares}


def read_engine_layers(layers: Iterable[LayerInfo]) -> EngineLayers:
    """Put the inspector's layers together."""
    names = {p.dtype: p.name for p in PRECISIONS if p.carrier != "flag"} | {"float8": FP8.name}
    counts: dict[str, int] = {}
    seconds: dict[str, float] = {}
    nodes: dict[str, str] = {}
    for layer in layers:
        dtype = layer.computes_in
        precision = names.get(dtype, dtype) or UNTOLD
        counts[precision] = counts.get(precision, 0) + 1
        seconds[precision] = seconds.get(precision, 0.0) + layer.seconds
        for node in layer.onnx_nodes:
            # A node may be behind several layers, of which a copy or a reformat tells less.
            if layer.is_product or node not in nodes:
                nodes[node] = precision
    return EngineLayers(counts, seconds, nodes)
