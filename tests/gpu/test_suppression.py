"""Detectors with their suppression on the engine: fixed rows equal the original, TensorRT's own layer not always."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.gpu.gate_files import call
from tests.rewrite.fixed_rows.graphs import DETECTOR, detector_by_class, parsed

GRAPHS = {
    "indices": (parsed(DETECTOR), "scores:float32[1,2,T]=0:1", "boxes:float32[1,T,4]=0:10"),
    "classes": (detector_by_class(), "scores:float32[T,3]=0:1", "boxes:float32[T,4]=0:10"),
}


def convert(name: str, nms: str, folder: Path) -> tuple[int, str, str]:
    """A conversion that checks the engine."""
    model, *inputs = GRAPHS[name]
    onnx.save(model, folder / "detector.onnx")
    words = [word for text in inputs for word in ("--input", text)]
    words += ["--target", "tensorrt==8.6", "--nms", nms, "--max-detections", "9", "--dynamic", "T=5:12:30"]
    return call("convert", folder / "detector.onnx", *words, "-o", folder / "out", "--backend", "tensorrt")


@pytest.mark.parametrize("name", GRAPHS)
def test_fixed_rows_equal_the_original(name: str, tmp_path: Path) -> None:
    code, _, told = convert(name, "topk", tmp_path)
    assert code == 0, told
    code, shown, told = call("check", tmp_path / "out" / "model.engine", "--json")
    assert code == 0, told
    facts = json.loads(shown)
    assert {c["output"] for c in facts["comparisons"]} == {"kept", "best", "label", "num_detections"}
    assert facts["environment"]["gpu"]


def test_the_layer_is_asked_class_by_class(tmp_path: Path) -> None:
    """8.6 sorts rows of two classes in an order of its own; the rule `suppression-order` gives it one at a time."""
    code, _, told = convert("indices", "native", tmp_path)
    assert code == 0, told


def test_what_the_layer_does_otherwise_is_told(tmp_path: Path) -> None:
    """8.6 runs no suppression without boxes."""
    code, _, told = convert("classes", "native", tmp_path)
    assert code == 3
    assert "TensorRT could not run the engine" in told
    assert not (tmp_path / "out" / "model.engine").exists()
