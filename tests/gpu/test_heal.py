"""`trtconv check --heal` on an engine that is wrong although its graph is right."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import parser

from tests.gpu.gate_files import call

# Each output is the difference of two sums of about 150,000: small, but beyond half precision (65,504) on the way. The
# graph rounds the result alone; TensorRT 8.6 has products that add up in half precision, and likes them.
ROWS, WIDTH = 4096, 256


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """The files of a conversion to fp16 step by step: `convert` would set the wrong engine aside."""
    folder = tmp_path_factory.mktemp("heal")
    text = (
        f"<ir_version: 8, opset_import: ['' : 17]> g (float[N,{ROWS}] x) => (float[N,{WIDTH}] y) {{ y = MatMul(x, w) }}"
    )
    model = parser.parse_model(text.replace("'", '"'))
    signs = np.repeat([1.0, -1.0], ROWS // 2)[:, None] * np.random.default_rng(0).choice([0.5, 1.0], (ROWS, WIDTH))
    model.graph.node[0].name = "product"
    model.graph.initializer.append(onnx.numpy_helper.from_array(signs.astype(np.float32), "w"))
    onnx.save(model, folder / "net.onnx")
    files = folder / "set"
    ranges = ("--input", f"x:float32[N,{ROWS}]=50:100", "--dynamic", "N=1:16:64")
    for words in (
        ("export", folder / "net.onnx", *ranges, "-o", files / "model.onnx"),
        ("rewrite", files / "model.onnx", "--target", "tensorrt==8.6", "--precision", "fp16", "-o",
         files / "model.trt.onnx"),
        ("check", files / "model.trt.onnx"),
        ("build", files / "model.trt.onnx", "--backend", "tensorrt", "--dynamic", "-o", files / "model.engine"),
    ):  # fmt: skip
        code, _, told = call(*words)
        assert code == 0, told
    if call("check", files / "model.engine")[0] == 0:
        # Which kernel is the fastest is the builder's choice on this GPU; without a wrong engine nothing can be cured.
        pytest.skip("the builder chose a kernel that adds up in FP32: nothing is wrong here")
    return files / "model.engine"


def test_the_first_cure_that_holds_is_shipped(wrong):
    out = wrong.parent.parent / "healed"
    code, shown, told = call("check", wrong, "--heal", out)
    assert code == 0, told
    assert call("check", out / "model.engine")[0] == 0
    facts = json.loads((out / "heal.json").read_text())
    assert facts["place"]["node"] == "product"
    assert facts["trials"][-1]["holds"]
    assert facts["before_seconds"] > 0
    assert facts["chosen"]["seconds"] > 0
    assert "price" in shown


def test_a_right_engine_has_nothing_to_heal(wrong, tmp_path):
    out = wrong.parent.parent / "healed"
    if not (out / "model.engine").exists():
        # The test above failed or ran alone elsewhere: it says why there is no healed engine to look at.
        pytest.skip("nothing was healed")
    code, _, told = call("check", out / "model.engine", "--heal", tmp_path / "again")
    assert code == 2
    assert "nothing to heal" in told
