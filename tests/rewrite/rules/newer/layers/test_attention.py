"""Attention in FP32."""

import numpy as np
import onnx
import pytest
from onnx.inliner import inline_selected_functions

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, skip_newer
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.rewrite.rules.newer.layers.attention import RULE

CASES = [
    Case(
        "four axes",
        "y = Attention(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=23,
        absent=("Attention",),
    ),
    Case(
        "causal",
        "y = Attention<is_causal=1>(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=23,
        absent=("Attention",),
    ),
    Case(
        "scale and mask",
        "y = Attention<scale=0.3>(q, k, v, m)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v, float[H,W] m",
        opset=23,
        absent=("Attention",),
    ),
    Case(
        "boolean mask",
        "y = Attention(q, k, v, m)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v, bool[N,1,H,W] m",
        opset=23,
        absent=("Attention",),
        edit=None,
    ),
    Case(
        "heads in the last axis",
        "y = Attention<q_num_heads=4,kv_num_heads=2>(q, k, v)",
        "float[N,H,32] q, float[N,W,16] k, float[N,W,16] v",
        "float[a,b,c] y",
        opset=23,
        absent=("Attention",),
    ),
]
PAST = ", float[N,4,T,8] pk, float[N,4,T,8] pv"
OWN = "float[N,4,H,8] q, float[N,4,H,8] k, float[N,4,H,8] v"
ALL = "float[a,b,c,d] y, float[e,f,g,h] nk, float[i,j,l,m] nv"
SIZES = ({"N": 1, "H": 1, "T": 1}, {"N": 2, "H": 3, "T": 5}, {"N": 2, "H": 1, "T": 4})
CASES += [
    Case(f"a cache, causal {causal}", f"y, nk, nv = Attention<is_causal={causal}>(q, k, v, , pk, pv)", OWN + PAST, ALL,
         opset=23, absent=("Attention",), sizes=SIZES)
    for causal in (0, 1)
] + [
    Case("a cache of fewer heads", "y, nk, nv = Attention<q_num_heads=4,kv_num_heads=2>(q, k, v, , pk, pv)",
         "float[N,H,32] q, float[N,H,16] k, float[N,H,16] v, float[N,2,T,8] pk, float[N,2,T,8] pv",
         "float[a,b,c] y, float[e,f,g,h] nk, float[i,j,l,m] nv", opset=23, absent=("Attention",), sizes=SIZES),
    Case("a cache that nobody reads", "y, nk, nv = Attention(q, k, v, , pk, pv)", OWN + PAST, opset=23,
         absent=("Attention",), sizes=SIZES),
    Case("the present without a past", "y, nk = Attention(q, k, v)", OWN, "float[a,b,c,d] y, float[e,f,g,h] nk",
         opset=23, absent=("Attention",)),
    Case("half precision with a cache", "y, nk, nv = Attention(q, k, v, , pk, pv)",
         (OWN + PAST).replace("float[", "float16["), ALL.replace("float[", "float16["), opset=23, absent=("Attention",),
         sizes=SIZES, target="tensorrt==11"),
]  # fmt: skip
NEAR_MISSES = [
    Case(
        "half precision has a kernel",
        "y = Attention(q, k, v)",
        "float16[N,4,H,8] q, float16[N,4,W,8] k, float16[N,4,W,8] v",
        "float16[a,b,c,d] y",
        opset=23,
    ),
    Case(
        "scores are given",
        "y, a, c, z = Attention(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        "float[a,b,c,d] y, float[a,b,c,e] z",
        opset=23,
        skip="its scores",
    ),
    Case(
        "lengths of the cache and a causal mask",
        "y = Attention<is_causal=1>(q, k, v, , , , n)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v, int64[N] n",
        opset=24,
        skip="counts from the lengths",
    ),
    Case(
        "a window",
        "y = Attention<is_causal=1, left_window_size=2>(q, k, v)",
        "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v",
        opset=25,
        skip="window",
    ),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


QKV = "float[N,4,H,8] q, float[N,4,W,8] k, float[N,4,W,8] v"


def _mask(kind):
    """[5, 7]: the second row attends to nothing, the last to one place."""
    mask = np.random.default_rng(0).integers(0, 2, (5, 7)).astype(bool)
    mask[:, 2], mask[1], mask[4] = True, False, np.arange(7) == 6
    return mask if kind == "bool" else np.where(mask, 0.25, -np.inf).astype(np.float32)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_a_row_that_is_masked_whole_is_zero(kind, causal, scale):
    case = Case(
        "rows",
        f"y = Attention<is_causal={causal}>(q, k, v, m)",
        f"{QKV}, {kind}[H,W] m",
        opset=23,
        absent=("Attention",),
    )
    random = np.random.default_rng(1)
    feed = {n: (scale * random.standard_normal((2, 4, s, 8))).astype(np.float32) for n, s in (("q", 5), ("k", 7))}
    feed.update(v=random.standard_normal((2, 4, 7, 8)).astype(np.float32), m=_mask(kind))
    before, after = (OnnxRuntimeRunner(m.SerializeToString()) for m in (model_of(case), check_case(RULE, case)))
    actual = after(feed)["y"]
    assert not actual[:, :, 1].any()
    # With a causal mask the last row has nothing left either.
    assert bool(actual[:, :, 4].any()) is not bool(causal)
    np.testing.assert_allclose(actual, before(feed)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_infinities_do_what_the_definition_of_the_op_says(where, kind, value):
    """ONNX Runtime masks by the lowest finite number, and attends to what is masked where the rest is -inf."""
    case = Case("inf", "y = Attention(q, k, v, m)", f"{QKV}, {kind}[H,W] m", opset=23, absent=("Attention",))
    defined = inline_selected_functions(model_of(case), [("", "Attention")], inline_schema_functions=True)
    before, after = (OnnxRuntimeRunner(m.SerializeToString()) for m in (defined, check_case(RULE, case)))
    random = np.random.default_rng(2)
    shapes = {"q": (1, 4, 5, 8), "k": (1, 4, 7, 8), "v": (1, 4, 7, 8)}
    feed = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    # The last row attends to the last place alone.
    feed[where][:, :, -1, 3], feed["m"] = value, _mask(kind)
    np.testing.assert_allclose(after(feed)["y"], before(feed)["y"], rtol=1e-4, atol=1e-4)


def test_masked_places_stay_masked_beside_large_scores_in_half_precision():
    """-1e4 instead of minus infinity is less than what scores of half precision differ by."""
    inputs = QKV.replace("float[", "float16[") + ", bool[H,W] m"
    case = Case("half", "y = Attention(q, k, v, m)", inputs, "float16[a,b,c,d] y", opset=23, target="tensorrt==10")
    q, k = np.full((1, 4, 2, 8), 20.0), np.full((1, 4, 3, 8), -100.0)
    k[:, :, 2] *= -1.0
    v = np.broadcast_to(np.arange(3.0)[:, None], (1, 4, 3, 8))
    feed = {n: a.astype(np.float16) for n, a in (("q", q), ("k", k), ("v", v))}
    feed["m"] = np.array([[True, True, False]] * 2)
    skip_newer(case)
    model = model_of(case)
    assert len(apply(model, (RULE,), case.target).entries) == 1
    actual = OnnxRuntimeRunner(model.SerializeToString())(feed)["y"]
    np.testing.assert_array_equal(actual, np.full((1, 4, 2, 8), 0.5, np.float16))


WITH_AND_WITHOUT = [([[0.0, -np.inf], [0.0, 1.0]], False), ([[0.0, 1.0], [-np.inf] * 2], True)]


@pytest.mark.parametrize(("rows", "guarded"), WITH_AND_WITHOUT)
def test_a_constant_mask_is_looked_at(rows, guarded):
    """Where no row is masked whole there is nothing to guard, and the plain form fuses."""

    def with_mask(model):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(rows, np.float32), "m"))

    case = Case(
        "constant",
        "y = Attention(q, k, v, m)",
        "float[N,4,2,8] q, float[N,4,2,8] k, float[N,4,2,8] v",
        opset=23,
        absent=("Attention",),
        edit=with_mask,
        sizes=({"N": 1}, {"N": 3}, {"N": 4}),
    )
    ops = [n.op_type for n in check_case(RULE, case).graph.node]
    assert ("Equal" in ops) is guarded


@pytest.mark.parametrize("lengths", [[3, 7], [1, 1], [7, 2]])
def test_keys_behind_the_length_of_the_cache_are_left_out(lengths):
    case = Case("lengths", "y = Attention(q, k, v, , , , n)", f"{QKV}, int64[N] n", opset=24, absent=("Attention",))
    skip_newer(case)
    model = model_of(case)
    before = OnnxRuntimeRunner(model.SerializeToString())
    assert len(apply(model, (RULE,), case.target).entries) == 1
    random = np.random.default_rng(3)
    feed = {n: random.standard_normal((2, 4, s, 8)).astype(np.float32) for n, s in (("q", 5), ("k", 7), ("v", 7))}
    feed["n"] = np.array(lengths)
    actual = OnnxRuntimeRunner(model.SerializeToString())(feed)["y"]
    np.testing.assert_allclose(actual, before(feed)["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
