# ruff: noqa: E501 - the text of a model stands on one line
"""Gates of squeeze and excitation behind native means as plugin nodes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from tests.rewrite.rules.plugin.test_plugin_channel_gate import SILU, W, block
from trtconv.rewrite.rules.plugin.plugin_channel_gate_of_means import RULE

BATCHES = ({"N": 2}, {"N": 1}, {"N": 3})
OLD = {"target": "tensorrt==8.6", "absent": ("Conv",), "present": ("TrtconvChannelGate",)}
RELU = "a = Relu(r) "
HARD = "g = HardSigmoid<alpha=0.16666667, beta=0.5>(e) "
HALVES = "".join(f"h{name} = Cast<to=10>({name}) " for name in "xwvbu")
MEAN = "m = GlobalAveragePool(x) "

CASES = [
    Case("of EfficientNet", block(), constants=W, **{**OLD, "present": ("ReduceMean", "TrtconvChannelGate")}),
    Case("of MobileNet", block(mean=MEAN, activation=RELU, gate=HARD), constants=W, **{**OLD, "present": ("GlobalAveragePool", "TrtconvChannelGate")}),
    Case("a large plane", block(), inputs="float[N,8,56,64] x", sizes=BATCHES, constants=W, **{**OLD, "present": ("AveragePool", "GlobalAveragePool", "TrtconvChannelGate"), "absent": ("ReduceMean",)}),
    Case("a plane of no whole windows", block(), inputs="float[N,8,56,60] x", sizes=BATCHES, constants=W, **{**OLD, "present": ("ReduceMean",), "absent": ("AveragePool",)}),
    Case("a flat plane", block(), inputs="float[N,8,8,512] x", sizes=BATCHES, constants=W, **{**OLD, "present": ("ReduceMean",), "absent": ("AveragePool",)}),
]  # fmt: skip
NEAR_MISSES = [
    Case("the mean of rows", block(mean="m = ReduceMean<axes=[3]>(x) "), constants=W, target="tensorrt==8.6"),
    Case("no activation", block(activation="a = Identity(r) "), constants=W, target="tensorrt==8.6"),
    Case("in half", HALVES + block("m = ReduceMean<axes=[2,3]>(hx) ", "r = Conv(m, hw, hv) ", SILU, "e = Conv(a, hb, hu) ", behind="k = Mul(hx, g) y = Cast<to=1>(k)"), constants=W, skip="not in FP32", target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
