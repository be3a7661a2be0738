"""A size that is frozen: what a graph computes from its inputs' shapes, as it was at one sample point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trtconv.proof.power.fault import Edit, Fault, FaultGraph

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


def size_faults(graph: FaultGraph, index: int, frozen: Mapping[str, Array]) -> Iterator[Fault]:
    """The output of a Shape or Size node becomes a constant; `frozen` has its value at a sample point, filled later."""
    node = graph.nodes[index]
    if node.op_type in ("Shape", "Size") and not node.domain:
        yield Fault("baked", index, "a size frozen", partial(_frozen, node, frozen))


def _frozen(node: onnx.NodeProto, frozen: Mapping[str, Array]) -> Edit:
    import onnx
    from onnx import numpy_helper

    value = numpy_helper.from_array(frozen[node.output[0]])
    return Edit(onnx.helper.make_node("Constant", [], list(node.output), node.name, value=value))
