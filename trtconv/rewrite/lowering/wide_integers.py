"""Whole numbers that 32 bits do not hold, for a target that computes int64 in them: inputs, and what comes of sizes.

TensorRT 8.6 clamps or wraps silently. What is computed from values is looked at where they are run (`graph/observed`);
here a range that an input was given is, and what a graph works out from the sizes of its inputs at the largest of them,
as `(i * i) % 7` of `i = arange(t)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.targets import Target
from trtconv.rewrite.engine.rounds import RewriteSetting, describe
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.observed import GROWING, INT32, MOST_ELEMENTS
from trtconv.rewrite.graph.operators import INT64
from trtconv.rewrite.lowering.settled_ifs import leading_part

# Every element of what they take is in what they give.
MOVING = ("Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Transpose", "Tile")


@dataclass(frozen=True)
class _Bounds:
    """The lowest and the highest element of a value at the largest sizes."""

    low: int
    high: int


def require_32_bits(model: onnx.ModelProto, setting: RewriteSetting) -> None:
    """Raise UnsupportedError where an input's range, or a number that comes of sizes, needs more than 32 bits."""
    target = setting.target
    if target.generation != 8:
        return
    for spec in setting.specs:
        if spec.dtype.name == "int64" and spec.value_range is not None and not _fits(*map(int, spec.value_range)):
            raise UnsupportedError(
                f"{target} holds int64 in 32 bits, silently, and the input '{spec.name}' has values up to "
                f"{max(spec.value_range, key=abs):.0f}",
                hint="take the remainder or the hash before the engine, so that the numbers stay below 2**31",
            )
    graph = index_model(model, target)
    sized = _of_sizes(graph)
    growing = {o: n for o, n in sized.items() if n.op in (*GROWING, "Range") and graph.dtype(o) == INT64}
    if growing:
        bounds = _run_at_largest(model, graph, sized, setting)
        for name, node in growing.items():
            _require(node, bounds.get(name), target, setting)


def _of_sizes(graph: Graph) -> dict[str, Node]:
    """The values of the main graph that follow from the shapes of its inputs and from constants, by their nodes."""
    weights = {name for name in graph.initializers if name not in graph.inputs}
    sized: dict[str, Node] = {}
    for node in graph.nodes.values():
        of_shapes = node.op in ("Shape", "Size") and node.inputs[0] in graph.inputs
        if node.domain or not (of_shapes or all(not i or i in weights or i in sized for i in node.inputs)):
            continue
        sized.update(dict.fromkeys(node.outputs, node))
    return sized


def _run_at_largest(
    model: onnx.ModelProto, graph: Graph, sized: Mapping[str, Node], setting: RewriteSetting
) -> dict[str, _Bounds]:
    """The bounds of the values that are not too large to be run, and of those that only move such."""
    small: set[str] = set()
    for name, node in sized.items():
        if _is_small(graph, name) and not any(i in sized and i not in small for i in node.inputs):
            small.add(name)
    names = [n for n in small if graph.dtype(n) == INT64 and sized[n].op not in ("Constant", *MOVING)]
    sizes = setting.space.pick("max")
    # Only the shapes are read.
    inputs = {s.name: np.zeros(s.shape(sizes), s.dtype.numpy()) for s in setting.specs}
    bounds: dict[str, _Bounds] = {}
    if names:
        try:
            outputs = OnnxRuntimeRunner(leading_part(model, names).SerializeToString(), threads=1)(inputs)
        except TrtconvError:
            return {}
        filled = {n: v for n, v in outputs.items() if v.size}
        bounds = {n: _Bounds(int(v.min()), int(v.max())) for n, v in filled.items()}
    for name, node in sized.items():
        if name not in bounds and (combined := _combined(node, bounds, graph)) is not None:
            bounds[name] = combined
    return bounds


def _is_small(graph: Graph, name: str) -> bool:
    """True for what may be run at the largest sizes: a vector, or what is known to have few elements."""
    rank = graph.rank(name)
    if rank is None:
        return False
    return rank < 2 or (largest(graph, name) or MOST_ELEMENTS + 1) <= MOST_ELEMENTS


def _combined(node: Node, bounds: Mapping[str, _Bounds], graph: Graph) -> _Bounds | None:
    """What a sum, a difference or a product can come to, as of a table of all pairs that is not run."""
    first, second = (bounds.get(n) or _constant(graph, n) if n else None for n in (*node.inputs, "", "")[:2])
    if node.op in MOVING:
        return first
    if node.op not in ("Add", "Sub", "Mul") or first is None or second is None:
        return None
    operation = {"Add": int.__add__, "Sub": int.__sub__, "Mul": int.__mul__}[node.op]
    corners = [operation(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
    return _Bounds(min(corners), max(corners))


def _constant(graph: Graph, name: str) -> _Bounds | None:
    value = graph.constant(name)
    if value is None or value.dtype.kind not in "iu" or not value.size:
        return None
    return _Bounds(int(value.min()), int(value.max()))


def _require(node: Node, bounds: _Bounds | None, target: Target, setting: RewriteSetting) -> None:
    if bounds is None or _fits(bounds.low, bounds.high):
        return
    worst = bounds.low if bounds.low < INT32[0] else bounds.high
    sizes = " ".join(f"{n}={v}" for n, v in setting.space.pick("max").items())
    raise UnsupportedError(
        f"{describe(node)}: {target} computes int64 in 32 bits, silently, and {worst} comes out of it at the largest "
        f"sizes ({sizes})",
        hint="keep the numbers below 2**31 (take the remainder earlier), or give ranges with --dynamic that do",
        where=node.origin.source or None,
    )


def _fits(low: int, high: int) -> bool:
    return INT32[0] <= low and high <= INT32[1]
