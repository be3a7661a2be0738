"""The rest of a quantised network on TensorRT 8.6: which flags are set, which layers are pinned, what is tried next."""

from enum import Enum
from types import SimpleNamespace

import pytest
from onnx import TensorProto, helper

from tests.backends.tensorrt.builder.test_weak_types import Layer, Network, Tensor
from trtconv.backends.tensorrt.builder.weak_rest import build_quantised
from trtconv.backends.tensorrt.messages import Messages
from trtconv.core.model.provenance import REST_FP32_KEY, REST_KEY

Flags = Enum("Flags", "FP16 OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS")
TRT = SimpleNamespace(float32="float32", float16="float16", BuilderFlag=Flags)


class Config(set):
    set_flag, clear_flag = set.add, set.discard


class Builder:
    """Builds nothing with the flags in `refuses`."""

    def __init__(self, *refuses):
        self.refuses, self.tried = set(refuses), []

    def build_serialized_network(self, network, config):
        self.tried.append({f.name for f in config})
        return None if self.refuses & config else b"plan"


@pytest.fixture
def network():
    """exp -> conv (quantised) -> a norm that became two layers."""
    tensors = {n: Tensor(n) for n in ("x", "e", "c", "inner", "n")}
    layers = [
        Layer("UNARY", [tensors["x"]], [tensors["e"]]),
        Layer("CONVOLUTION", [tensors["e"]], [tensors["c"]]),
        Layer("REDUCE", [tensors["c"]], [tensors["inner"]]),
        Layer("ELEMENTWISE", [tensors["inner"]], [tensors["n"]]),
        Layer("DEQUANTIZE", [tensors["x"]], [tensors["e"]]),
    ]
    layers[2].metadata = "[ONNX Layer: norm]"
    return Network(*layers)


def model(rest="", fp32=()):
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], "exp"),
        helper.make_node("Conv", ["e", "w"], ["c"], "conv"),
        helper.make_node("LayerNormalization", ["c", "s"], ["n"], "norm"),
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_model(helper.make_graph(nodes, "g", [value], [value]))
    if rest:
        result.metadata_props.add(key=REST_KEY, value=rest)
        result.metadata_props.add(key=REST_FP32_KEY, value="\n".join(fp32))
    return result


def build(network, proto, *refuses):
    builder, messages = Builder(*refuses), Messages()
    plan = build_quantised(TRT, builder, network, Config(), proto, messages)
    return plan, builder.tried, messages


def test_a_graph_that_says_nothing_of_its_rest_is_built_in_fp32(network):
    assert build(network, model()) == (b"plan", [set()], Messages())


def test_the_rest_is_a_flag(network):
    plan, tried, _ = build(network, model("fp16"))
    assert (plan, tried) == (b"plan", [{"FP16"}])
    assert not any(layer.precision for layer in network.layers)


def test_layers_of_a_node_that_stays_fp32_are_pinned(network):
    _, tried, _ = build(network, model("fp16", ("exp", "norm")))
    assert tried == [{"FP16", "OBEY_PRECISION_CONSTRAINTS"}]
    assert [layer.precision for layer in network.layers] == ["float32", None, "float32", "float32", None]
    assert network.layers[0].types == {0: "float32"}


def test_pins_without_a_kernel_become_a_wish_and_a_warning(network):
    _, tried, messages = build(network, model("fp16", ("exp",)), Flags.OBEY_PRECISION_CONSTRAINTS)
    assert tried[1] == {"FP16", "PREFER_PRECISION_CONSTRAINTS"}
    assert "no fp32 kernel" in messages.warnings[0]
    plan, tried, messages = build(network, model("fp16", ("exp",)), Flags.FP16)
    assert (plan, len(tried), messages.warnings) == (None, 2, ())
