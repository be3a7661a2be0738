"""Detectors with their suppression: fixed rows, and TensorRT's own layer with an output allocator, on the engine."""

from __future__ import annotations

import json

import onnx
import pytest

from tests.gpu.gate_files import call
from tests.rewrite.fixed_rows.graphs import DETECTOR, detector_by_class, parsed

GRAPHS = {
    "indices": (parsed(DETECTOR), "scores:float32[1,2,T]=0:1", "boxes:float32[1,T,4]=0:10"),
    "classes": (detector_by_class(), "scores:float32[T,3]=0:1", "boxes:float32[T,4]=0:10"),
}


@pytest.fixture(scope="module", params=[(name, nms) for name in GRAPHS for nms in ("topk", "native")], ids="-".join)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, object]]:
    """Which form, and what the check of the engine says."""
    name, nms = request.param
    folder = tmp_path_factory.mktemp("suppression")
    model, *inputs = GRAPHS[name]
    onnx.save(model, folder / "detector.onnx")
    words = [word for text in inputs for word in ("--input", text)]
    words += ["--target", "tensorrt==8.6", "--nms", nms, "--max-detections", 9, "--dynamic", "T=5:12:30"]
    code, _, told = call("convert", folder / "detector.onnx", *words, "-o", folder / "out", "--backend", "tensorrt")
    assert code == 0, told
    code, shown, told = call("check", folder / "out" / "model.engine", "--json")
    assert code == 0, told
    return nms, json.loads(shown)


def test_the_engine_equals_the_original(report: tuple[str, dict[str, object]]) -> None:
    nms, facts = report
    outputs = {c["output"] for c in facts["comparisons"]}
    assert ("num_detections" in outputs) is (nms == "topk")
    assert {"kept", "best", "label"} <= outputs
    assert facts["environment"]["gpu"]
