"""What rules of a precision write is looked at by the rules of plugins that the request names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model


def patches(path: Path) -> Path:
    """Tokens of an image, as the first layer of a vision transformer makes them."""
    weight = np.random.default_rng(0).standard_normal((8, 3, 16, 16)).astype(np.float32) / 28
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", kernel_shape=[16, 16], strides=[16, 16]),
        helper.make_node("Reshape", ["c", "shape"], ["r"], name="rows"),
        helper.make_node("Transpose", ["r"], ["y"], name="tokens", perm=[0, 2, 1]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 32, 48])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 6, 8])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([-1, 8, 6]), "shape")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize(("plugins", "expected"), [("TrtconvLinear", "TrtconvLinear"), ("never", "MatMul")])
def test_products_that_a_rule_writes_are_plugin_nodes(tmp_path: Path, plugins: str, expected: str) -> None:
    target = parse_target("tensorrt==8.6")
    request = RewriteRequest(
        patches(tmp_path / "m.onnx"), tmp_path / "o.onnx", target, precision="fp16", plugins=plugins
    )
    result = rewrite_model(request, SilentProgress())
    kinds = {n.op_type for n in onnx.load(str(request.output)).graph.node}
    assert {"TrtconvLinear", "MatMul"} & kinds == {expected}
    assert "patch-products" in [e.rule for e in result.entries]
