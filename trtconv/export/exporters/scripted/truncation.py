"""`int(t / 3)` of a script: torch's exporter leaves the cut of a number out (EraseNumberTypes in torch/csrc/jit)."""

from __future__ import annotations

from typing import Any

# int64 in c10/core/ScalarType.h.
LONG = 4


def cut_fractions(graph: Any) -> None:
    """Write each `int` of a fraction as a cast of a tensor without dims, in place."""
    for node in graph.findAllNodes("aten::Int"):
        fraction = next(iter(node.inputs()))
        if fraction.type().kind() not in ("FloatType", "NumberType"):
            continue
        long, no, nothing = (graph.insertConstant(v) for v in (LONG, False, None))
        for constant in (long, no, nothing):
            constant.node().moveBefore(node)
        tensor = graph.create("prim::NumToTensor", [fraction], 1)
        cut = graph.create("aten::to", [tensor.output(), long, no, no, nothing], 1)
        for new in (tensor, cut):
            new.insertBefore(node)
        node.replaceInput(0, cut.output())
