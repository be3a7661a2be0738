"""Reductions of half-precision values in FP32, as torch adds them up.

`trtconv.export.symbolic.arithmetic.half_precision` does so for calls; what torch puts together itself (`normalize`,
`cosine_similarity`, losses) reaches the file as its steps. A sum of squares in FP16 ends at 65,504 by the definition of
ONNX's operators, and one in BF16 stands still at 256 times its elements. ONNX Runtime adds up in FP32 all the same, so
that no comparison on a CPU shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, replace_nodes
from trtconv.core.model.inference import inferred_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

OPERATORS = frozenset((
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "AveragePool", "GlobalAveragePool", "LpPool", "GlobalLpPool", "LpNormalization", "CumSum",
    "Softmax", "LogSoftmax",
))  # fmt: skip
FLOAT, HALVES = 1, (10, 16)


def reduce_in_float32(model: onnx.ModelProto) -> int:
    """Put casts around them, in place; returns around how many."""
    graphs = list(graphs_of(model.graph))
    if not any(_holds_halves(graph) for graph in graphs):
        return 0
    types = inferred_types(model)
    return sum(_widen(graph, types) for graph in graphs)


def _holds_halves(graph: onnx.GraphProto) -> bool:
    """Is there an input, a weight or a cast of half precision, from which all others come?"""
    casts = (a.i for n in graph.node if n.op_type == "Cast" for a in n.attribute if a.name == "to")
    inputs = (v.type.tensor_type.elem_type for v in graph.input)
    return any(kind in HALVES for kinds in (inputs, (t.data_type for t in graph.initializer), casts) for kind in kinds)


def _widen(graph: onnx.GraphProto, types: Mapping[str, int]) -> int:
    from onnx import helper

    nodes, count = [], 0
    for node in graph.node:
        half = types.get(node.input[0], 0) if node.input else 0
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx") or half not in HALVES:
            nodes.append(node)
            continue
        output, own = node.output[0], helper.make_node("Cast", [node.input[0]], [f"{node.output[0]}/wide"], to=FLOAT)
        node.input[0], node.output[0] = own.output[0], f"{output}/sum"
        back = helper.make_node("Cast", [node.output[0]], [output], to=half)
        for cast, name in ((own, "wide"), (back, "half")):
            cast.name = f"{node.name}/{name}"
            cast.metadata_props.extend(node.metadata_props)
        nodes += [own, node, back]
        count += 1
    if count:
        replace_nodes(graph, nodes)
    return count
