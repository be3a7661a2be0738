"""What graph-surgeon's import and export lose comes back, in whatever a model may hold."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY
from trtconv.core.targets import parse_target
from trtconv.rewrite.surgery.operate import changed_by
from trtconv.rewrite.surgery.script import Script

TARGET = parse_target("tensorrt==10")


def changed(model, function):
    """The model after a function of a graph-surgeon graph."""
    return changed_by(Script(Path("surgery.py"), "change", function), model, TARGET)


def with_probe(model):
    """One more node, which `touch` changes: what is not touched can be compared then."""
    model.graph.node.append(helper.make_node("Relu", ["x"], ["probe"], name="probe"))
    model.graph.output.append(helper.make_tensor_value_info("probe", 1, ["N", 4]))
    return model


def touch(graph):
    next(n for n in graph.nodes if n.name == "probe").op = "Abs"


def assert_rest_untouched(model):
    before = with_probe(model)
    after, changes = changed(before, touch)
    assert [(c.before.op_type, c.after.op_type) for c in changes.all] == [("Relu", "Abs")]
    node = next(n for n in after.graph.node if n.name == "probe")
    node.op_type = "Relu"
    del node.metadata_props[:]
    assert after == before


def parsed(body, outputs="float[N,4] y", more="", opset=17):
    head = f'<ir_version: 9, opset_import: ["" : {opset}, "local" : 1]>'
    return parser.parse_model(f"{head} g (float[N,4] x) => ({outputs}) {{ {body} }} {more}")


def branches():
    model = parsed(
        "s = ReduceSum<keepdims=0>(x) c = Cast<to=9>(s) "
        "y = If(c)<then_branch = one () => (float[N,4] a) { a = Relu(x) }, "
        "else_branch = two () => (float[N,4] a) { q = Abs(x) a = Neg(q) }>"
    )
    for node in (model.graph.node[2], *(n for a in model.graph.node[2].attribute for n in a.g.node)):
        node.metadata_props.add(key=MODULE_KEY, value=f"net.{node.op_type}")
        node.doc_string = "doc"
    return model


def function():
    model = parsed(
        "y = local.twice(x)",
        more='<domain: "local", opset_import: ["" : 17]> twice (a) => (b) { b = Add(a, a) }',
    )
    model.functions[0].doc_string = "doc"
    model.functions[0].node[0].doc_string = "doc of a node"
    model.functions[0].metadata_props.add(key="k", value="v")
    return model


def rare_attributes():
    model = parsed("o = Identity(x) y = Relu(x)")
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, ["N", 4]))
    model.graph.node[0].CopyFrom(helper.make_node("SequenceConstruct", ["x"], ["o"], name="o"))
    model.graph.node.insert(1, helper.make_node("Optional", ["o"], ["p"], name="p", type=kind))
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", 1, [1], [2.0]), helper.make_tensor("i", TensorProto.INT64, [1], [3]), [8]
    )
    model.graph.node.insert(2, helper.make_node("Constant", [], ["sp"], name="sp", sparse_value=sparse))
    info = model.graph.value_info.add(name="o")
    info.type.CopyFrom(kind)
    optional = model.graph.value_info.add(name="p", doc_string="an optional")
    optional.type.CopyFrom(helper.make_optional_type_proto(kind))
    return model


def constants():
    model = parsed("a = Add(x, f) y = Relu(a)", opset=21)
    values = {
        "f": np.ones(4, np.float32),
        "half": np.ones(3, np.float16),
        "b": np.ones(3, ml_dtypes.bfloat16),
        "e": np.ones(3, ml_dtypes.float8_e4m3fn),
        "i4": np.asarray([1, -2, 3], ml_dtypes.int4),
        "text": np.asarray(["a", "b"], object),
        "flag": np.asarray(True),
    }
    for name, array in values.items():
        tensor = numpy_helper.from_array(array, name)
        tensor.doc_string = f"doc of {name}"
        model.graph.initializer.append(tensor)
        if name != "f":
            model.graph.node.append(helper.make_node("Identity", [name], [f"{name}_out"], name=f"{name}_node"))
            model.graph.output.append(helper.make_tensor_value_info(f"{name}_out", tensor.data_type, list(array.shape)))
    return model


def listed_constants():
    model = parsed("y = Add(x, w)")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    model.graph.input.append(helper.make_tensor_value_info("w", 1, [4]))
    return model


def sparse_constant():
    model = parsed("y = Add(x, w)")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            helper.make_tensor("w", 1, [1], [2.0]), helper.make_tensor("i", TensorProto.INT64, [1], [3]), [4]
        )
    )
    return model


def annotated():
    model = parsed("y = Relu(x)")
    model.graph.metadata_props.add(key="k", value="of the graph")
    model.graph.input[0].doc_string = "doc of x"
    model.graph.input[0].type.denotation = "IMAGE"
    model.model_version, model.domain = 5, "ai.example"
    model.training_info.add().algorithm.name = "none"
    return model


@pytest.mark.parametrize(
    "make", [branches, function, rare_attributes, constants, listed_constants, sparse_constant, annotated]
)
def test_what_is_not_touched_is_the_same_message(make):
    assert_rest_untouched(make())


def test_a_node_in_a_body():
    def function(graph):
        body = next(n for n in graph.nodes if n.op == "If").attrs["else_branch"]
        body.nodes[0].op = "Relu"

    before = branches()
    after, changes = changed(before, function)
    (change,) = changes.all
    assert (change.scope, change.before.op_type, change.after.op_type) == ("y", "Abs", "Relu")
    outer = after.graph.node[2]
    inner = next(a.g for a in outer.attribute if a.name == "else_branch").node
    # Another op has another documentation; the module that it comes from is the same.
    assert [n.doc_string for n in inner] == ["", "doc"]
    assert {p.key: p.value for p in inner[0].metadata_props} == {MODULE_KEY: "net.Abs", RULE_KEY: "surgery.py:change"}
    assert next(a for a in outer.attribute if a.name == "then_branch") == next(
        a for a in before.graph.node[2].attribute if a.name == "then_branch"
    )
    assert [n.op_type for n in changes.added] == ["If"]


def test_types_behind_a_change_are_not_kept():
    model = parsed("a = Relu(x) b = Neg(a) c = Abs(x) y = Add(b, c)")
    for name in ("a", "b", "c"):
        model.graph.value_info.append(helper.make_tensor_value_info(name, 1, ["N", 4]))

    def function(graph):
        graph.nodes[1].op = "Identity"

    after, _ = changed(model, function)
    assert [v.name for v in after.graph.value_info] == ["a", "c"]


def test_what_export_recorded_of_an_input_that_was_reshaped():
    model = parsed("y = Relu(x)")
    model.metadata_props.add(key="trtconv.inputs", value="x:float32[N,4]")

    def function(graph):
        graph.inputs[0].shape = ["batch", 4]

    after, changes = changed(model, function)
    assert not changes.all
    assert [p.value for p in after.metadata_props] == [""]
    assert after.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
