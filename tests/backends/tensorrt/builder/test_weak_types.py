"""Pinning types for TensorRT 8.6: every tensor of its network says FLOAT, whatever the graph says (as on a GPU)."""

from enum import Enum
from types import SimpleNamespace

import onnx
import pytest
from onnx import TensorProto, helper

from trtconv.backends.tensorrt.builder.weak_types import allow_tf32, build_pinned, pin_types, write_plugin_types
from trtconv.backends.tensorrt.messages import Messages

Flags = Enum("Flags", "OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS")
TRT = SimpleNamespace(float32="float32", float16="float16", int32="int32", BuilderFlag=Flags)


class Tensor:
    def __init__(self, name, dtype="float32", shape=False):
        self.name, self.dtype, self.is_shape_tensor = name, dtype, shape


class Layer:
    def __init__(self, kind, inputs, outputs):
        self.type, self.ins, self.outs = SimpleNamespace(name=kind), inputs, outputs
        self.num_inputs, self.num_outputs = len(inputs), len(outputs)
        self.precision, self.types = None, {}

    def get_input(self, index):
        return self.ins[index]

    def get_output(self, index):
        return self.outs[index]

    def output_type_is_set(self, index):
        return False

    def set_output_type(self, index, dtype):
        self.types[index] = dtype

    def reset_precision(self):
        self.precision = None

    def reset_output_type(self, index):
        self.types.pop(index, None)


class Network:
    def __init__(self, *layers):
        self.layers, self.num_layers = layers, len(layers)

    def get_layer(self, index):
        return self.layers[index]


@pytest.fixture
def typed():
    """Half x -> FP32 island (square, sum, compare) -> half y, and the network that 8.6 makes of it."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Cast", ["r"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "wide"], ["square"]),
        helper.make_node("Greater", ["square", "wide"], ["above"]),
        helper.make_node("Where", ["above", "square", "wide"], ["w"]),
        helper.make_node("Cast", ["w"], ["narrow"], to=TensorProto.FLOAT16),
        helper.make_node("Relu", ["narrow"], ["y"]),
    ]
    half = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, ["N", 4]) for n in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "g", half[:1], half[1:]), ir_version=8)
    model.opset_import[0].version = 17
    t = {n: Tensor(n) for n in ("x", "r", "wide", "square", "w", "narrow", "y", "inner")}
    t["above"], t["size"] = Tensor("above", "bool"), Tensor("size", "int32", shape=True)
    layers = {
        "r": Layer("ACTIVATION", [t["x"]], [t["r"]]),
        "wide": Layer("CAST", [t["r"]], [t["wide"]]),
        "inner": Layer("SHUFFLE", [t["wide"]], [t["inner"]]),
        "square": Layer("ELEMENTWISE", [t["wide"], t["inner"]], [t["square"]]),
        "above": Layer("ELEMENTWISE", [t["square"], t["wide"]], [t["above"]]),
        "w": Layer("SELECT", [t["above"], t["square"], t["wide"]], [t["w"]]),
        "size": Layer("ELEMENTWISE", [t["size"], t["size"]], [t["size"]]),
        "narrow": Layer("CAST", [t["w"]], [t["narrow"]]),
        "y": Layer("ACTIVATION", [t["narrow"]], [t["y"]]),
    }
    return model, layers, Network(*layers.values())


def test_each_layer_gets_the_type_of_the_graph(typed):
    model, layers, network = typed
    narrow = pin_types(TRT, network, model)
    assert set(narrow) == {layers["r"], layers["y"]}
    precisions = {name: layer.precision for name, layer in layers.items()}
    # 'inner' is the parser's own: it takes the type of what it reads. Casts and sizes say their types themselves.
    assert precisions == {
        "r": "float16", "wide": None, "inner": "float32", "square": "float32", "above": "float32", "w": "float32",
        "size": None, "narrow": None, "y": "float16",
    }  # fmt: skip
    assert layers["w"].types == {0: "float32"}
    assert layers["above"].types == {}


class Config:
    def __init__(self):
        self.flags = set()

    def set_flag(self, flag):
        self.flags.add(flag)

    def clear_flag(self, flag):
        self.flags.discard(flag)


class Builder:
    """Builds at the given attempt; remembers what it was asked each time."""

    def __init__(self, messages, succeeds):
        self.messages, self.succeeds, self.asked = messages, succeeds, []

    def build_serialized_network(self, network, config):
        halves = sum(layer.precision == "float16" for layer in network.layers)
        self.asked.append((halves, {f.name.split("_")[0] for f in config.flags}))
        if len(self.asked) == self.succeeds:
            return b"plan"
        self.messages.add("error", f"attempt {len(self.asked)} has no kernel")
        return None


@pytest.mark.parametrize("succeeds", [1, 2, 3, 4])
def test_pins_are_given_up_from_half_to_fp32_and_never_in_silence(typed, succeeds):
    model, _, network = typed
    messages = Messages()
    builder = Builder(messages, succeeds)
    narrow = pin_types(TRT, network, model)
    plan = build_pinned(TRT, builder, network, Config(), narrow, messages)
    assert builder.asked == [(2, {"OBEY"}), (0, {"OBEY"}), (0, {"PREFER"})][: min(succeeds, 3)]
    if succeeds == 4:
        assert plan is None
        assert len(messages.errors) == 3
        return
    assert plan == b"plan"
    assert len(messages.warnings) == (succeeds > 1)


@pytest.mark.parametrize("succeeds", [2, 3])
def test_the_errors_of_an_attempt_that_was_given_up_are_not_the_engines(typed, succeeds):
    model, _, network = typed
    messages = Messages()
    messages.add("warning", "from the parser")
    build_pinned(TRT, Builder(messages, succeeds), network, Config(), pin_types(TRT, network, model), messages)
    assert not messages.errors
    assert "from the parser" in messages.warnings


def test_types_come_from_shape_inference_when_the_file_has_none(typed):
    model, layers, network = typed
    assert not model.graph.value_info
    onnx.checker.check_model(model)
    pin_types(TRT, network, model)
    assert layers["square"].precision == "float32"


def test_plugins_are_told_the_types_of_their_tensors():
    nodes = [
        helper.make_node("Scale", ["x", "w"], ["y"], domain="trtconv"),
        helper.make_node("Cast", ["y"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Scale", ["wide", "w"], ["z"], domain="trtconv"),
        helper.make_node("Scale", ["unknown", "n"], ["u"], domain="trtconv"),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])],
        [helper.make_tensor(n, t, [1], [1]) for n, t in (("w", TensorProto.FLOAT16), ("n", TensorProto.INT64))],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    write_plugin_types(model)
    types = [[list(a.ints) for a in n.attribute if a.name == "element_types"] for n in model.graph.node]
    assert types == [[[1, 1, -1]], [], [[0, 1, 0]], []]


def test_products_of_plugins_may_be_tf32_where_the_build_says_so():
    nodes = [
        helper.make_node("TrtconvLinear", ["x"], ["y"], domain="trtconv", tf32=0),
        helper.make_node("TrtconvAttention", ["y"], ["z"], domain="trtconv"),
        helper.make_node("TrtconvLayerNorm", ["z"], ["n"], domain="trtconv"),
        helper.make_node("TrtconvLinear", ["n"], ["u"], domain="other"),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], []))
    allow_tf32(model)
    assert [[a.i for a in n.attribute if a.name == "tf32"] for n in model.graph.node] == [[1], [1], [], []]
