"""`convert_precision`: an FP32 graph typed in FP16 or BF16, so that every TensorRT builds what the graph says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import onnx

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.opset import opset_of
from trtconv.core.precision import BF16, FP32
from trtconv.core.targets import parse_target
from trtconv.rewrite.graph.facts import Types, types_in
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.lowering.inline import inline_functions
from trtconv.rewrite.precision.half import half_format
from trtconv.rewrite.precision.operators import ANY_TYPE, BLOCK_OPS
from trtconv.rewrite.precision.opset import OPSET, raise_opset, require_raisable
from trtconv.rewrite.precision.plan import make_plan
from trtconv.rewrite.precision.report import KeptNode, PrecisionReport
from trtconv.rewrite.precision.state import PrecisionPlan
from trtconv.rewrite.precision.types import ElementTypes, Signatures
from trtconv.rewrite.precision.write import Writer, copy_fields


def convert_precision(
    model: onnx.ModelProto,
    precision: str,
    *,
    keep_io: bool = True,
    block_ops: frozenset[str] | None = None,
    keep_nodes: Collection[str] = (),
) -> PrecisionReport:
    """Type an FP32 model as `fp16` or `bf16`; the given model is not changed.

    FP32 weights become half precision (once for each use that differs), casts are put where two types meet. Nodes for
    which half precision has too few bits or too little range stay in FP32 (`BLOCK_OPS` and what belongs to them), as
    do those named in `keep_nodes` (node names; a node without one goes by its first output). `block_ops` replaces
    BLOCK_OPS. BF16 brings the graph to opset 22. With `keep_io` inputs and outputs stay FP32. Names, dims, dim_params
    and metadata are kept; values that are not FP32 are left alone. Raises InvalidRequestError for another precision,
    an unknown node name, a graph that is not sorted, weights that are still on disk, or a model with nothing in FP32.
    """
    source, plan, root = _planned(model, precision, keep_io, block_ops, keep_nodes)
    to = plan.to
    counts = _counts(plan, root)
    if not counts[to.name] and not counts[FP32.name]:
        raise InvalidRequestError(
            f"the model computes nothing in FP32 that could become {to.name}", hint="leave --precision out"
        )
    result = onnx.ModelProto()
    copy_fields(source, result, without=("graph",))
    writer = Writer(plan, root, result.graph, keep_io=keep_io)
    writer.write()
    if plan.signatures.opset != root.opset:
        raise_opset(result)
    return PrecisionReport(result, to.name, dict(counts), tuple(_fp32_nodes(plan, root)), writer.casts, writer.weights)


def half_nodes(model: onnx.ModelProto, precision: str, keep_nodes: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the nodes that `convert_precision` would type as half precision, in order of the graph."""
    _, plan, root = _planned(model, precision, True, None, keep_nodes)
    names = [
        n.name
        for g, n in _all(root)
        if id(n) not in plan.fp32_reasons
        and n.key not in ("Constant", *ANY_TYPE)
        and plan.floats(g, n.inputs + n.outputs)
    ]
    return tuple(dict.fromkeys(names))


def fp32_nodes(model: onnx.ModelProto, precision: str, keep_nodes: Collection[str] = ()) -> tuple[KeptNode, ...]:
    """The nodes that `convert_precision` would keep in FP32, in order of the graph."""
    _, plan, root = _planned(model, precision, True, None, keep_nodes)
    return tuple(_fp32_nodes(plan, root))


def _planned(
    model: onnx.ModelProto, precision: str, keep_io: bool, block_ops: frozenset[str] | None, keep_nodes: Collection[str]
) -> tuple[onnx.ModelProto, PrecisionPlan, Graph]:
    """The model without local functions, the plan for it, and its main graph."""
    to = half_format(precision)
    source, _ = inline_functions(model)
    types_given = Types(types_in(source.graph), {})
    root = Graph(source.graph, types_given, opset=opset_of(source), target=parse_target("tensorrt-rtx"))
    raised = to.name == BF16.name and root.opset < OPSET
    if raised:
        require_raisable(root)
    signatures = Signatures(OPSET if raised else root.opset, tuple(source.functions))
    types = ElementTypes(root, signatures)
    block = BLOCK_OPS if block_ops is None else block_ops
    return source, make_plan(root, types, signatures, to, block, keep_nodes, fp32_outputs=keep_io), root


def _counts(plan: PrecisionPlan, root: Graph) -> Counter[str]:
    counts = Counter({plan.to.name: 0, FP32.name: 0, "other": 0})
    for graph, node in _all(root):
        if not plan.floats(graph, node.inputs + node.outputs):
            counts["other"] += 1
        elif node.key != "Constant":
            counts[FP32.name if id(node) in plan.fp32_reasons else plan.to.name] += 1
    return counts


def _fp32_nodes(plan: PrecisionPlan, root: Graph) -> Iterator[KeptNode]:
    for _, node in _all(root):
        reason = plan.fp32_reasons.get(id(node))
        if reason is not None:
            yield KeptNode(node.name, node.key, reason.kind, reason.text, node.origin)


def _all(root: Graph) -> Iterator[tuple[Graph, Node]]:
    for graph in root.scopes():
        for node in graph.nodes.values():
            yield graph, node
