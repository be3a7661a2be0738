"""`--nms` in the rewrite room, for each target, and the check of what it leaves behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.rewrite.fixed_rows.graphs import DETECTOR, parsed, selected
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.check import check_model
from trtconv.core.artifacts import write_json
from trtconv.core.errors import AccuracyError, InvalidRequestError
from trtconv.core.files.artifact_set import sealed
from trtconv.core.model.file import load_model
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest, RewriteRequest
from trtconv.core.shape_space.fixed_rows import FixedOutput, FixedRows, recorded_fixed_rows
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.foreign import temporary_reference
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.fixed_rows import settle


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The end of a detector as exporters write it."""
    path = tmp_path_factory.mktemp("detector") / "detector.onnx"
    onnx.save(parsed(DETECTOR), path)
    return path


def request(detector: Path, folder: Path, target: str, nms: str, most: int = 9) -> RewriteRequest:
    """A rewrite of the detector."""
    space = parse_space(["T=5:12:30"])
    return RewriteRequest(
        detector, folder / "detector.trt.onnx", parse_target(target), nms=nms, max_detections=most, space=space
    )


def operators(path: Path) -> set[str]:
    """The op types of a file."""
    return {n.op_type for n in load_model(path).graph.node}


@pytest.mark.parametrize(
    ("target", "nms", "fixed"),
    [
        ("tensorrt==8.6", "native", False),
        ("tensorrt==8.6", "auto", True),
        ("tensorrt==10", "auto", True),
        ("tensorrt==8.6", "topk", True),
        ("tensorrt==11", "topk", True),
        ("tensorrt-rtx", "native", False),
        ("tensorrt-rtx", "auto", True),
    ],
)
def test_the_form_by_target(detector: Path, tmp_path: Path, target: str, nms: str, fixed: bool) -> None:
    result = rewrite_model(request(detector, tmp_path, target, nms), SilentProgress())
    output = load_model(result.model)
    names = [o.name for o in output.graph.output]
    assert ("NonMaxSuppression" in operators(result.model)) is not fixed
    assert names == ["kept", "best", "label", *(["num_detections"] if fixed else [])]
    assert any("fixed sizes equal the graph" in n for n in result.notes) is fixed
    assert any("in an order of its own" in n for n in result.notes) is (target == "tensorrt==8.6" and nms == "native")
    if target == "tensorrt-rtx" and not fixed:
        assert any("--nms topk" in s.reason for s in result.skipped)


def test_check_compares_up_to_padding(detector: Path, tmp_path: Path) -> None:
    """The reference is the detector's own; a count and rows that are wrong are told."""
    wanted = request(detector, tmp_path, "tensorrt-rtx", "topk")
    result = rewrite_model(wanted, SilentProgress())
    record = recorded_fixed_rows(result.model)
    assert record is not None
    assert {(o.output, o.rows) for o in record.outputs} == {("kept", 9), ("best", 9), ("label", 9)}
    with temporary_reference(detector, (), wanted.space) as reference:
        check = CheckRequest(result.model, reference=reference)
        report = check_model(check, SilentProgress())
        assert report.passed
        assert {c.output for c in report.comparisons} == {"kept", "best", "label", "num_detections"}
        spoilt = onnx.load(result.model)
        for tensor in spoilt.graph.initializer:
            if onnx.numpy_helper.to_array(tensor).tolist() == [10]:
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) - 7, tensor.name))
        onnx.save(spoilt, result.model)
        assert not check_model(replace(check, power=0), SilentProgress()).passed


def test_the_proof_sees_another_threshold(detector: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_fix = settle.fix_rows

    def wrong(model: onnx.ModelProto, *rest: object) -> object:
        other = onnx.ModelProto()
        other.CopyFrom(model)
        for tensor in other.graph.initializer:
            if tensor.name == "overlap":
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * 0 + 0.7, "overlap"))
        return true_fix(other, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(settle, "fix_rows", wrong)
    with pytest.raises(AccuracyError, match=r"at a fixed size .* chooses") as error:
        rewrite_model(request(detector, tmp_path, "tensorrt-rtx", "topk"), SilentProgress())
    assert "--nms native" in str(error.value.hint)


def test_nothing_to_fix(tmp_path: Path) -> None:
    plain = tmp_path / "plain.onnx"
    onnx.save(parsed("g (float[1,T,4] x) => (float[1,T,4] y) { y = Relu(x) }"), plain)
    result = rewrite_model(request(plain, tmp_path, "tensorrt-rtx", "topk"), SilentProgress())
    assert recorded_fixed_rows(result.model) is None


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10"])
def test_all_of_them_as_torchvision_writes_it(tmp_path: Path, target: str) -> None:
    """2^63 - 1 is no number that TensorRT 8.6 reads; 2^31 - 1 means the same."""
    model = tmp_path / "all.onnx"
    onnx.save(parsed(DETECTOR.replace("limit = {20}", "limit = {9223372036854775807}")), model)
    result = rewrite_model(request(model, tmp_path, target, "native"), SilentProgress())
    output = load_model(result.model)
    [node] = [n for n in output.graph.node if n.op_type == "NonMaxSuppression"]
    limits = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in output.graph.initializer}
    assert limits[node.input[2]] == [2**31 - 1]
    feed = selected(1, 2, 30, 0)
    before, after = (OnnxRuntimeRunner(p, threads=1)(feed) for p in (model, result.model))
    assert all((before[n] == after[n]).all() for n in before)


def test_native_suppression_without_a_threshold_takes_every_box(tmp_path: Path) -> None:
    """TensorRT's layer takes a threshold that is left out for 0, so that it would drop scores below: logits."""
    model = tmp_path / "open.onnx"
    onnx.save(parsed(DETECTOR.replace("limit, overlap, least)", "limit, overlap)")), model)
    result = rewrite_model(request(model, tmp_path, "tensorrt==8.6", "native"), SilentProgress())
    output = load_model(result.model)
    [node] = [n for n in output.graph.node if n.op_type == "NonMaxSuppression"]
    values = {t.name: onnx.numpy_helper.to_array(t) for t in output.graph.initializer}
    assert values[node.input[4]].item() < -3e38
    feed = selected(1, 2, 30, 0)
    feed["scores"] -= 0.5
    feed["scores"][0, 0, ::3] = -np.inf
    before, after = (OnnxRuntimeRunner(p, threads=1)(feed) for p in (model, result.model))
    assert all((before[n] == after[n]).all() for n in before)
    assert np.isneginf(before["best"]).any()


@pytest.mark.parametrize(("space", "told"), [("T=5:12:30", False), ("T=5:12:3000", True)])
def test_more_boxes_than_the_layer_considers_are_told(tmp_path: Path, detector: Path, space: str, told: bool) -> None:
    wanted = replace(request(detector, tmp_path, "tensorrt==10", "native"), space=parse_space([space]), proof=False)
    result = rewrite_model(wanted, SilentProgress())
    assert any("5000 best boxes" in n for n in result.notes) is told


def test_the_record_of_an_engine_whose_manifest_was_edited_is_refused(tmp_path: Path) -> None:
    record = FixedRows((FixedOutput("kept", 0, 9, "count"),), 9)
    manifest = tmp_path / "model.engine.json"
    data = sealed({"fixed_rows": record.as_text(), "padding": ""})
    write_json(manifest, data)
    assert recorded_fixed_rows(tmp_path / "model.engine") == record
    write_json(manifest, {**data, "fixed_rows": replace(record, most=1).as_text()})
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        recorded_fixed_rows(tmp_path / "model.engine")
