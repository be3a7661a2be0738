# ruff: noqa: E501 - the text of a model stands on one line
"""Nodes of trtconv's plugins: made when asked for, taken apart when not."""

import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite.room import select_rules
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.rules.canonical import adaptive_pool, l2norm
from trtconv.rewrite.rules.plugin import plugin_instance_norm, plugin_l2norm, plugin_reflection_pad

T = "tensorrt==10"
C = "int64[1] axis = {1}, float eps = {1e-10}, float big = {1e-3}, float[1,8,1,1] w = {1,2,3,4,5,6,7,8}, float two = {2.0}"
NORM = "q = Mul(x, x) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) v = Div(x, d) "
MADE = {"present": ("TrtconvL2Norm",), "absent": ("Div", "Sqrt", "ReduceSum"), "target": T, "constants": C}
B = "float[8] s = {1,2,3,4,5,6,7,8}, float[8] b = {1,0,2,0,-1,0,3,1}"
CASES = [
    (plugin_l2norm.RULE, Case("with a scale", NORM + "y = Mul(w, v)", **MADE)),
    (plugin_l2norm.RULE, Case("a number as scale", NORM + "y = Mul(v, two)", **MADE)),
    (plugin_l2norm.RULE, Case("no scale", "q = Mul(x, x) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) y = Div(x, d)", **MADE)),
    (plugin_l2norm.RULE, Case("inside", "q = Mul(x, x) s = ReduceSum(q, axis) e = Add(s, big) n = Sqrt(e) y = Div(x, n)", **MADE)),
    (plugin_l2norm.RULE, Case("clamped inside", "q = Mul(x, x) s = ReduceSum(q, axis) e = Max(s, big) n = Sqrt(e) y = Div(x, n)", **MADE)),
    (plugin_instance_norm.RULE, Case("with Relu", "n = InstanceNormalization(x, s, b) y = Relu(n)", constants=B, target=T, present=("TrtconvInstanceNorm",), absent=("Relu",))),
    (plugin_instance_norm.RULE, Case("Relu of a shared value", "n = InstanceNormalization(x, s, b) r = Relu(n) y = Add(r, n)", constants=B, target=T, present=("TrtconvInstanceNorm", "Relu"))),
    (plugin_reflection_pad.RULE, Case("four sides", 'y = Pad<mode="reflect">(x, p)', constants="int64[8] p = {0,0,1,2,0,0,3,4}", target=T, absent=("Pad",))),
    (adaptive_pool.RULE, Case("average", "y = trtconv.TrtconvAdaptivePool<output_size=[7,3],mode=0>(x)", absent=("TrtconvAdaptivePool",), opset=18)),
    (adaptive_pool.RULE, Case("maximum", "y = trtconv.TrtconvAdaptivePool<output_size=[2,5],mode=1>(x)", absent=("TrtconvAdaptivePool",))),
    (adaptive_pool.RULE, Case("one row", "y = trtconv.TrtconvAdaptivePool<output_size=[1,4],mode=0>(x)", absent=("TrtconvAdaptivePool",))),
]  # fmt: skip
NEAR_MISSES = [
    (plugin_l2norm.RULE, Case("two axes", "n = ReduceL2<axes=[2,3]>(x) d = Add(n, eps) y = Div(x, d)", constants=C, target=T, skip="one axis")),
    (plugin_l2norm.RULE, Case("another value", "z = Relu(x) n = ReduceL2<axes=[1]>(x) y = Div(z, n)", constants=C, target=T)),
    (plugin_reflection_pad.RULE, Case("channels too", 'y = Pad<mode="reflect">(x, p)', constants="int64[8] p = {0,1,1,2,0,0,3,4}", target=T, skip="last two")),
    (plugin_reflection_pad.RULE, Case("edge", 'y = Pad<mode="edge">(x, p)', constants="int64[8] p = {0,0,1,2,0,0,3,4}", target=T)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "case"), CASES, ids=lambda v: getattr(v, "name", str(v)))
def test_fires(rule, case):
    check_case(rule, case)


@pytest.mark.parametrize(("rule", "case"), NEAR_MISSES, ids=lambda v: getattr(v, "name", str(v)))
def test_near_miss(rule, case):
    check_near_miss(rule, case)


def test_a_half_norm_becomes_one_node_too():
    case = Case(
        "half",
        "n = ReduceL2<axes=[1]>(x) d = Max(n, e) v = Div(x, d) y = Mul(v, w)",
        "float16[N,8,H,W] x, float16[1] e, float16[1,8,1,1] w",
        "float16[a,b,c,d] y",
    )

    def constants(model):
        import numpy as np
        from onnx import numpy_helper

        del model.graph.input[1:]
        model.graph.initializer.append(numpy_helper.from_array(np.array(1e-3, np.float16), "e"))
        model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 8, 1, 1), np.float16), "w"))

    model = model_of(case)
    constants(model)
    record = apply(model, (l2norm.RULE, plugin_l2norm.RULE), T)
    assert [e.rule for e in record.entries] == ["l2norm", "plugin-l2norm"], record.rejected
    assert [n.op_type for n in model.graph.node] == ["TrtconvL2Norm"]


def names(plugins, target=T):
    from pathlib import Path

    request = RewriteRequest(Path("a.onnx"), Path("b.onnx"), parse_target(target), plugins=plugins)
    return {r.name for r in select_rules(RULES, request)}


def test_plugins_are_used_only_when_asked_for():
    assert not {n for n in names("never") if n.startswith("plugin-")}
    assert "adaptive-pool" in names("never")
    assert "adaptive-pool" in names("auto"), "the measurements decide, node by node"
    assert "adaptive-pool" not in names("TrtconvAdaptivePool")
    assert {"plugin-l2norm", "plugin-instance-norm", "plugin-reflection-pad"} <= names("auto")
    assert {n for n in names("TrtconvL2Norm") if n.startswith("plugin-")} == {"plugin-l2norm"}
    assert not {n for n in names("auto", "tensorrt-rtx") if n.startswith("plugin-")}


def test_an_unknown_plugin_has_a_suggestion():
    with pytest.raises(InvalidRequestError, match="TrtconvL2Norm"):
        names("TrtconvL2Nrm")


def test_a_plugin_for_a_target_without_plugins_is_refused():
    with pytest.raises(InvalidRequestError, match="no plugins"):
        names("TrtconvL2Norm", "tensorrt-rtx")
