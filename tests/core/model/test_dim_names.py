import numpy as np
import pytest
from onnx import helper

from tests.foreign.models import conv_net, save, value
from trtconv.core.model.dim_names import axis_name, is_placeholder, name_dims
from trtconv.core.model.file import load_model, signature
from trtconv.core.tensors import parse_tensor


def specs(path):
    return [str(s) for s in signature(load_model(path)).inputs]


def test_names_that_cannot_be_typed_are_respelt(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    assert specs(path) == ["x:float32[DynamicDimension_0,3,x_dim2,x_dim3]"]
    model = load_model(path)
    # A name that was only respelt still ties the output to the input; a placeholder ties nothing.
    dims = [d.dim_param for d in model.graph.output[0].type.tensor_type.shape.dim]
    assert dims == ["DynamicDimension_0", "", "", ""]
    assert name_dims(model) == ()


def test_minus_one_is_a_dim_without_a_name(tmp_path):
    path = conv_net(tmp_path / "m.onnx", dims=(-1, 3, -1, 8), out=(-1, 4, -1, 8))
    assert specs(path) == ["x:float32[x_dim0,3,x_dim2,8]"]


def test_names_stay_apart(tmp_path):
    inputs = [value("x", ["a.b", "a_b"]), value("y:0", ["a/b", "None"])]
    nodes = [helper.make_node("Relu", ["x"], ["z"])]
    path = save(tmp_path / "m.onnx", nodes, inputs, [value("z", ["a.b", "a_b"])])
    assert specs(path) == ["x:float32[a_b_2,a_b]", "y:0:float32[a_b_3,y_0_dim1]"]


@pytest.mark.parametrize("name", ["?", "", "-1", "None", "unk", "unknown", "0"])
def test_placeholders(name):
    assert is_placeholder(name)
    assert not is_placeholder(f"{name}_batch")


def test_a_name_with_a_colon_is_read_again():
    spec = parse_tensor("serving_default_input_2:0:float32[N,3]=0:1")
    assert (spec.name, spec.dims, spec.value_range) == ("serving_default_input_2:0", ("N", 3), (0.0, 1.0))
    assert parse_tensor(str(spec)) == spec
    assert spec.shape({"N": np.int64(2)}) == (2, 3)


def test_any_axis_has_a_name():
    assert axis_name("images", 2) == "images_dim2"
    assert axis_name("1.x:0", 0) == "input_1_x_0_dim0"
