"""What computes in which type, by the words of the engine inspector of TensorRT 8.6."""

import json

from trtconv.backends.tensorrt.layers import parse_layers, with_times
from trtconv.tune.engine_layers import read_engine_layers


def layer(name, kind, tactic="", read="", gives="", nodes=()):
    tensors = {"Inputs": [{"Name": "i", "Format/Datatype": read}], "Outputs": [{"Name": "o", "Format/Datatype": gives}]}
    metadata = "\x1e".join(f"[ONNX Layer: {n}]" for n in nodes)
    return {"Name": name, "ParameterType": kind, "TacticName": tactic, "Metadata": metadata, **tensors}


INT8 = "Thirty-two wide channel vectorized row major Int8 format"
LAYERS = with_times(
    parse_layers(json.dumps({"Layers": [
        layer("q", "Reformat", read="Row major linear FP32", gives=INT8, nodes=["q", "conv1"]),
        layer("c1", "Convolution", "sm80_xmma_fprop_interleaved_i8i8_i8i32_f32", INT8, INT8, ["conv1", "relu"]),
        layer("c2", "Convolution", read=INT8, gives="Row major linear FP32", nodes=["conv2"]),
        layer("c3", "Convolution", "sm80_xmma_fprop_f16f16_f16f16_f16_nhwckrsc", nodes=["conv3"]),
        layer("{ForeignNode[a...b]}", "Myelin", nodes=["matmul"]),
    ]})),
    {"c1": 6e-6, "c2": 2e-6, "c3": 2e-6},
)  # fmt: skip


def test_products_are_counted_by_what_they_multiply():
    engine = read_engine_layers(LAYERS)
    assert engine.as_dict() == {
        "layers": {"int8": 3, "fp16": 1, "not told": 1},
        "time": {"int8": 0.8, "fp16": 0.2, "not told": 0.0},
    }


def test_chosen_nodes_are_looked_up_in_the_engine():
    engine = read_engine_layers(LAYERS)
    chosen = ("conv1", "conv2", "conv3", "matmul")
    assert engine.elsewhere(chosen, "int8") == ("conv3",)
    assert engine.share(chosen, "int8") == 0.5
    assert engine.share(("matmul",), "int8") is None, "a region of which nothing is told says nothing"
