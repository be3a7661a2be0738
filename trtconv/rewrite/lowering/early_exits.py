"""What a Loop collects until its condition ends it: TensorRT gives as many rows as the trip count, zeros at the end."""

from __future__ import annotations

from collections.abc import Container, Iterator

import onnx
from onnx import TensorProto, helper, numpy_helper

from trtconv.core.errors import UnsupportedError
from trtconv.core.ledger.records import LedgerEntry, Proof
from trtconv.core.model.bodies import graphs_of, replace_nodes, walk_nodes
from trtconv.core.model.names import free_name, names_in
from trtconv.core.model.provenance import Origin
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, node_text
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS, constant_of

NAME = "early-exit"
WHY = "TensorRT collects as many rows as a Loop may take rounds, with zeros behind those of its last round."


def cut_early_exits(model: onnx.ModelProto, setting: RewriteSetting, record: RewriteRecord) -> None:
    """Count the rounds of each Loop that may end early, and cut what it collects to that many rows, in place.

    The length of what a loop collects is known before it begins (ILoopOutputLayer: "a 0D shape tensor, defined before
    the loop commences"). Raises UnsupportedError for TensorRT-RTX, which cannot cut by a computed number.
    """
    if not any(n.op_type == "Loop" for n in walk_nodes(model.graph.node)):
        return
    names = names_in(model.graph)
    true = {"", *_true_constants(model.graph)}
    for graph in graphs_of(model.graph):
        loops = [n for n in graph.node if _ends_early(n, true)]
        if not loops:
            continue
        if setting.target.is_rtx:
            raise UnsupportedError(
                f"{setting.target} gives '{_collected(loops[0])[0]}' as many rows as its Loop may take rounds, with "
                "zeros behind the last one, silently",
                hint="write the rows into a state of full length in the loop, or choose tensorrt==10",
            )
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            if not any(node is loop for loop in loops):
                nodes.append(node)
                continue
            before = node_text(node)
            changed = _counted(node, names)
            nodes += changed
            proof = Proof(None, note="compared with the whole graph")
            after = tuple(map(node_text, changed))
            record.entries.append(LedgerEntry(NAME, WHY, node.name, Origin(), "", (before,), after, proof))
        replace_nodes(graph, nodes)


def _collected(loop: onnx.NodeProto) -> list[str]:
    """The outputs that have a row for each round."""
    return [o for o in loop.output[len(loop.input) - 2 :] if o]


def _true_constants(graph: onnx.GraphProto) -> Iterator[str]:
    """The constants of a graph and its bodies that are True."""
    for scope in graphs_of(graph):
        constants = [(t.name, t) for t in scope.initializer]
        constants += [(n.output[0], t) for n in scope.node if (t := constant_of(n)) is not None]
        yield from (name for name, t in constants if t.data_type == TensorProto.BOOL and numpy_helper.to_array(t).all())


def _ends_early(node: onnx.NodeProto, true: Container[str]) -> bool:
    """True of a Loop with a trip count that collects and whose condition is computed, in its body or before it."""
    if node.op_type != "Loop" or node.domain not in DEFAULT_DOMAINS or not node.input[0] or not _collected(node):
        return False
    body = next(a.g for a in node.attribute if a.name == "body")
    makers = {o: n for n in body.node for o in n.output}
    condition = body.output[0].name
    while condition in makers and makers[condition].op_type == "Identity":
        condition = makers[condition].input[0]
    if node.input[1] not in true:
        return True
    if condition == body.input[1].name or condition in {t.name for t in body.initializer}:
        return False
    return condition in makers and constant_of(makers[condition]) is None


def _counted(loop: onnx.NodeProto, names: set[str]) -> list[onnx.NodeProto]:
    """The loop with one more state, the number of its rounds, and the nodes that cut by it."""

    def name(stem: str) -> str:
        return free_name(f"{next(o for o in loop.output if o)}/{NAME}/{stem}", names)

    def constant(value: int, shape: tuple[int, ...] = ()) -> onnx.NodeProto:
        tensor = helper.make_tensor("", TensorProto.INT64, shape, [value])
        return helper.make_node("Constant", [], [name("constant")], value=tensor)

    changed = onnx.NodeProto()
    changed.CopyFrom(loop)
    body = next(a.g for a in changed.attribute if a.name == "body")
    states = len(loop.input) - 2
    zero, one, axes = constant(0), constant(1), constant(0, (1,))
    first, rounds = zero.output[0], name("rounds")
    count, counted = name("count"), name("count_of_next")
    step = constant(1)
    body.node.extend([step, helper.make_node("Add", [count, step.output[0]], [counted])])
    body.input.append(helper.make_tensor_value_info(count, TensorProto.INT64, ()))
    body.output.insert(1 + states, helper.make_tensor_value_info(counted, TensorProto.INT64, ()))
    changed.input.append(first)
    outputs = list(loop.output)
    full = {o: name("all_rows") for o in outputs[states:] if o}
    changed.output[:] = [*outputs[:states], rounds, *(full.get(o, "") for o in outputs[states:])]
    nodes = [zero, one, axes, changed]
    for collected, rows in full.items():
        shape, length, places, ran, chosen, flat = (name(s) for s in ("shape", "length", "places", "ran", "at", "rows"))
        nodes += [
            helper.make_node("Shape", [rows], [shape]),
            helper.make_node("Gather", [shape, first], [length], axis=0),
            helper.make_node("Range", [first, length, one.output[0]], [places]),
            helper.make_node("Less", [places, rounds], [ran]),
            helper.make_node("NonZero", [ran], [chosen]),
            helper.make_node("Squeeze", [chosen, axes.output[0]], [flat]),
            helper.make_node("Gather", [rows, flat], [collected], axis=0),
        ]
    return nodes
