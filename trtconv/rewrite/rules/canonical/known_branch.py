"""If on a size that is the same in the whole shape space: the branch that is taken, without the other.

The TorchScript exporter writes `x.squeeze(1)` of a size that it does not know as an If with a branch for each rank. An
If whose branches differ in rank is refused by every TensorRT.
"""

from __future__ import annotations

from functools import partial

import onnx_graphsurgeon as gs
from onnx import numpy_helper

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import CHAIN, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.graph.splice import topological_order
from trtconv.rewrite.patterns.sizes import Size, size_element
from trtconv.rewrite.patterns.slice_length import sliced_length

PASSED = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze")
BRANCHES = {True: "then_branch", False: "else_branch"}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where the condition compares a size that is known, or whose recorded range leaves the number out."""
    truth = _truth(graph, node.inputs[0])
    if truth is None:
        return NOT_THIS
    names = [a.name for a in node.proto.attribute if a.HasField("g")]
    body = node.bodies[names.index(BRANCHES[truth])]
    if body.with_bodies:
        return Skip("the branch that is taken holds bodies itself")
    return Found((node,), partial(_build, body=body), note=f"the condition is {str(truth).lower()} at every size")


def _truth(graph: Graph, name: str) -> bool | None:
    """The value of a condition at every size, or None."""
    turned = False
    for _ in range(CHAIN):
        fixed = graph.constant(name)
        if fixed is not None:
            return bool(fixed.reshape(-1)[0]) != turned if fixed.size == 1 else None
        node = graph.maker(name, *PASSED, "Not", "Equal")
        if node is None:
            return None
        if node.key == "Equal":
            equal = _equal(graph, node)
            return None if equal is None else equal != turned
        turned ^= node.key == "Not"
        name = node.inputs[0]
    return None


def _equal(graph: Graph, node: Node) -> bool | None:
    if any(graph.dims(i) not in ((), (1,)) for i in node.inputs):
        return None
    one, other = (size_element(graph, i, 0) for i in node.inputs)
    if one is None or other is None or not (one.is_constant or other.is_constant):
        return None
    moving, number = (other, one.add) if one.is_constant else (one, other.add)
    low, high = _range(graph, moving) or (None, None)
    if low is None or high is None:
        return None
    if low == high:
        return low == number
    return None if low <= number <= high else False


def _range(graph: Graph, size: Size) -> tuple[int, int] | None:
    """The smallest and largest value of a size in the recorded space."""
    if size.is_constant:
        return size.add, size.add
    dims = graph.dims(size.value)
    bounds = None if dims is None else graph.dim_range(dims[size.axis])
    if bounds is None:
        length = sliced_length(graph, size.value, size.axis)
        if length is None:
            return None
        bounds = length, length
    ends = sorted(size.mul * end + size.add for end in bounds)
    return ends[0], ends[1]


def _build(g: Replacement, body: Graph) -> tuple[Value, ...]:
    """The nodes of the branch, under names of their own."""
    names = {n: g.const(numpy_helper.to_array(t), n) for n, t in body.initializers.items()}
    for node in topological_order(body):
        attributes = {a.name: a for a in node.proto.attribute}
        outputs = g.ops(
            node.op, len(node.outputs), *(names.get(i, i) for i in node.inputs), domain=node.domain, **attributes
        )
        g.nodes[-1].outputs = [
            new if old else gs.Variable.empty() for old, new in zip(node.outputs, outputs, strict=True)
        ]
        names.update((old, new) for old, new in zip(node.outputs, outputs, strict=True) if old)
    return tuple(names.get(o, o) for o in body.outputs)


RULE = Rule(
    name="known-branch",
    why="An If whose branches differ in rank is refused; where a size decides it once for all, one branch is enough.",
    ops=("If",),
    find=find,
    before="If(Equal(Gather(Shape(x[N,1,H]), 1), 1), Squeeze(x, [1]), Identity(x))",
    after="Squeeze(x, [1])",
)
