"""Engines with the plugins of rows and of images, of moving batch and length, give what the NumPy reference gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import trtconv
from tests.gpu.plugins.test_plugins_engine import KINDS, library  # noqa: F401 - a fixture
from trtconv.plugins.described.registry import find_plugin
from trtconv.plugins.onnx_form import make_node

SPACE = "N=1:4:8 L=8:64:200%8"
SHAPES = ((4, 64), (1, 8), (8, 200), (3, 104))
CHANNELS = 48
# Of an output's largest value. Products of fp32 are cuBLASLt's without TF32.
TOLERANCE = {np.float32: 1e-5, np.float16: 3e-3}
CASES = {
    "linear": ("TrtconvLinear", {}),
    "linear_residual": ("TrtconvLinear", {"added": 1}),
    "linear_gelu": ("TrtconvLinear", {"activation": 1}),
    "linear_gelu_tanh": ("TrtconvLinear", {"activation": 2}),
    "layer_norm": ("TrtconvLayerNorm", {"epsilon": 1e-6}),
    "group_norm": ("TrtconvGroupNorm", {"epsilon": 1e-6}),
    "group_norm_mixed": ("TrtconvGroupNorm", {"mixed": 1}),
    "convolution": ("TrtconvDepthwiseConv", {"channels": CHANNELS, "width": 8}),
    "convolution_gelu": ("TrtconvDepthwiseConv", {"channels": CHANNELS, "width": 8, "gelu": 1}),
}


def arrays_of(op_type: str, dtype) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "TrtconvLinear": {"weight": (CHANNELS, CHANNELS), "bias": (CHANNELS,)},
        "TrtconvLayerNorm": {"scale": (CHANNELS,), "shift": (CHANNELS,)},
        "TrtconvGroupNorm": {"scale": (CHANNELS,), "shift": (CHANNELS,)},
        "TrtconvDepthwiseConv": {"weight": (3, 3, CHANNELS), "bias": (CHANNELS,)},
    }[op_type]
    return {n: (rng.standard_normal(s) / (len(s) * 3)).astype(dtype) for n, s in shapes.items()}


def tail_of(op_type: str) -> tuple[int, ...]:
    """The dims behind batch and length: of an image 6 columns of channels."""
    return (6, CHANNELS) if op_type == "TrtconvGroupNorm" else (CHANNELS,)


def model_of(path: Path, case: str, dtype) -> Path:
    op_type, attributes = CASES[case]
    weights, kind, name = arrays_of(op_type, dtype), KINDS[dtype], np.dtype(dtype).name
    inputs, tail = ["x", *weights], tail_of(op_type)
    if op_type == "TrtconvLinear":
        inputs.append("x" if attributes.get("added") else "bias")
    graph = helper.make_graph(
        [make_node(find_plugin(op_type), inputs, ["y"], case, **attributes)], "g",
        [helper.make_tensor_value_info("x", kind, ["N", "L", *tail])],
        [helper.make_tensor_value_info("y", kind, [None] * (2 + len(tail)))],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.metadata_props.add(key="trtconv.space", value=SPACE)
    model.metadata_props.add(key="trtconv.inputs", value=f"x:{name}[N,L,{','.join(map(str, tail))}]")
    onnx.save(model, str(path))
    return path


def expected_of(case: str, x: np.ndarray, dtype) -> np.ndarray:
    op_type, attributes = CASES[case]
    plugin, weights = find_plugin(op_type), arrays_of(op_type, dtype)
    inputs = [x, *weights.values()]
    if op_type == "TrtconvLinear":
        inputs.append(x if attributes.get("added") else weights["bias"])
    return plugin.reference([a.astype(np.float64) for a in inputs], plugin.checked_attributes(attributes))[0]


def require_equal(session, case: str, dtype, tolerance: float = 0.0) -> None:
    for number, (batch, length) in enumerate(SHAPES):
        shape = (batch, length, *tail_of(CASES[case][0]))
        x = np.random.default_rng(number).standard_normal(shape).astype(dtype)
        expected, actual = expected_of(case, x, dtype), session(x=x)["y"].astype(np.float64)
        assert actual.shape == expected.shape
        allowed = (tolerance or TOLERANCE[dtype]) * np.abs(expected).max()
        assert np.abs(actual - expected).max() <= allowed, (batch, length)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["fp32", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_equal_at_every_shape(tmp_path, engine_file, library, case, dtype):  # noqa: F811
    engine = engine_file(model_of(tmp_path / "model.onnx", case, dtype), plugins=(library,))
    session = trtconv.load(engine, plugins=(library,))
    for _ in range(2):
        require_equal(session, case, dtype)
    session.close()


@pytest.mark.parametrize("allowed", [False, True])
def test_tf32_is_the_builds_to_allow(tmp_path, engine_file, library, allowed):  # noqa: F811
    """Products of TF32 are off by more than FP32 is, and by no more than the mantissa of 10 bits says."""
    options = (("tf32", True),) if allowed else ()
    engine = engine_file(model_of(tmp_path / "model.onnx", "linear", np.float32), plugins=(library,), options=options)
    session = trtconv.load(engine, plugins=(library,))
    require_equal(session, "linear", np.float32, TOLERANCE[np.float16] if allowed else 0.0)
    if allowed:
        with pytest.raises(AssertionError):
            require_equal(session, "linear", np.float32)
    session.close()


@pytest.mark.parametrize("case", ["linear_residual", "linear_gelu", "layer_norm", "group_norm", "group_norm_mixed"])
def test_in_a_cuda_graph(tmp_path, engine_file, run, library, case):  # noqa: F811
    engine = engine_file(model_of(tmp_path / "model.onnx", case, np.float16), plugins=(library,))
    session = run(engine, plugins=(library,))
    session.cuda_graph = True
    for _ in range(3):
        require_equal(session, case, np.float16)
