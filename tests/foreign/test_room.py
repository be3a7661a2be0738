"""Taking a file over: what is written, and what is refused."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper

from tests.foreign.models import conv_net, rate_net, save, value
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.model.file import load_model, signature
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.foreign import ForeignRequest, adopt_model, points_for
from trtconv.proof.reference import read_reference_info, read_samples

RANGES = parse_space(["DynamicDimension_0=1:1:2", "x_dim2=5:6:9", "x_dim3=5:7:9"])


@pytest.fixture(scope="module")
def adopted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adopted")
    path = conv_net(folder / "third.onnx")
    return adopt_model(ForeignRequest(path, folder / "out" / "model.onnx", (), RANGES), SilentProgress())


def test_the_reference_holds_what_the_file_computes(adopted):
    info = read_reference_info(adopted.reference)
    assert info.space == RANGES
    kinds = {p.values for p in info.points}
    assert kinds >= {"random", "zeros", "large", "ties"}
    run = OnnxRuntimeRunner(adopted.original)
    samples = list(read_samples(adopted.reference))
    assert all(np.array_equal(run(s.inputs)["y"], s.outputs["y"], equal_nan=True) for s in samples)
    usual = [s for s in samples if s.point.values == "random"]
    # The rounding of a convolution of 27 products: some units in the last place of the largest elements.
    assert all(0 < s.floors["y"].largest < 2e-6 * np.abs(s.outputs["y"]).max() for s in usual)


def test_the_model_records_inputs_and_ranges(adopted):
    interface = signature(load_model(adopted.model))
    assert [str(s) for s in interface.inputs] == ["x:float32[DynamicDimension_0,3,x_dim2,x_dim3]"]
    assert interface.space == RANGES
    manifest = json.loads(adopted.manifest.read_text())
    assert manifest["source"]["foreign"] is True
    assert list(manifest["sources"]["files"]) == ["../third.onnx"]
    assert adopted.comparisons
    assert all(c.passed for c in adopted.comparisons)


def test_sizes_that_are_not_so_are_dropped_and_told(tmp_path):
    path = conv_net(tmp_path / "third.onnx", dims=("N", 3, "H", "W"), out=("N", 4, "N", "W"))
    request = ForeignRequest(path, tmp_path / "m.onnx", (), parse_space(["N=1:1:2", "H=5:6:9", "W=5:7:9"]))
    result = adopt_model(request, SilentProgress())
    assert any("axis 2 of 'y' (N)" in note for note in result.notes)
    dims = load_model(result.model).graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["N", 4, 0, "W"]


def test_an_input_of_one_value_is_fixed(tmp_path):
    path = rate_net(tmp_path / "third.onnx")
    rate = parse_tensor("sr:int64[]=16000:16000")
    request = ForeignRequest(path, tmp_path / "m.onnx", (rate,), parse_space(["N=1:1:2"]))
    result = adopt_model(request, SilentProgress())
    assert [s.name for s in signature(load_model(result.model)).inputs] == ["x"]
    assert any("no input of the engine: sr" in n for n in result.notes)
    sample = next(iter(read_samples(result.reference)))
    assert np.allclose(sample.outputs["y"], 3 * sample.inputs["x"])


def test_points_lie_where_the_graph_decides(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "ten"], ["m"]), helper.make_node("Floor", ["m"], ["y"])]
    inputs, outputs = [value("x", ["N", 16])], [value("y", ["N", 16])]
    path = save(tmp_path / "m.onnx", nodes, inputs, outputs, [("ten", np.array(10, np.float32))])
    samples = points_for(path, (), parse_space(["N=1:1:2"])).samples()
    boundary = [s for s in samples.items if s.point.values == "boundary"]
    assert any(np.any(np.abs(s.inputs["x"] * 10 - np.round(s.inputs["x"] * 10)) < 1e-5) for s in boundary)


def refused(path, tmp_path, *inputs):
    named = tuple(map(parse_tensor, inputs))
    request = ForeignRequest(path, tmp_path / "out.onnx", named, parse_space(["N=1:1:2"]))
    with pytest.raises(TrtconvError) as caught:
        adopt_model(request, SilentProgress())
    assert not (tmp_path / "out.onnx").exists()
    return caught.value


def test_operators_of_trees_are_refused(tmp_path):
    node = helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml")
    path = save(tmp_path / "m.onnx", [node], [value("x", ["N", 4])], [value("y", ["N", 4])])
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    onnx.save(model, path)
    error = refused(path, tmp_path)
    assert isinstance(error, UnsupportedError)
    assert "ai.onnx.ml::Normalizer" in error.message


def test_inputs_that_no_engine_has(tmp_path):
    node = helper.make_node("Shape", ["x"], ["y"])
    texts = save(tmp_path / "m.onnx", [node], [value("x", ["N"], T.STRING)], [value("y", [1], T.INT64)])
    assert "holds strings" in refused(texts, tmp_path).message
    shapeless = save(tmp_path / "n.onnx", [node], [value("x", None)], [value("y", None, T.INT64)])
    error = refused(shapeless, tmp_path)
    assert "how many dims" in error.message
    assert "--input x:float32[N,3,H,W]" in error.hint


def test_an_unknown_input_is_named(tmp_path):
    error = refused(conv_net(tmp_path / "m.onnx"), tmp_path, "images:float32[N,3,H,W]")
    assert isinstance(error, InvalidRequestError)
    assert error.hint == "it has x"


@pytest.mark.parametrize(
    ("drawing", "named"),
    [
        (helper.make_node("RandomNormalLike", ["x"], ["n"], name="noise"), "RandomNormalLike 'noise'"),
        (helper.make_node("RandomNormalLike", ["x"], ["n"], seed=1.0), "RandomNormalLike 'n'"),
        (helper.make_node("RandomUniform", [], ["n"], shape=[1, 4]), "RandomUniform 'n'"),
        (helper.make_node("Dropout", ["x", "", "on"], ["n"]), "Dropout 'n'"),
    ],
)
def test_a_file_that_draws_random_numbers_is_refused(tmp_path, drawing, named):
    nodes = [drawing, helper.make_node("Add", ["x", "n"], ["y"])]
    ends = [value("x", ["N", 4])], [value("y", ["N", 4])]
    path = save(tmp_path / "r.onnx", nodes, *ends, [("on", np.ones((), np.bool_))])
    request = ForeignRequest(path, tmp_path / "m.onnx", (), parse_space(["N=1:2:3"]))
    with pytest.raises(UnsupportedError, match=f"draws random numbers \\({named}\\), so 'y' differs") as refusal:
        adopt_model(request, SilentProgress())
    assert "an input of the graph" in refusal.value.hint
    assert not request.output.exists()


def test_noise_that_no_output_shows_is_no_reason(tmp_path):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["n"]),
        helper.make_node("Shape", ["n"], ["s"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    path = save(tmp_path / "r.onnx", nodes, [value("x", ["N", 4])], [value("y", ["N", 4])])
    assert adopt_model(ForeignRequest(path, tmp_path / "m.onnx", (), parse_space(["N=1:2:3"])), SilentProgress())
