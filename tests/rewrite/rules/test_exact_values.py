"""Values that no random sample has: infinities, underflow, positions half-way between two pixels."""

import numpy as np
import pytest

from tests.rewrite.harness import Case, apply, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.canonical.adaptive_pool import RULE as ADAPTIVE_POOL
from trtconv.rewrite.rules.canonical.l2norm import RULE as L2NORM
from trtconv.rewrite.rules.missing.resizing.resize_nearest import RULE as RESIZE_NEAREST
from trtconv.rewrite.rules.missing.spatial.pool_indices import RULE as POOL_INDICES
from trtconv.rewrite.rules.missing.tensor.scatter_elements import RULE as SCATTER_ELEMENTS
from trtconv.rewrite.rules.missing.tensor.scatter_nd import RULE as SCATTER_ND
from trtconv.rewrite.rules.newer.layers.attention import RULE as ATTENTION

INF = np.inf


def recorded(model):
    model.metadata_props.add(key=SPACE_KEY, value="H=6:8:10 W=3:5:9")


def both(rule, case, *, proof=True):
    """Runners of the model before and after the rule."""
    before, after = model_of(case), model_of(case)
    record = apply(after, (rule,), case.target, proof=proof)
    assert [e.rule for e in record.entries] == [rule.name], (record.rejected, record.skipped)
    return runner(before), runner(after)


def scatter(rule, how, inputs, indices):
    op = "ScatterND" if rule is SCATTER_ND else "ScatterElements"
    return both(rule, Case(how, f'y = {op}<reduction="{how}">(x, i, u)', inputs, "float[a,b] y", opset=18,
                           ranges={"i": indices}, edit=recorded))  # fmt: skip


@pytest.mark.parametrize("how", ["add", "max", "min"])
@pytest.mark.parametrize("values", [(-INF,), (INF,), (-INF, INF), (-INF, -INF, 1.0)])
def test_an_infinite_update_reaches_its_own_row_alone(how, values):
    before, after = scatter(SCATTER_ND, how, "float[H,3] x, int64[W,1] i, float[W,3] u", (0, 5))
    feed = {"x": np.zeros((8, 3), np.float32), "i": np.arange(5).reshape(5, 1) % 3, "u": np.ones((5, 3), np.float32)}
    feed["u"][: len(values), 0] = values
    for start in (0.0, -INF):
        feed["x"][:, 1] = start
        np.testing.assert_array_equal(after(feed)["y"], before(feed)["y"])


def test_not_a_number_reaches_its_own_row_alone():
    before, after = scatter(SCATTER_ND, "add", "float[H,3] x, int64[W,1] i, float[W,3] u", (0, 5))
    updates = np.ones((5, 3), np.float32)
    updates[0, 0] = np.nan
    feed = {"x": np.zeros((8, 3), np.float32), "i": np.arange(5).reshape(5, 1), "u": updates}
    np.testing.assert_array_equal(after(feed)["y"], before(feed)["y"])


@pytest.mark.parametrize(("how", "worst"), [("max", -INF), ("min", INF)])
def test_scattered_elements_keep_an_infinity_that_nothing_beats(how, worst):
    before, after = scatter(SCATTER_ELEMENTS, how, "float[H,3] x, int64[W,3] i, float[W,3] u", (0, 5))
    feed = {"x": np.full((8, 3), worst, np.float32), "i": np.zeros((5, 3), np.int64)}
    feed["u"] = np.full((5, 3), worst, np.float32)
    np.testing.assert_array_equal(after(feed)["y"], before(feed)["y"])


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("value", [-INF, INF])
def test_an_infinity_stays_in_its_bins(mode, value):
    case = Case(
        "pool", f"y = trtconv.TrtconvAdaptivePool<output_size=[3,2], mode={mode}>(x)", "float[1,2,H,W] x", edit=recorded
    )
    _, after = both(ADAPTIVE_POOL, case)
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 6)).astype(np.float32)
    x[0, 0, 0, 0] = value
    pooled = after({"x": x})["y"]
    blocks = x.reshape(1, 2, 3, 3, 2, 3)
    want = blocks.max((3, 5)) if mode else blocks.mean((3, 5))
    np.testing.assert_allclose(pooled, want, rtol=1e-5, atol=1e-6)


def test_the_index_of_a_window_of_minus_infinity_is_no_padding():
    case = Case(
        "pool",
        "y, i = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)",
        "float[1,2,H,W] x",
        "float[a,b,c,d] y, int64[a,b,c,d] i",
    )
    before, after = both(POOL_INDICES, case)
    x = np.full((1, 2, 4, 5), -INF, np.float32)
    for _ in range(2):
        want, result = before({"x": x}), after({"x": x})
        np.testing.assert_array_equal(result["i"], want["i"])
        # ONNX Runtime's MaxPool without indices starts from the lowest finite number.
        low = np.finfo(np.float32).min
        np.testing.assert_array_equal(np.maximum(result["y"], low), np.maximum(want["y"], low))
        x[0, 0, 3, 3] = 1.0


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-20, 1e-15, 1.0, 1e15])
def test_a_norm_that_underflows_gives_zero(size):
    before, after = both(L2NORM, Case("lp", "y = LpNormalization<axis=1>(x)", "float[H,W] x", "float[a,b] y"))
    feed = {"x": np.full((6, 5), size, np.float32)}
    np.testing.assert_allclose(after(feed)["y"], before(feed)["y"], rtol=1e-6)


@pytest.mark.parametrize("how", ["round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("mode", ["asymmetric", "pytorch_half_pixel"])
def test_pixels_half_way_are_the_same_at_every_pair_of_sizes(mode, how):
    attributes = f'mode="nearest", coordinate_transformation_mode="{mode}", nearest_mode="{how}"'
    case = Case("resize", f"y = Resize<{attributes}>(x, , , s)", "float[1,1,1,W] x, int64[4] s", target="tensorrt==8.6")
    # The proof draws random sizes, of which it cannot know that the first two have to be those of x.
    before, after = both(RESIZE_NEAREST, case, proof=False)
    wrong = []
    for size in range(1, 41):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        for out in range(1, 61):
            feed = {"x": x, "s": np.array([1, 1, 1, out], np.int64)}
            if not np.array_equal(before(feed)["y"], after(feed)["y"]):
                wrong.append((size, out))
    assert wrong == []


def test_a_negative_scale_is_a_reason_and_no_error():
    case = Case("attention", "y = Attention<scale=-1.0>(x, x, x)", "float[1,2,H,4] x", opset=23)
    model = model_of(case)
    record = apply(model, (ATTENTION,), "tensorrt==10.9")
    assert not record.entries
    assert "negative scale" in record.skipped[0].reason
