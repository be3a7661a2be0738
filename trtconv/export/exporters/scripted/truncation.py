"""`int(t / 3)` of a script: torch's exporter leaves the cut of a number out (EraseNumberTypes in torch/csrc/jit)."""

from __future__ import annotations

from typing import Any

# int64 in c10/core/ScalarType.h.
LONG = 4


def inline_cuts(script: Any) -> None:
    """Write each `int` of a fraction in what a script runs, in place; the script computes as before."""
    import torch

    if hasattr(script, "inlined_graph") and _cuts(script.inlined_graph):
        torch._C._jit_pass_inline(script.graph)
        cut_fractions(script.graph)


def _cuts(graph: Any) -> list[Any]:
    nodes = graph.findAllNodes("aten::Int")
    return [n for n in nodes if next(iter(n.inputs())).type().kind() in ("FloatType", "NumberType")]


def cut_fractions(graph: Any) -> None:
    """Write each `int` of a fraction as a cast of a tensor without dims, in place."""
    for node in _cuts(graph):
        fraction = next(iter(node.inputs()))
        long, no, nothing = (graph.insertConstant(v) for v in (LONG, False, None))
        for constant in (long, no, nothing):
            constant.node().moveBefore(node)
        tensor = graph.create("prim::NumToTensor", [fraction], 1)
        cut = graph.create("aten::to", [tensor.output(), long, no, no, nothing], 1)
        for new in (tensor, cut):
            new.insertBefore(node)
        node.replaceInput(0, cut.output())
