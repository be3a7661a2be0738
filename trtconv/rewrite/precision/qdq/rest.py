"""What is not quantised, on a TensorRT whose half precision is a permission of the builder and no type of the graph.

TensorRT 8.6 reads opset 17, in which a Q/DQ pair has FP32 scales and FP32 values. So the graph stays FP32 there, and
its metadata says that the builder may compute the rest in half precision, and which nodes it may not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.file import set_metadata
from trtconv.core.model.provenance import REST_FP32_KEY, REST_KEY
from trtconv.core.precision import HALF_NAMES, precision_named
from trtconv.core.targets import Target
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.convert import fp32_nodes
from trtconv.rewrite.precision.operators import FEEDS_QUANTIZE
from trtconv.rewrite.precision.qdq.layers import CONVOLUTIONS, MOVING


@dataclass(frozen=True)
class RestPlan:
    """The precision of what is not quantised, nodes of it that stay FP32 by request, and the operators of the quantised
    layers by their names."""

    rest: str
    keep_fp32: Collection[str]
    quantised: Mapping[str, str]


def rest_is_a_flag(target: Target) -> bool:
    """True where the builder, and not the graph, holds the precision of what is not quantised."""
    return target.generation == 8


def record_rest(model: onnx.ModelProto, graph: Graph, source: onnx.ModelProto, plan: RestPlan) -> None:
    """Write into `model` what the builder needs to compute the rest of the FP32 graph `source` in half precision.

    The nodes that stay FP32 are those that a typed graph would keep, but for those that only move values, through which
    TensorRT moves a Q, and for those that read what a quantised convolution gives: a pin reaches back to what is read,
    and TensorRT 8.6 has no INT8 convolution with a sum in it that gives FP32 (measured on an H200).
    """
    if plan.rest not in HALF_NAMES:
        return
    keep = [n.node for n in fp32_nodes(source, plan.rest, plan.keep_fp32) if n.op not in MOVING]
    nodes = {node.name: node for node in graph.nodes.values()}
    convolutions = {name for name, op in plan.quantised.items() if op in CONVOLUTIONS}
    pinned = [n for n in keep if n not in plan.quantised and not _reads(graph, nodes.get(n), convolutions)]
    set_metadata(model, REST_KEY, plan.rest)
    set_metadata(model, REST_FP32_KEY, "\n".join(dict.fromkeys(pinned)))


def _reads(graph: Graph, node: Node | None, layers: Collection[str]) -> bool:
    """True where one of the layers is fused up to what the node reads."""
    waiting = list(node.inputs) if node is not None else []
    visited: set[str] = set()
    while waiting:
        maker = graph.maker(waiting.pop())
        if maker is None or maker.name in visited:
            continue
        if maker.name in layers:
            return True
        visited.add(maker.name)
        if maker.key in FEEDS_QUANTIZE:
            waiting += maker.inputs
    return False


def require_rest(rest: str, target: Target) -> None:
    """Raise UnsupportedError where the target does not compute in the precision of the rest."""
    if not precision_named(rest).is_in(target):
        raise UnsupportedError(f"{target} has no {rest}", hint="choose another --rest or --target")
