import dataclasses

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtconv.check import check_model
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.requests import CheckRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.core.tolerance import Tolerance
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

SPACE = parse_space(["N=1:2:4", "W=3:8:17"])
SPEC = parse_tensor("x:float32[N,W]")


def double(factor: float = 2.0, name: str = "x") -> onnx.ModelProto:
    """y = factor * x over dynamic N and W."""
    graph = helper.make_graph(
        [helper.make_node("Mul", [name, "factor"], ["y"])],
        "double",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "W"])],
        [helper.make_tensor("factor", TensorProto.FLOAT, [], [factor])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    set_metadata(model, SPACE_KEY, str(SPACE))
    return model


def double_array(inputs):
    return {"y": inputs["x"] * np.float32(2)}


@pytest.fixture
def folder(tmp_path):
    """A folder with a model and its reference."""
    save_model(double(), tmp_path / "model.onnx")
    points = sample_points(SPACE, [SPEC])
    samples = []
    for point in points:
        inputs = sample_inputs([SPEC], point)
        samples.append(ReferenceSample(point, inputs, double_array(inputs)))
    write_reference(tmp_path / "model.reference.safetensors", ReferenceInfo(points, (SPEC,), ("y",), SPACE), samples)
    return tmp_path


def test_an_equal_model_passes_at_every_point(folder):
    report = check_model(CheckRequest(folder / "model.onnx"))
    assert report.passed
    assert len({c.point for c in report.comparisons}) >= 8
    assert all(c.max_abs == 0.0 for c in report.comparisons)
    assert report.advisory, "the NaN point is compared apart"


def test_a_rewritten_model_finds_the_same_reference(folder):
    save_model(double(), folder / "model.trt.onnx")
    assert check_model(CheckRequest(folder / "model.trt.onnx")).passed


def test_a_wrong_model_fails_with_the_place(folder):
    save_model(double(2.01), folder / "wrong.onnx")
    report = check_model(CheckRequest(folder / "wrong.onnx", folder / "model.reference.safetensors"))
    assert not report.passed
    worst = next(c for c in report.comparisons if not c.passed)
    assert worst.output == "y"
    assert worst.mismatched is not None
    assert worst.mismatched > 0.5


def test_the_tolerance_of_one_output_is_its_own(folder):
    save_model(double(2.01), folder / "wrong.onnx")
    request = CheckRequest(folder / "wrong.onnx", folder / "model.reference.safetensors")
    loose = dataclasses.replace(request, outputs=(("y", Tolerance(0.01, 0.01, why="a test")),))
    assert check_model(loose).passed
    other = dataclasses.replace(request, outputs=(("z", Tolerance(0.01, 0.01, why="a test")),))
    with pytest.raises(InvalidRequestError, match="no output is called 'z'"):
        check_model(other)


def test_a_reference_with_other_outputs_is_of_another_model(folder):
    model = double()
    model.graph.node[-1].output[0] = model.graph.output[0].name = "other"
    save_model(model, folder / "other.onnx")
    with pytest.raises(InvalidRequestError, match="of another model: it has none of the outputs"):
        check_model(CheckRequest(folder / "other.onnx", folder / "model.reference.safetensors"))


def test_without_a_reference_the_error_says_how_to_name_one(tmp_path):
    save_model(double(), tmp_path / "model.onnx")
    with pytest.raises(InvalidRequestError, match="no reference beside") as caught:
        check_model(CheckRequest(tmp_path / "model.onnx"))
    assert "--against" in (caught.value.hint or "")


def test_a_reference_of_another_model_is_refused(folder):
    save_model(double(name="images"), folder / "other.onnx")
    with pytest.raises(InvalidRequestError, match="of another model: it has no input 'images'"):
        check_model(CheckRequest(folder / "other.onnx", folder / "model.reference.safetensors"))


def test_a_stale_reference_is_an_error(folder):
    from trtconv.core.files.artifact_set import write_sealed
    from trtconv.core.files.digest import sha256_file

    write_sealed(folder / "model.onnx.json", {"sha256": sha256_file(folder / "model.onnx")})
    assert check_model(CheckRequest(folder / "model.onnx")).passed
    model = double()
    model.doc_string = "changed"
    save_model(model, folder / "model.onnx")
    report = check_model(CheckRequest(folder / "model.onnx"))
    assert not report.passed
    assert "not the file that its manifest" in report.errors[0].message


def test_against_the_module_itself(folder):
    report = check_model(CheckRequest(folder / "model.onnx"), module_runner=double_array)
    assert report.passed
    assert report.reference == "the module itself"
    wrong = check_model(CheckRequest(folder / "model.onnx"), module_runner=lambda i: {"y": i["x"] * np.float32(2.1)})
    assert not wrong.passed


def test_nan_in_the_reference_is_a_warning(folder):
    point = sample_points(SPACE, [SPEC])[0]
    inputs = sample_inputs([SPEC], point)
    outputs = {"y": np.full_like(inputs["x"], np.nan)}
    path = folder / "nan.reference.safetensors"
    write_reference(path, ReferenceInfo((point,), (SPEC,), ("y",), SPACE), [ReferenceSample(point, inputs, outputs)])
    report = check_model(CheckRequest(folder / "model.onnx", path))
    assert not report.passed
    assert any("returns NaN" in f.message for f in report.findings)


def test_an_engine_that_cannot_run_here_is_not_passed_in_silence(folder):
    header = b"trtv" + bytes(20) + bytes([1, 7, 1, 116]) + bytes(200)
    (folder / "model.engine").write_bytes(header)
    report = check_model(CheckRequest(folder / "model.engine", foreign=True))
    assert not report.passed
    assert report.errors[0].kind == "environment"
    allowed = check_model(CheckRequest(folder / "model.engine", allow_unrunnable=True, foreign=True))
    assert not allowed.passed
    assert not allowed.errors


def test_session_runs_a_file(folder):
    import trtconv

    with trtconv.load(folder / "model.onnx") as session:
        result = session(x=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(result["y"], np.full((2, 3), 2, np.float32))
