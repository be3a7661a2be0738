"""What the faults are, each on a graph with one place for it, and in which order they are tried."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.bodies import values_read
from trtconv.proof.power.catalogue import all_faults, choose_faults
from trtconv.proof.power.downstream import downstream_of, everything, faulty_model
from trtconv.proof.power.fault import FaultGraph

from .heads import head_model

X = np.random.default_rng(0).standard_normal((2, 4, 6, 6)).astype(np.float32)


def graph_of(nodes, weights=(), inputs=("x",), rank=4):
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * rank) for n in inputs]
    last = nodes[-1].output[0]
    graph = helper.make_graph(
        nodes,
        "g",
        values,
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(weights).items()],
    )
    return FaultGraph(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def kinds_at(graph, index):
    return {f.kind for f in all_faults(graph, {}) if f.index == index}


CONV = {"w": np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32), "b": np.ones(4, np.float32)}
CASES = {
    "conv": ([helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])], CONV,
             {"scaled", "bf16", "zeroed", "doubled", "neighbour", "bias", "pad"}),
    "norm": ([helper.make_node("InstanceNormalization", ["x", "b", "b"], ["y"])], CONV, {"epsilon", "scaled", "bias"}),
    "length": ([helper.make_node("Add", ["x", "e"], ["y"])], {"e": np.float32(1e-10)}, {"epsilon"}),
    "clip": ([helper.make_node("Clip", ["x", "a", "c"], ["y"])], {"a": np.float32(0), "c": np.float32(6)},
             {"threshold"}),
    "pool": ([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])], {},
             {"mode", "pad"}),
    "resize": ([helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
               {"s": np.asarray([1, 1, 2, 2], np.float32)}, {"mode"}),
    "leaky": ([helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.2)], {}, {"mode"}),
    "perm": ([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1, 3])], {}, {"order"}),
    "mean": ([helper.make_node("ReduceMean", ["x"], ["y"], axes=[2])], {}, {"axis"}),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"], axis=1)], {}, {"axis"}),
    "sub": ([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sub", ["x", "r"], ["y"])], {},
            {"mode", "order"}),
    "size": ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Expand", ["x", "s"], ["y"])], {}, {"baked"}),
    "mask": ([helper.make_node("Greater", ["x", "t"], ["m"]), helper.make_node("Where", ["m", "x", "t"], ["y"])],
             {"t": np.float32(0.5)}, {"threshold", "order"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_place_has_its_faults_and_each_of_them_changes_the_output(name):
    nodes, weights, kinds = CASES[name]
    graph = graph_of(nodes, weights)
    assert {f.kind for f in all_faults(graph, {})} == kinds
    before = OnnxRuntimeRunner(graph.model.SerializeToString())({"x": X})["y"]
    changed = 0
    for fault in all_faults(graph, {"s": np.asarray([1, 4, 6, 6], np.int64)}):
        model = faulty_model(graph, everything(graph), fault.index, fault.edit(), {})
        after = OnnxRuntimeRunner(model.SerializeToString())({"x": X})["y"]
        changed += before.shape != after.shape or not np.array_equal(before, after)
        # Some flags matter at other sizes only.
        if fault.kind in ("scaled", "bf16", "zeroed", "doubled", "neighbour", "bias", "order", "axis"):
            assert before.shape != after.shape or not np.array_equal(before, after), fault.detail
    assert changed or kinds <= {"baked", "epsilon"}


def test_a_filter_is_doubled_and_only_for_its_own_node():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["one"], pads=[1] * 4),
        helper.make_node("Conv", ["one", "w"], ["y"], pads=[1] * 4),
    ]
    graph = graph_of(nodes, {"w": CONV["w"]})
    fault = next(f for f in all_faults(graph, {}) if f.kind == "doubled" and f.index == 0)
    edit = fault.edit()
    (changed,) = edit.constants.values()
    rows = np.flatnonzero((changed != CONV["w"]).any(axis=(1, 2, 3)))
    assert rows.size == 1
    assert np.array_equal(changed[rows[0]], 2 * CONV["w"][rows[0]])
    model = faulty_model(graph, everything(graph), 0, edit, {})
    assert model.graph.node[1].input[1] == "w"
    assert (
        numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == "w")).tobytes()
        == CONV["w"].tobytes()
    )


def test_the_first_few_are_of_all_kinds_and_the_choice_is_the_same_every_time():
    graph = FaultGraph(head_model("segmenter"))
    everywhere = all_faults(graph, {})
    kinds = {f.kind for f in everywhere}
    chosen = choose_faults(graph, {}, len(kinds))
    assert {f.kind for f in chosen} == kinds
    assert [(f.kind, f.index) for f in choose_faults(FaultGraph(head_model("segmenter")), {}, 20)] == [
        (f.kind, f.index) for f in choose_faults(graph, {}, 20)
    ]
    assert len(choose_faults(graph, {}, 10_000)) == len(everywhere)
    other = [(f.kind, f.index) for f in choose_faults(FaultGraph(head_model("segmenter"), seed=1), {}, 20)]
    assert other != [(f.kind, f.index) for f in choose_faults(graph, {}, 20)]


@pytest.mark.parametrize("kind", ["segmenter", "embedding"])
def test_the_part_behind_a_fault_gives_what_the_whole_graph_gives(kind):
    graph = FaultGraph(head_model(kind))
    x = np.random.default_rng(2).standard_normal((2, 3, 17, 19)).astype(np.float32)
    watched = onnx.ModelProto()
    watched.CopyFrom(graph.model)
    inner = [o for n in graph.nodes for o in n.output if o != "y"]
    watched.graph.output.extend(onnx.ValueInfoProto(name=n) for n in inner)
    values = {"x": x, **OnnxRuntimeRunner(watched.SerializeToString())({"x": x})}
    reads = [set(values_read(n)) for n in graph.nodes]
    for fault in (f for f in choose_faults(graph, {}, 12) if f.kind != "axis"):
        edit = fault.edit()
        part = downstream_of(graph, fault.index, reads)
        cut = OnnxRuntimeRunner(faulty_model(graph, part, fault.index, edit, values).SerializeToString())
        whole = OnnxRuntimeRunner(faulty_model(graph, everything(graph), fault.index, edit, values).SerializeToString())
        assert len(part.nodes) <= len(graph.nodes) - fault.index
        np.testing.assert_array_equal(cut({n: values[n] for n in part.reads})["y"], whole({"x": x})["y"])
