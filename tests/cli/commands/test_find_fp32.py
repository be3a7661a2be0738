"""`trtconv check --find-fp32`, and `--keep-fp32` with what it found."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.check.compare.subjects import open_subject
from trtconv.core.model.file import load_model, save_model, set_metadata
from trtconv.core.model.provenance import MODULE_KEY, SOURCE_KEY, SPACE_KEY
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

SPACE = parse_space(["N=1:2:3"])
SPEC = parse_tensor("x:float32[N,8]")


@pytest.fixture
def model(tmp_path):
    """y = tanh(x * 300 * 300 / 300 / 300): what is between the middle two leaves the range of fp16, nothing else."""
    names = ("up", "again", "down", "back", "end")
    nodes = [
        helper.make_node("Mul", ["x", "a"], ["up"], "up"),
        helper.make_node("Mul", ["up", "a"], ["again"], "again"),
        helper.make_node("Mul", ["again", "b"], ["down"], "down"),
        helper.make_node("Mul", ["down", "b"], ["back"], "back"),
        helper.make_node("Tanh", ["back"], ["y"], "end"),
    ]
    for line, node in enumerate(nodes, 10):
        node.metadata_props.add(key=MODULE_KEY, value="body")
        node.metadata_props.add(key=SOURCE_KEY, value=f"net.py:{line}")
    weights = [numpy_helper.from_array(np.array(v, np.float32), k) for k, v in (("a", 300.0), ("b", 1 / 300))]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "wide", [value("x", TensorProto.FLOAT, ["N", 8])], [value("y", TensorProto.FLOAT, ["N", 8])], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    set_metadata(model, SPACE_KEY, str(SPACE))
    path = tmp_path / "model.onnx"
    save_model(model, path)
    points = [p for p in sample_points(SPACE, [SPEC]) if p.values in ("random", "zeros")]
    run = open_subject(path).run
    samples = [ReferenceSample(p, i, run(i)) for p in points if (i := sample_inputs([SPEC], p))]
    write_reference(
        tmp_path / "model.reference.safetensors", ReferenceInfo(tuple(points), (SPEC,), ("y",), SPACE), samples
    )
    assert names == tuple(n.name for n in load_model(path).graph.node)
    return path


def half(trtconv, model, *keep):
    words = [w for name in keep for w in ("--keep-fp32", name)]
    return trtconv("rewrite", model, "--target", "tensorrt==10", "--precision", "fp16", *words)


def test_the_nodes_that_are_found_are_those_that_make_half_precision_pass(trtconv, model):
    assert half(trtconv, model)[0] == 0
    code, out, _ = trtconv("check", model.with_name("model.trt.onnx"))
    assert code == 3
    assert "--find-fp32" in out
    code, out, err = trtconv("check", model.with_name("model.trt.onnx"), "--find-fp32", "--json", "-")
    assert code == 0, err
    report = json.loads(out)
    names = [n["name"] for n in report["nodes"]]
    assert 0 < len(names) < 5
    assert report["nodes"][0]["origin"]["source"].startswith("net.py:1")
    assert report["target"] == "tensorrt==10"
    assert half(trtconv, model, *names)[0] == 0
    assert trtconv("check", model.with_name("model.trt.onnx"))[0] == 0
    for left_out in names:
        half(trtconv, model, *(n for n in names if n != left_out))
        assert trtconv("check", model.with_name("model.trt.onnx"))[0] == 3, left_out


def test_the_option_to_use_is_printed(trtconv, model):
    code, out, _ = trtconv("check", model, "--find-fp32", "--target", "tensorrt==10")
    assert code == 0
    assert "of 5 nodes have to stay FP32 for fp16 within the noise floor and roundings to fp16" in out
    assert f"-> trtconv rewrite {model} --target tensorrt==10 --precision fp16 --keep-fp32 " in out
    assert "[rewrite] keep_fp32 = [" in out
    assert "body (net.py:1" in out


def test_no_node_is_named_where_none_is_needed(trtconv, model):
    code, out, _ = trtconv("check", model, "--find-fp32", "--target", "tensorrt==10", "--rtol", "9", "--atol", "9")
    assert code == 0
    assert out.startswith("0 of 5 nodes")


def test_wrong_requests_are_named(trtconv, model):
    code, _, err = trtconv("rewrite", model, "--target", "tensorrt==10", "--keep-fp32", "up")
    assert code == 2
    assert "add --precision fp16" in err
    code, _, err = half(trtconv, model, "absent")
    assert code == 2
    assert "absent" in err
    (model.parent / "config.toml").write_text('[rewrite]\nkeep_fp32 = ["up"]\n[build]\nprecision = "fp16"\n')
    words = ("rewrite", model, "--target", "tensorrt==10", "--config", model.parent / "config.toml")
    assert trtconv(*words)[0] == 0
