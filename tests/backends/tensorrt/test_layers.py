import json

from trtconv.backends.tensorrt.layers import layers_of_type, parse_layers, with_times

# The two forms of the inspector's JSON: 8.6 to 10, and 11 with format and datatype apart.
OLD = {
    "Layers": [
        {
            "Name": "conv0 + relu0",
            "LayerType": "CaskConvolution",
            "ParameterType": "Convolution",
            "Inputs": [{"Name": "x", "Dimensions": [2, 3, 8, 8], "Format/Datatype": "Row major linear FP32"}],
            "Outputs": [{"Name": "y", "Dimensions": [2, 8, 8, 8], "Format/Datatype": "Channel major FP16 format"}],
            "TacticName": "sm80_xmma",
            "TacticValue": "0x1",
            "Metadata": "[ONNX Layer: conv0]\x1e[ONNX Layer: relu0]",
        }
    ],
    "Bindings": ["x", "y"],
}
NEW = {
    "Layers": [
        {
            "Name": "conv0",
            "LayerType": "gemm",
            "Outputs": [{"Name": "y", "Dimensions": [2, 8], "Format": "Linear", "Datatype": "BFloat16"}],
        }
    ],
    "I/O Tensors": [{"Name": "x"}],
}


def test_the_form_of_8_6():
    (layer,) = parse_layers(json.dumps(OLD))
    assert (layer.name, layer.kind, layer.tactic) == ("conv0 + relu0", "Convolution", "sm80_xmma")
    assert layer.onnx_nodes == ("conv0", "relu0")
    assert [t.dtype for t in (*layer.inputs, *layer.outputs)] == ["float32", "float16"]
    assert layers_of_type((layer,), "float16") == 1
    assert layers_of_type((layer,), "bfloat16") == 0
    assert "2x8x8x8 float16" in str(layer)


def test_the_form_of_11():
    (layer,) = parse_layers(json.dumps(NEW))
    assert layer.outputs[0].dtype == "bfloat16"
    assert layer.outputs[0].dims == (2, 8)


def test_names_only():
    assert [x.name for x in parse_layers(json.dumps({"Layers": ["a", "b"]}))] == ["a", "b"]


def test_times_are_found_by_name():
    (layer,) = with_times(parse_layers(json.dumps(NEW)), {"conv0": 12e-6})
    assert "12.0 us" in str(layer)


def test_types_by_the_names_of_tactics():
    name = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize32x32x64"
    layers = parse_layers(json.dumps({"Layers": [{"Name": "a", "LayerType": "Conv", "TacticName": name}]}))
    assert layers_of_type(layers, "float16") == 1
    assert layers_of_type(layers, "float32") == 0
    assert layers_of_type(layers, "bfloat16") == 0
