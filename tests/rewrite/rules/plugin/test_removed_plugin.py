"""Plugins that TensorRT 11 no longer has. Nothing runs them, so the results are compared with NumPy."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.rewrite.harness import apply, runner
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.plugin.removed_plugin import ADVICE, ADVICE_RTX, RULE

X = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32) * 4
BIAS = np.array([0.5, -1.0, 2.0], np.float32).reshape(3, 1, 1)
WEIGHTS = [1.0, 2.0, 3.0]


def normalize(across):
    axes = (1, 2, 3) if across else 1
    norm = np.sqrt((X * X).sum(axes, keepdims=True) + 1e-10)
    return X / norm * np.array(WEIGHTS, np.float32).reshape(1, 3, 1, 1)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


CASES = [
    ("CustomGeluPluginDynamic", {"type_id": 0}, gelu(X)),
    ("CustomGeluPluginDynamic", {"type_id": 0, "bias": numpy_helper.from_array(BIAS)}, gelu(X + BIAS)),
    ("ResizeNearest_TRT", {"scale": 2.0}, X.repeat(2, 2).repeat(2, 3)),
    ("LReLU_TRT", {"negSlope": 0.2}, np.where(X < 0, X * np.float32(0.2), X)),
    ("Clip_TRT", {"clipMin": -1.0, "clipMax": 2.0}, X.clip(-1, 2)),
    ("Normalize_TRT", {"weights": WEIGHTS, "eps": 1e-10, "acrossSpatial": 0, "channelShared": 0}, normalize(False)),
    ("Normalize_TRT", {"weights": WEIGHTS, "eps": 1e-10, "acrossSpatial": 1, "channelShared": 0}, normalize(True)),
]


def model(op, domain, attributes, inputs=("x",)):
    node = helper.make_node(op, list(inputs), ["y"], name="n", domain=domain, **attributes)
    values = [helper.make_tensor_value_info("x", 1, ["N", 3, "H", "W"]), helper.make_tensor_value_info("t", 1, [1, 4])]
    graph = helper.make_graph([node], "g", values[: len(inputs)], [helper.make_tensor_value_info("y", 1, None)])
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.mark.parametrize("domain", ["", "trt.plugins"])
@pytest.mark.parametrize(("op", "attributes", "expected"), CASES)
def test_written_out(op, attributes, expected, domain):
    subject = model(op, domain, attributes)
    record = apply(subject, (RULE,), "tensorrt==11")
    assert len(record.entries) == 1
    assert record.entries[0].proof.passed is None
    assert "could not be compared" in record.entries[0].proof.note
    assert np.allclose(runner(subject)({"x": X})["y"], expected, rtol=1e-5, atol=1e-6)
    assert not apply(subject, (RULE,), "tensorrt==11").entries


def test_a_tile_per_image():
    subject = model("BatchTilePlugin_TRT", "", {}, ("x", "t"))
    assert len(apply(subject, (RULE,), "tensorrt==11").entries) == 1
    tile = np.arange(4, dtype=np.float32).reshape(1, 4)
    assert np.array_equal(runner(subject)({"x": X, "t": tile})["y"], np.repeat(tile, 2, 0))


@pytest.mark.parametrize("op", ADVICE)
def test_the_replacement_is_named(op):
    subject = model(op, "", {})
    before = onnx.ModelProto.FromString(subject.SerializeToString())
    record = apply(subject, (RULE,), "tensorrt==11")
    assert not record.entries
    assert subject == before
    assert ADVICE[op] in record.skipped[0].reason


@pytest.mark.parametrize("op", ADVICE_RTX)
def test_rtx_has_no_plugins(op):
    subject = model(op, "", {})
    record = apply(subject, (RULE,), "tensorrt-rtx")
    assert ADVICE_RTX[op] in record.skipped[0].reason
    assert not apply(subject, (RULE,), "tensorrt==11").skipped


def test_not_needed_where_the_plugins_are():
    assert not RULE.needed(parse_target("tensorrt==10"))
    assert not RULE.needed(parse_target("tensorrt==8.6"))
