"""A foreign ONNX file as a user converts, checks and measures it."""

import json
import re
import subprocess
import sys

import onnx
import pytest

from tests.foreign.models import conv_net, rate_net

RANGES = ("--dynamic", "DynamicDimension_0=1:1:2", "x_dim2=5:6:9", "x_dim3=5:7:9")
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from trtconv.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def third(tmp_path_factory):
    return conv_net(tmp_path_factory.mktemp("foreign") / "third.onnx")


@pytest.fixture(scope="module")
def converted(third):
    """Converted by a process in which torch cannot be imported."""
    pytest.importorskip("tensorrt_rtx")
    out = third.parent / "out"
    line = [sys.executable, "-c", WITHOUT_TORCH, "convert", third, "-o", out, *RANGES, "--backend", "tensorrt-rtx"]
    child = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return out, child.stdout


def test_convert_needs_no_torch_and_says_what_it_proved(converted):
    out, said = converted
    assert "third.onnx, run by onnxruntime" in said
    assert "equals the ONNX file" in said
    assert "x_dim2 (axis 2 of 'x', was '?')" in said
    report = json.loads((out / "model.report.json").read_text())
    assert {c["point"].split()[0] for c in report["comparisons"]} >= {"traced", "min", "max", "zeros", "large"}


def test_what_was_written_is_checked_like_any_conversion(converted, trtconv):
    out, _ = converted
    code, said, err = trtconv("check", out / "model.trt.onnx", "--markdown", out / "r.md", "--html", out / "r.html")
    assert code == 0, err
    assert "PASSED" in said
    for text in (
        said,
        (out / "r.md").read_text(),
        (out / "r.html").read_text(),
        (out / "model.report.html").read_text(),
    ):
        assert "equals the ONNX file at" in text
        assert not re.search(r"(equals|differs from) (the|its) (reference|module|original)", text)
    assert json.loads((out / "model.report.json").read_text())["original"] == "the ONNX file"
    assert "--no-source-check" not in (out / "model.report.html").read_text()


def test_a_dim_without_a_range_ends_in_the_line_to_type(third, trtconv, tmp_path):
    code, _, err = trtconv("convert", third, "-o", tmp_path / "out")
    assert code == 2
    assert "--dynamic DynamicDimension_0=1:1:4 x_dim2=64:96:128 x_dim3=64:96:128" in err
    assert not (tmp_path / "out").exists()


def test_options_for_modules_are_refused(third, trtconv):
    code, _, err = trtconv("convert", third, "--exporter", "dynamo", *RANGES)
    assert code == 2
    assert "--exporter is for modules" in err


def test_check_against_the_file(converted, third, trtconv):
    out, _ = converted
    code, said, err = trtconv("check", out / "model.trt.onnx", "--against", third)
    assert code == 0, err
    assert "model.trt.onnx equals the ONNX file at" in said


def test_check_against_another_file_is_red(third, trtconv, tmp_path):
    other = conv_net(tmp_path / "other.onnx", bias=0.001)
    code, said, _ = trtconv("check", other, "--against", third, *RANGES)
    assert code == 3
    assert "FAILED" in said


def test_check_pairs_other_names_by_position(third, trtconv, tmp_path):
    model = onnx.load(third)
    model.graph.input[0].name = model.graph.node[0].input[0] = "images"
    model.graph.output[0].name = model.graph.node[1].output[0] = "scores"
    onnx.save(model, tmp_path / "renamed.onnx")
    code, said, err = trtconv("check", tmp_path / "renamed.onnx", "--against", third, *RANGES)
    assert code == 0, err + said


def test_bench_needs_no_reference(third, trtconv):
    code, said, err = trtconv("bench", third, *RANGES, "--seconds", "0.05")
    assert code == 0, err
    assert "opt" in said
    assert not third.with_name("third.reference.safetensors").exists()


def test_repro_needs_no_reference(third, trtconv, tmp_path):
    code, _, err = trtconv("repro", third, *RANGES, "-o", tmp_path / "repro", "--kind", "run")
    assert code == 1
    assert "nothing fails" in err


def test_nested_ifs_are_named_and_the_remedy_works(trtconv, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    path = rate_net(tmp_path / "rate.onnx")
    line = ("convert", path, "-o", tmp_path / "out", "--dynamic", "N=1:1:2", "--backend", "tensorrt-rtx")
    code, said, err = trtconv(*line, "--input", "sr:int64[]=16000:16000")
    assert code == 0, err
    assert "settled-ifs x2" in said
