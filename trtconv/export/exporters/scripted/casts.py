"""Casts of a script that torch's exporter leaves out or writes in another place.

The cut of `int(t / 3)` goes with all casts of numbers (EraseNumberTypes in torch/csrc/jit), and the type that
`softmax(x, dtype=...)` computes in is cast to behind it (see `trtconv.export.symbolic.arithmetic.result_types`).
"""

from __future__ import annotations

from typing import Any

# int64 in c10/core/ScalarType.h.
LONG = 4
SOFTMAXES = ("aten::softmax", "aten::log_softmax")


def write_casts(script: Any) -> None:
    """Write them as casts of tensors in what a script runs, in place; the script computes as before."""
    import torch

    inlined = getattr(script, "inlined_graph", None)
    if inlined is None or not (_cuts(inlined) or _typed_softmaxes(inlined)):
        return
    graph = script.graph
    torch._C._jit_pass_inline(graph)
    for node in _cuts(graph):
        number = graph.create("prim::NumToTensor", [next(iter(node.inputs()))], 1)
        number.insertBefore(node)
        node.replaceInput(0, _cast_before(node, graph, number.output(), _constant_before(node, graph, LONG)))
    for node in _typed_softmaxes(graph):
        tensor, _, dtype = node.inputs()
        node.replaceInput(0, _cast_before(node, graph, tensor, dtype))
        node.replaceInput(2, _constant_before(node, graph, None))


def _cuts(graph: Any) -> list[Any]:
    nodes = graph.findAllNodes("aten::Int")
    return [n for n in nodes if next(iter(n.inputs())).type().kind() in ("FloatType", "NumberType")]


def _typed_softmaxes(graph: Any) -> list[Any]:
    nodes = [node for kind in SOFTMAXES for node in graph.findAllNodes(kind)]
    return [n for n in nodes if list(n.inputs())[2].type().kind() != "NoneType"]


def _cast_before(node: Any, graph: Any, tensor: Any, dtype: Any) -> Any:
    """The tensor in this type, cast in front of a node."""
    no, nothing = (_constant_before(node, graph, value) for value in (False, None))
    cast = graph.create("aten::to", [tensor, dtype, no, no, nothing], 1)
    cast.insertBefore(node)
    return cast.output()


def _constant_before(node: Any, graph: Any, value: Any) -> Any:
    constant = graph.insertConstant(value)
    constant.node().moveBefore(node)
    return constant
