"""`trtconv check --heal` on an engine that is wrong although its graph is right."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import parser

from tests.gpu.gate_files import call
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest
from trtconv.heal.trial import Variant
from trtconv.heal.workbench import EngineWorkbench

# Each output is the difference of two sums of about 150,000: small, but beyond half precision (65,504) on the way. The
# graph rounds the result alone; TensorRT 8.6 has products that add up in half precision, and likes them.
ROWS, WIDTH = 4096, 256


def converted(folder, model, inputs, *rewriting):
    """The engine of a conversion step by step: `convert` would set a wrong one aside."""
    onnx.save(model, folder / "net.onnx")
    files = folder / "set"
    for words in (
        ("export", folder / "net.onnx", "--input", inputs, "--dynamic", "N=1:16:64", "-o", files / "model.onnx"),
        ("rewrite", files / "model.onnx", "--target", "tensorrt==8.6", *rewriting, "-o", files / "model.trt.onnx"),
        ("check", files / "model.trt.onnx"),
        ("build", files / "model.trt.onnx", "--backend", "tensorrt", "--dynamic", "-o", files / "model.engine"),
    ):
        code, _, told = call(*words)
        assert code == 0, told
    return files / "model.engine"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """An fp16 engine whose products add up in half precision, where the builder likes such a kernel best."""
    text = (
        f"<ir_version: 8, opset_import: ['' : 17]> g (float[N,{ROWS}] x) => (float[N,{WIDTH}] y) {{ y = MatMul(x, w) }}"
    )
    model = parser.parse_model(text.replace("'", '"'))
    signs = np.repeat([1.0, -1.0], ROWS // 2)[:, None] * np.random.default_rng(0).choice([0.5, 1.0], (ROWS, WIDTH))
    model.graph.node[0].name = "product"
    model.graph.initializer.append(onnx.numpy_helper.from_array(signs.astype(np.float32), "w"))
    engine = converted(tmp_path_factory.mktemp("heal"), model, f"x:float32[N,{ROWS}]=50:100", "--precision", "fp16")
    if call("check", engine)[0] == 0:
        # Which kernel is the fastest is the builder's choice on this GPU; without a wrong engine nothing can be cured.
        pytest.skip("the builder chose a kernel that adds up in FP32: nothing is wrong here")
    return engine


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """An FP32 engine with a sine of large arguments, which 8.6 computes wrongly without the rule that is left out."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[N,64] x) => (float[N,64] y) <float k = {4096.0}>
        { a = Mul(x, k) b = Sin(a) y = Add(b, x) }"""
    )
    for node, name in zip(model.graph.node, ("scale", "sine", "sum"), strict=True):
        node.name = name
    return converted(tmp_path_factory.mktemp("waves"), model, "x:float32[N,64]=-1:1", "--skip", "sin-cos")


def test_the_form_of_a_rule_cures_what_the_builder_computes_wrongly(waves):
    assert call("check", waves)[0] == 3
    out = waves.parent.parent / "healed"
    code, _, told = call("check", waves, "--heal", out)
    assert code == 0, told
    assert call("check", out / "model.engine")[0] == 0
    facts = json.loads((out / "heal.json").read_text())
    assert facts["place"]["node"] == "sine"
    assert facts["chosen"]["variant"]["kind"] == "form"
    assert facts["chosen"]["variant"]["also"] == ["sin-cos"]
    assert facts["price"] > 0


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


# The lowest level and the one that compiles its own kernels, and the newest source of tactics alone.
BUILDS = (
    Variant("opt level", "optimization level 0", opt_level=0),
    Variant("opt level", "optimization level 4", opt_level=4),
    Variant("tactics", "tactics of the edge masks alone", options=(("tactic_sources", "edge_mask_convolutions"),)),
)


@pytest.mark.parametrize("variant", BUILDS, ids=lambda variant: variant.what)
@pytest.mark.parametrize("engine", ["waves", "wrong"])
def test_cures_by_level_and_by_tactics_hold_exactly_where_their_engine_is_right(engine, variant, request, tmp_path):
    subject = request.getfixturevalue(engine)
    bench = EngineWorkbench(CheckRequest(subject), tmp_path, SilentProgress())
    trial = bench.try_variant(variant)
    cured = tmp_path / "1" / subject.name
    if not cured.exists():
        # At some levels the builder finds no half-precision kernel: then there is no engine, and no cure.
        assert not trial.holds
        assert "although fp16 was asked for" in trial.reason
        return
    assert trial.holds == (call("check", cured)[0] == 0), trial.reason
    assert bool(trial.seconds) == trial.holds
    manifest = read_engine_manifest(cured)
    assert manifest.opt_level == variant.opt_level
    assert all(manifest.options[name] == value for name, value in variant.options)
