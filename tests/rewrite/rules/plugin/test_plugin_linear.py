# ruff: noqa: E501 - the text of a model stands on one line
"""Products with bias, residual and GELU as plugin nodes."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from tests.rewrite.rules.faster.test_patch_products import constants
from trtconv.rewrite.rules.plugin.plugin_linear import RULE

ROWS, OUT = "float[N,5,6] x", "float[N,5,4] y"
W = constants((6, 4), (4,))
SQUARE = constants((6, 6), (6,))
OLD = {"target": "tensorrt==8.6", "opset": 20, "absent": ("MatMul",), "present": ("TrtconvLinear",)}
MISS = {"target": "tensorrt==8.6", "opset": 20}
PRODUCT = "m = MatMul(x, w)"
NODE = "p = trtconv.TrtconvLinear<plugin_version=\"1\", plugin_namespace=\"trtconv\">(x, w, b, b)"
CASES = [
    Case("bare", "y = MatMul(x, w)", ROWS, OUT, constants=W, **OLD),
    Case("with a bias", f"{PRODUCT} y = Add(m, b)", ROWS, OUT, constants=W, **{**OLD, "absent": ("MatMul", "Add")}),
    Case("the bias first", f"{PRODUCT} y = Add(b, m)", ROWS, OUT, constants=W, **{**OLD, "absent": ("MatMul", "Add")}),
    Case("GELU", f"{PRODUCT} a = Add(m, b) y = Gelu(a)", ROWS, OUT, constants=W, **{**OLD, "absent": ("MatMul", "Add", "Gelu")}),
    Case("GELU by the tangent", f'{PRODUCT} a = Add(m, b) y = Gelu<approximate="tanh">(a)', ROWS, OUT, constants=W, **{**OLD, "absent": ("Gelu",)}),
    Case("GELU without a bias", f"{PRODUCT} y = Gelu(m)", ROWS, OUT, constants=W, **{**OLD, "absent": ("MatMul", "Gelu")}),
    Case("a residual", f"{PRODUCT} a = Add(m, b) y = Add(x, a)", ROWS, "float[N,5,6] y", constants=SQUARE, **{**OLD, "absent": ("MatMul", "Add")}),
    Case("a residual behind", f"{PRODUCT} a = Add(m, b) y = Add(a, x)", ROWS, "float[N,5,6] y", constants=SQUARE, **{**OLD, "absent": ("MatMul", "Add")}),
    Case("two products added", "m = MatMul(x, w) a = Add(m, b) n = MatMul(x, v) y = Add(a, n)", ROWS, OUT, constants=constants((6, 4), (4,), (6, 4)), fires=2, **{**OLD, "absent": ("MatMul", "Add")}),
    Case("a residual that broadcasts stays", f"{PRODUCT} a = Add(m, b) y = Add(a, r)", f"{ROWS}, float[1,5,4] r", OUT, constants=W, **{**OLD, "present": ("TrtconvLinear", "Add")}),
    Case("images, channels last", f"{PRODUCT} y = Add(m, b)", "float[N,3,2,6] x", "float[N,3,2,4] y", constants=W, **OLD),
    Case("factors", f"{PRODUCT} a = Add(m, b) y = Mul(a, v)", ROWS, OUT, constants=constants((6, 4), (4,), (4,)), **{**OLD, "absent": ("MatMul", "Add", "Mul")}),
    Case("factors and a residual", f"{PRODUCT} a = Add(m, b) s = Mul(v, a) y = Add(x, s)", ROWS, "float[N,5,6] y", constants=constants((6, 6), (6,), (6,)), **{**OLD, "absent": ("MatMul", "Add", "Mul")}),
    Case("factors too small for half precision stay", f"{PRODUCT} a = Add(m, b) y = Mul(a, t)", ROWS, OUT, constants=W + ", float[4] t = {1e-6, 1e-6, 1e-6, 1e-6}", **{**OLD, "present": ("TrtconvLinear", "Mul")}),
    Case("a factor and a residual that came later", f"{NODE} s = Mul(p, v) y = Add(s, x)", ROWS, "float[N,5,6] y", constants=constants((6, 6), (6,), (6,)), **{**OLD, "absent": ("Add", "Mul")}),
    Case("GELU that came later", f"{NODE} y = Gelu(p)", ROWS, "float[N,5,6] y", constants=SQUARE, **{**OLD, "absent": ("Gelu",)}),
    Case("used twice", f"{PRODUCT} a = Add(m, b) g = Gelu(a) y = Mul(g, a)", ROWS, OUT, constants=W, **{**OLD, "present": ("TrtconvLinear", "Gelu")}),
]  # fmt: skip
NEAR_MISSES = [
    Case("a residual on a residual", f"{NODE} y = Add(p, x)".replace("plugin_version", "added=1, plugin_version").replace("b, b)", "b, x)"), ROWS, "float[N,5,6] y", constants=SQUARE, **MISS),
    Case("no constant", "y = MatMul(x, z)", f"{ROWS}, float[6,4] z", OUT, **MISS),
    Case("a batch of matrices", "y = MatMul(x, w)", ROWS, OUT, constants=constants((1, 6, 4)), **MISS),
    Case("the matrix first", "y = MatMul(w, x)", "float[N,6,5] x", "float[N,4,5] y", constants=constants((4, 6)), **MISS),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_tensorrt_rtx_has_no_plugins():
    from trtconv.core.targets import parse_target

    assert not RULE.needed(parse_target("tensorrt-rtx"))


def test_what_is_computed_of_a_large_weight_is_proved_with_that_weight():
    """Of other constants of over 4 MiB a proof puts random ones in both graphs, of which this rule knows nothing."""

    def with_weight(model):
        weight = np.random.default_rng(0).standard_normal((1100, 1000)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))

    model = model_of(Case("large", "y = MatMul(x, w)", "float[N,1100] x", "float[N,1000] y", edit=with_weight, opset=20))
    record = apply(model, (RULE,), "tensorrt==8.6")
    assert not record.rejected
    assert [n.op_type for n in model.graph.node] == ["TrtconvLinear"]
