# ruff: noqa: E501 - the text of a model stands on one line
"""Gates of squeeze and excitation as plugin nodes."""

import onnx
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss, model_of
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.rules.plugin.plugin_channel_gate import RULE

W = constants((2, 8, 1, 1), (8, 2, 1, 1), (2,), (8,))
SILU = "s = Sigmoid(r) a = Mul(r, s) "
BEHIND = "y = Mul(x, g)"
OLD = {
    "target": "tensorrt==8.6",
    "absent": ("Conv", "ReduceMean", "GlobalAveragePool"),
    "present": ("TrtconvChannelGate",),
}
MISS = {"target": "tensorrt==8.6"}


def block(
    mean="m = ReduceMean<axes=[2,3]>(x) ",
    reduce="r = Conv(m, w, v) ",
    activation=SILU,
    expand="e = Conv(a, b, u) ",
    gate="g = Sigmoid(e) ",
    behind=BEHIND,
):
    return mean + reduce + activation + expand + gate + behind


CASES = [
    Case("of EfficientNet", block(), constants=W, **OLD),
    Case("of RegNet", block(activation="a = Relu(r) "), constants=W, **OLD),
    Case("of MobileNet", block(mean="m = GlobalAveragePool(x) ", activation="a = Relu(r) ", gate="g = HardSigmoid<alpha=0.16666667, beta=0.5>(e) "), constants=W, **OLD),
    Case("without biases", block(reduce="r = Conv<kernel_shape=[1,1]>(m, w) ", expand="e = Conv(a, b) "), constants=W, **OLD),
    Case("the factors in turn", block(activation="s = Sigmoid(r) a = Mul(s, r) "), constants=W, **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("another slope", block(gate="g = HardSigmoid(e) "), constants=W, **MISS),
    Case("the mean of rows", block(mean="m = ReduceMean<axes=[3]>(x) "), constants=W, **MISS),
    Case("the mean is used", block(behind="n = Add(m, g) y = Mul(x, n)"), constants=W, **MISS),
    Case("the hidden values are used", block(behind="n = ReduceMax<axes=[1]>(a) k = Add(n, g) y = Mul(x, k)"), constants=W, **MISS),
    Case("in groups", block(reduce="r = Conv<group=2>(m, w) "), constants=constants((2, 4, 1, 1), (8, 2, 1, 1), (2,), (8,)), skip="all channels", **MISS),
    Case("padded", block(reduce="r = Conv<pads=[1,0,0,0]>(m, w) ", behind="k = ReduceMax<axes=[2,3]>(g) y = Mul(x, k)"), constants=W, skip="all channels", **MISS),
    Case("no activation", block(activation="a = Identity(r) "), constants=W, **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(
    ("precision", "plugins", "means", "gates"),
    [
        ("auto", "TrtconvChannelGate", 1, 1),
        ("fp32", "TrtconvChannelGate", 1, 1),
        ("fp16", "TrtconvChannelGate", 0, 1),
        # Nobody asked for the plugin; and nothing says at which sizes it pays.
        ("fp16", "never", 1, 0),
        ("fp16", "auto", 1, 0),
        ("fp32", "never", 1, 0),
    ],
)
def test_the_plugin_takes_what_pays_in_the_precision(tmp_path, precision, plugins, means, gates):
    model = model_of(CASES[0])
    onnx.save(model, tmp_path / "m.onnx")
    request = RewriteRequest(
        tmp_path / "m.onnx", tmp_path / "r.onnx", target=parse_target("tensorrt==8.6"), space=parse_space(["N=1:2:4 H=8:9:16 W=8:9:16"]),
        precision=precision, plugins=plugins,
    )  # fmt: skip
    result = rewrite_model(request, SilentProgress())
    assert not result.rejected
    ops = [n.op_type for n in onnx.load(tmp_path / "r.onnx").graph.node]
    assert (ops.count("ReduceMean"), ops.count("TrtconvChannelGate")) == (means, gates)
    assert any("plugins auto: " in s.reason for s in result.skipped) == (plugins == "auto")
