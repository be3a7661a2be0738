"""A foreign file under the user's names of inputs and outputs, in all files of a conversion."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from tests.foreign.models import conv_net, recurrent_net, save, value
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.foreign import adopt_model
from trtconv.foreign.request import ForeignRequest
from trtconv.proof.reference import read_reference_info, read_samples

RANGES = parse_space(["N=1:1:3", "H=5:6:9", "W=5:7:9"])


def adopt(path, *inputs, space=RANGES, outputs=()):
    named = tuple(parse_tensor(text) for text in inputs)
    request = ForeignRequest(path, path.parent / "out" / "model.onnx", named, space, output_names=tuple(outputs))
    return adopt_model(request, SilentProgress())


def test_model_and_reference_have_the_users_names(tmp_path):
    path = conv_net(tmp_path / "third.onnx")
    result = adopt(path, "x=images:float32[N,3,H,W]", outputs=("scores",))
    run = OnnxRuntimeRunner(result.model)
    image = np.random.default_rng(0).standard_normal((2, 3, 6, 7)).astype(np.float32)
    (expected,) = OnnxRuntimeRunner(path)({"x": image}).values()
    assert run({"images": image})["scores"] == pytest.approx(expected)
    assert [str(s) for s in read_reference_info(result.reference).inputs] == ["images:float32[N,3,H,W]"]
    for sample in read_samples(result.reference):
        assert set(sample.inputs) == {"images"}
        assert set(sample.outputs) == {"scores"}
        assert set(sample.floors) <= {"scores"}


def test_the_body_of_an_if_reads_the_new_name(tmp_path):
    def body(operator, name):
        return h.make_graph([h.make_node(operator, ["x"], [name])], operator, [], [value(name, ["N", 4])])

    nodes = [
        h.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        h.make_node("Greater", ["most", "zero"], ["positive"]),
        h.make_node("If", ["positive"], ["y"], then_branch=body("Relu", "a"), else_branch=body("Neg", "b")),
    ]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["N", 4])], [value("y", ["N", 4])], [("zero", np.float32(0))])
    result = adopt(path, "x=rows:float32[N,4]", space=parse_space(["N=1:1:2"]), outputs=("kept",))
    rows = np.float32([[1, -2, 3, -4]])
    run = OnnxRuntimeRunner(result.model)
    assert run({"rows": rows})["kept"].tolist() == [[1, 0, 3, 0]]
    assert run({"rows": -abs(rows)})["kept"].tolist() == [[1, 2, 3, 4]]


def test_an_output_that_is_an_input_needs_a_name_of_its_own(tmp_path):
    nodes = [h.make_node("Relu", ["x"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["N"])], [value("y", ["N"]), value("x", ["N"])])
    with pytest.raises(InvalidRequestError, match="one tensor of a name") as caught:
        adopt(path, space=parse_space(["N=1:1:2"]))
    assert caught.value.hint.endswith("--output-names y,x_out")
    with pytest.raises(InvalidRequestError, match="one tensor of a name") as caught:
        adopt(path, "x=z:float32[N]", space=parse_space(["N=1:1:2"]), outputs=("y", "z"))
    assert caught.value.hint.endswith("--output-names y,z_out")
    with pytest.raises(InvalidRequestError, match="another value is called so"):
        adopt(path, "x=z:float32[N]", space=parse_space(["N=1:1:2"]), outputs=("z", "w"))
    assert not (tmp_path / "out" / "model.onnx").exists()


@pytest.mark.parametrize("own", ["x", "images"])
@pytest.mark.parametrize(("relu", "copy"), [("y", "x_out"), ("z", "y")])
def test_an_output_that_is_an_input_gets_a_copy(tmp_path, own, relu, copy):
    nodes = [h.make_node("Relu", ["x"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", ["N"])], [value("y", ["N"]), value("x", ["N"])])
    result = adopt(path, f"x={own}:float32[N]", space=parse_space(["N=1:1:2"]), outputs=(relu, copy))
    written = onnx.load(result.model)
    onnx.checker.check_model(written)
    assert [v.name for v in written.graph.output] == [relu, copy]
    outputs = OnnxRuntimeRunner(result.model)({own: np.float32([-1, 2])})
    assert outputs[copy].tolist() == [-1, 2]
    assert outputs[relu].tolist() == [0, 2]
    for sample in read_samples(result.reference):
        assert set(sample.inputs) == {own}
        assert set(sample.outputs) == {relu, copy}


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (("x=w:float32[N,3,H,W]",), (), "cannot be called 'w'"),
        (("x=c:float32[N,3,H,W]",), (), "cannot be called 'c'"),
        (("x=y:float32[N,3,H,W]",), (), "cannot be called 'y'"),
        (("x=a:float32[N,3,H,W]",), ("a",), "cannot be called 'a'"),
        (("images=x:float32[N,3,H,W]",), (), "has no input 'images'"),
        (("x:float32[N,3,H,W]",), ("a", "b"), "has 1 output(s), --output-names gives 2"),
    ],
)
def test_names_that_do_not_fit_leave_no_file(tmp_path, inputs, outputs, message):
    path = conv_net(tmp_path / "third.onnx")
    with pytest.raises(InvalidRequestError) as caught:
        adopt(path, *inputs, outputs=outputs)
    assert message in caught.value.message
    assert caught.value.hint
    assert not list((tmp_path / "out").glob("*.onnx"))


def test_names_may_be_exchanged(tmp_path):
    path = recurrent_net(tmp_path / "m.onnx")
    inputs = ("x=state:float32[N,6]", "state=x:float32[N,6]")
    result = adopt(path, *inputs, space=parse_space(["N=1:1:2"]))
    assert [v.name for v in onnx.load(result.model).graph.input] == ["state", "x"]
    assert onnx.load(result.model).graph.input[0].type.tensor_type.elem_type == T.FLOAT
