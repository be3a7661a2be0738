"""The proof of a suppression by itself, at boxes that overlap by more and by less than its threshold.

Random values of a network's inputs hardly ever give boxes whose overlap is near a threshold, so that the comparison of
whole graphs says little of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.rewrite.graph.index import Array, Dims, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, INT64

BOXES, GROUPS, SEEDS = 40, 5, 4
SOME = 2


@dataclass(frozen=True)
class Suppression:
    """A suppression of the graph before and its fixed form.

    `indices` and `count` are values of the graph after; `valid` is its count of the boxes, empty where all count.
    """

    node: Node
    indices: str
    count: str
    valid: str


def prove_suppressions(before: Graph, after: onnx.ModelProto, suppressions: Sequence[Suppression]) -> int:
    """Compare each suppression with its fixed form; how many cases were tried.

    Raises AccuracyError where the fixed form chooses others.
    """
    cases = 0
    for item in suppressions:
        names = item.node.inputs[:2]
        rest = [n for n in item.node.inputs[2:] if n and before.constant(n) is None]
        if rest or any(not n for n in names):
            continue
        opset = after.opset_import
        own = OnnxRuntimeRunner(_part(before.proto, opset, names, [item.node.output]).SerializeToString(), threads=1)
        valid = [item.valid] if item.valid else []
        part = _part(after.graph, opset, [*names, *valid], [item.indices, item.count])
        fixed = OnnxRuntimeRunner(part.SerializeToString(), threads=1)
        for boxes, scores in _clusters(before, item.node):
            number = boxes.shape[1] - (7 if valid else 0)
            expected = own({names[0]: boxes[:, :number], names[1]: scores[:, :, :number]})[item.node.output]
            feed = {names[0]: boxes, names[1]: scores, **{n: np.asarray([number]) for n in valid}}
            actual = fixed(feed)
            _compare(item, expected, actual[item.indices], int(actual[item.count][0]))
            cases += 1
    return cases


def _compare(item: Suppression, expected: Array, actual: Array, count: int) -> None:
    """Raise AccuracyError where rows or their number differ; a limit may cut both."""
    rows = min(len(expected), count, len(actual))
    if count > len(expected) or (count < len(expected) and count < len(actual)):
        problem = f"{count} boxes of {len(expected)}"
    elif not np.array_equal(expected[:rows], actual[:rows]):
        problem = "other boxes"
    else:
        return
    raise AccuracyError(
        f"at a fixed size '{item.node.name}' chooses {problem}",
        hint="this is a bug of trtconv; keep the sizes as they are with --nms native",
        where=item.node.origin.source or None,
    )


def _clusters(graph: Graph, node: Node) -> Iterator[tuple[Array, Array]]:
    """Boxes in groups and scores: apart, in ties, all at one place, and around both thresholds."""
    images, classes = _sizes(graph.dims(node.inputs[0]), graph.dims(node.inputs[1]))
    overlap = graph.scalar(node.input(3)) if node.input(3) else 0.0
    least = graph.scalar(node.input(4)) if node.input(4) else None
    centred = bool(node.attr("center_point_box", 0))
    for seed in range(SEEDS):
        chance = np.random.default_rng(seed)
        centres = chance.uniform(0, 4 if seed else 0, (images, GROUPS, 2))[:, chance.integers(0, GROUPS, BOXES)]
        centres = centres + chance.normal(0, 0.3, centres.shape)
        sizes = chance.uniform(0.8, 1.6, centres.shape)
        boxes = np.concatenate([centres, sizes] if centred else [centres - sizes / 2, centres + sizes / 2], 2)
        boxes[:, :2] = _at_threshold(overlap or 0.0, centred)
        scores = chance.uniform(0, 1, (images, classes, BOXES)) + (least or 0.0) - 0.3
        scores = np.round(scores * 8) / 8 if seed % 2 else scores
        if least is not None:
            scores[:, :, 3] = least
        yield boxes.astype(np.float32), scores.astype(np.float32)


def _at_threshold(overlap: float, centred: bool) -> Array:
    """Two boxes that share just as much of their union as the threshold says."""
    corners = np.array([[50, 50, 51, 51], [50, 50, 50 + overlap, 51]])
    low, high = corners[:, :2], corners[:, 2:]
    return np.concatenate([(low + high) / 2, high - low], 1) if centred else corners


def _sizes(boxes: Dims | None, scores: Dims | None) -> tuple[int, int]:
    """Images and classes: as the graph has them, some where it does not say."""
    dims = scores or (None, None, None)
    images = dims[0] if isinstance(dims[0], int) else (boxes or (None,))[0]
    return (images if isinstance(images, int) else SOME), (dims[1] if isinstance(dims[1], int) else SOME)


def _part(
    graph: onnx.GraphProto, opset: Sequence[onnx.OperatorSetIdProto], inputs: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    """The nodes between values, as a model; boxes and scores are of rank 3, a count is int64[1]."""
    makers = {o: n for n in graph.node for o in n.output if o}
    used: dict[int, onnx.NodeProto] = {}
    waiting, names = list(outputs), set()
    while waiting:
        name = waiting.pop()
        names.add(name)
        node = None if name in inputs else makers.get(name)
        if node is not None and id(node) not in used:
            used[id(node)] = node
            waiting += [*node.input, *(i for a in node.attribute for n in a.g.node for i in n.input)]
    entering = [
        helper.make_tensor_value_info(n, FLOAT, [None] * 3)
        if i < SOME
        else helper.make_tensor_value_info(n, INT64, [1])
        for i, n in enumerate(inputs)
    ]
    leaving = [onnx.ValueInfoProto(name=n) for n in outputs]
    constants = [t for t in graph.initializer if t.name in names and t.name not in inputs]
    nodes = [n for n in graph.node if id(n) in used]
    body = helper.make_graph(nodes, "suppression", entering, leaving, initializer=constants)
    return helper.make_model(body, opset_imports=list(opset), ir_version=10)
