"""A node that ONNX Runtime has no kernel for is told with its type and a way out."""

import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError


@pytest.mark.parametrize(
    ("operator", "kind", "says", "hint"),
    [("Erf", "DOUBLE", "no Erf in double", "compute in float32"), ("Sin", "DOUBLE", None, None)],
)
def test_the_type_is_named(operator, kind, says, hint, tmp_path):
    number = getattr(onnx.TensorProto, kind)
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N"]) for n in "xy"]
    nodes = [
        onnx.helper.make_node("Cast", ["x"], ["narrow"], to=number),
        onnx.helper.make_node(operator, ["narrow"], ["product"], name="product"),
        onnx.helper.make_node("Cast", ["product"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    if says is None:
        OnnxRuntimeRunner(path)
        return
    for model in (path, path.read_bytes()):
        with pytest.raises(TrtconvError, match=says) as caught:
            OnnxRuntimeRunner(model)
        assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("node", "opset", "says", "hint"),
    [
        ({"op_type": "Clip", "inputs": ["x"], "min": 0.0, "max": 1.0}, 1, "no Clip of opset 1", "convert_version"),
        (
            {"op_type": "BiasSoftmax", "inputs": ["x", "x"], "domain": "com.microsoft"}
            | {"axis": 0, "is_inner_broadcast": 0},
            17,
            "no com.microsoft's BiasSoftmax on CPUs",
            "before its optimizer ran",
        ),
    ],
)
def test_an_operator_of_gpus_or_of_an_old_opset_is_no_matter_of_types(node, opset, says, hint):
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N"]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node(outputs=["y"], **node)], "g", values[:1], values[1:])
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    with pytest.raises(TrtconvError, match=says) as caught:
        OnnxRuntimeRunner(model)
    assert hint in caught.value.hint
