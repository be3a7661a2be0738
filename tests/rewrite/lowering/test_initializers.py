"""An initializer that is an input as well is a value, but in a file with IR version 3."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model


def model_with_default(nodes, name, default, version, opset=14):
    dtype = helper.np_dtype_to_tensor_dtype(default.dtype)
    graph = helper.make_graph(
        [helper.make_node(*n[:3], name=f"n{i}", **n[3]) for i, n in enumerate(nodes)],
        "g",
        [
            helper.make_tensor_value_info("x", 1, [4, 4]),
            helper.make_tensor_value_info(name, dtype, list(default.shape)),
        ],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(default, name)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)


FOLDS = [("Add", ["k", "k"], ["twice"], {}), ("Add", ["x", "twice"], ["y"], {})]
TRILU = [("Trilu", ["x", "k"], ["y"], {"upper": 0})]


def rewritten(model, tmp_path, target):
    source = tmp_path / "m.onnx"
    onnx.save(model, str(source))
    request = RewriteRequest(model=source, output=tmp_path / "m.trt.onnx", target=parse_target(target))
    return rewrite_model(request, SilentProgress())


@pytest.mark.parametrize(
    ("nodes", "default", "fed"),
    [
        (FOLDS, np.full((4, 4), 1.0, np.float32), np.full((4, 4), 5.0, np.float32)),
        (TRILU, np.array(0, np.int64), np.array(2, np.int64)),
    ],
)
@pytest.mark.parametrize("target", ["tensorrt-rtx", "tensorrt==8.6"])
def test_a_value_fed_for_a_default_still_counts(nodes, default, fed, target, tmp_path):
    model = model_with_default(nodes, "k", default, version=8)
    result = rewritten(model, tmp_path, target)
    feed = {"x": np.arange(16, dtype=np.float32).reshape(4, 4), "k": fed}
    want = OnnxRuntimeRunner(model.SerializeToString())(feed)
    assert np.array_equal(OnnxRuntimeRunner(result.model)(feed)["y"], want["y"])
    assert any("'k'" in note and "default" in note for note in result.notes)


def test_in_ir_version_3_a_listed_initializer_is_a_constant(tmp_path):
    model = model_with_default(FOLDS, "k", np.full((4, 4), 1.0, np.float32), version=3, opset=8)
    result = rewritten(model, tmp_path, "tensorrt-rtx")
    after = onnx.load(str(result.model))
    assert [v.name for v in after.graph.input] == ["x"]
    assert "fold-constants" in [e.rule for e in result.entries]
    assert not result.notes
