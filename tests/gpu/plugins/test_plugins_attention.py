"""Engines with TrtconvAttention, of moving batch and length, give what the NumPy reference gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import trtconv
from tests.gpu.plugins.test_plugins_engine import KINDS, library  # noqa: F401 - a fixture
from trtconv.plugins.described.attention import OP_TYPE
from trtconv.plugins.described.registry import find_plugin
from trtconv.plugins.onnx_form import make_node

SPACE = "N=2:4:16 L=1:49:200"
SHAPES = ((2, 49), (4, 1), (16, 64), (6, 65), (2, 200))
# Of an output's largest value; half precision rounds the weights.
TOLERANCE = {np.float32: 1e-5, np.float16: 3e-3}
# heads, columns of a head, groups of the bias (0: one number for all)
CASES = {"windows": (3, 32, 2), "image": (2, 64, 0), "wide": (2, 128, 0), "odd": (3, 20, 1)}


def attributes_of(case: str) -> dict[str, float]:
    heads, size, _ = CASES[case]
    width = heads * size
    return {
        "heads": heads, "size": size, "scale": size**-0.5,
        "query_offset": 0, "key_offset": width, "value_offset": 2 * width,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["fp32", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_equal_at_every_shape(tmp_path, engine_file, library, case, dtype):  # noqa: F811
    heads, size, groups = CASES[case]
    plugin, name, kind = find_plugin(OP_TYPE), np.dtype(dtype).name, KINDS[dtype]
    columns = 3 * heads * size
    # A bias of one row for all queries moves with the keys; it is an input, as masks are.
    bias_dims = [groups, heads, 1, "L"] if groups else [1, 1, 1, 1]
    inputs = [helper.make_tensor_value_info("x", kind, ["N", "L", columns])]
    initializers = []
    if groups:
        inputs.append(helper.make_tensor_value_info("bias", kind, bias_dims))
    else:
        initializers.append(numpy_helper.from_array(np.full((1, 1, 1, 1), 0.25, dtype), "bias"))
    graph = helper.make_graph(
        [make_node(plugin, ["x", "x", "x", "bias"], ["y"], case, **attributes_of(case))], "g", inputs,
        [helper.make_tensor_value_info("y", kind, [None] * 3)], initializers,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.metadata_props.add(key="trtconv.space", value=SPACE)
    dims = (["N", "L", columns], bias_dims)
    texts = [f"{v.name}:{name}[{','.join(map(str, d))}]" for v, d in zip(inputs, dims, strict=False)]
    model.metadata_props.add(key="trtconv.inputs", value="\n".join(texts))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    session = trtconv.load(engine_file(path, plugins=(library,)), plugins=(library,))
    for number, (batch, length) in enumerate(SHAPES):
        rng = np.random.default_rng(number)
        feed = {"x": rng.standard_normal((batch, length, columns)).astype(dtype)}
        if groups:
            feed["bias"] = rng.standard_normal((groups, heads, 1, length)).astype(dtype)
        bias = feed.get("bias", np.full((1, 1, 1, 1), 0.25))
        wide = [a.astype(np.float64) for a in (feed["x"], feed["x"], feed["x"], bias)]
        expected = plugin.reference(wide, plugin.checked_attributes(attributes_of(case)))[0]
        actual = session(**feed)["y"].astype(np.float64)
        assert actual.shape == expected.shape
        assert np.abs(actual - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max(), (batch, length)
