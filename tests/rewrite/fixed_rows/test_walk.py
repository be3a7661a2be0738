"""What stands behind a selection, at fixed sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.rewrite.fixed_rows.graphs import RTX, Array, assert_same, both, detector_by_class, parsed, selected
from trtconv.core.errors import UnsupportedError
from trtconv.rewrite.fixed_rows.fix import fix_rows

MASKED = "float[T] x, float[T] y, float[T,4] rows"


def masked(body: str, outputs: str, constants: str = "") -> onnx.ModelProto:
    """A graph behind `places`, the indices [1, D] of the elements of x over 0.5, and `index`, the same as [D]."""
    return parsed(f"""g ({MASKED}) => ({outputs}) <float half = {{0.5}}, int64[1] ax0 = {{0}}, int64[1] ax1 = {{1}}
        {constants}> {{
            mask = Greater(x, half)
            places = NonZero(mask)
            index = Squeeze(places, ax0)
            {body}
        }}""")


def values(count: int, seed: int = 0, share: float = 0.5) -> dict[str, Array]:
    """Elements of which about `share` are over 0.5."""
    chance = np.random.default_rng(seed)
    x = np.where(chance.uniform(size=count) < share, 1.0, 0.0).astype(np.float32)
    y, rows = chance.normal(size=count), chance.normal(size=(count, 4))
    return {"x": x, "y": y.astype(np.float32), "rows": rows.astype(np.float32)}


FEEDS = (values(1), values(7, 1), values(12, 2, 0.0), values(12, 3, 1.0), values(30, 4))
BODIES = {
    "rows": ("kept = Gather<axis=0>(rows, index)", "float[D,4] kept", ""),
    "indices": ("kept = Identity(index)", "int64[D] kept", ""),
    "columns": ("kept_ = Gather<axis=0>(rows, index) kept = Transpose<perm=[1,0]>(kept_)", "float[4,D] kept", ""),
    "elementwise": (
        "a = Gather<axis=0>(rows, index) b = Gather<axis=0>(y, index) c = Unsqueeze(b, ax1) kept = Mul(a, c)",
        "float[D,4] kept", "",
    ),
    "gather_nd": ("p = Transpose<perm=[1,0]>(places) kept = GatherND(rows, p)", "float[D,4] kept", ""),
    "compress": ("kept = Compress<axis=0>(rows, mask)", "float[D,4] kept", ""),
    "first_rows": (
        "a = Gather<axis=0>(rows, index) kept = Slice(a, ax0, three, ax0)", "float[D,4] kept", ", int64[1] three = {3}",
    ),
    "columns_cut": (
        "a = Gather<axis=0>(rows, index) kept = Slice(a, ax1, three, ax1)", "float[D,2] kept", ", int64[1] three = {3}",
    ),
    "best": (
        "a = Gather<axis=0>(y, index) n = Shape(a) k = Min(n, three) best, which = TopK(a, k) "
        "kept = Gather<axis=0>(index, which)",
        "float[D] best, int64[D] kept", ", int64[1] three = {3}",
    ),
    "joined": (
        "a = Gather<axis=0>(y, index) less = Less(y, half) q = NonZero(less) r = Squeeze(q, ax0) "
        "b = Gather<axis=0>(y, r) kept = Concat<axis=0>(a, y, b)",
        "float[D] kept", "",
    ),
    "parted": (
        "a = Gather<axis=0>(y, index) less = Less(y, half) q = NonZero(less) r = Squeeze(q, ax0) "
        "b = Gather<axis=0>(y, r) c = Concat<axis=0>(a, b) d = Neg(c) n = Shape(a) m = Shape(b) "
        "sizes = Concat<axis=0>(n, m) kept, others = Split<axis=0>(d, sizes)",
        "float[D] kept, float[E] others", "",
    ),
    "one_part": (
        "a = Gather<axis=0>(rows, index) n = Shape<end=1>(a) kept = Split<axis=0>(a, n)", "float[D,4] kept", "",
    ),
    "products_by_row": (
        "a = Gather<axis=0>(rows, index) b = Unsqueeze(a, ax1) c = Transpose<perm=[0,2,1]>(b) m = MatMul(c, b) "
        "kept = MatMul(m, square)",
        "float[D,4,4] kept", ", float[4,4] square = {1,0,2,0, 0,1,0,3, 1,1,0,0, 0,0,0,2}",
    ),
    "bordered": (
        "a = Gather<axis=0>(rows, index) kept = Pad(a, border)", "float[D,7] kept", ", int64[4] border = {0, 1, 0, 2}",
    ),
    "columns_written": (
        "a = Gather<axis=0>(rows, index) b = Slice(a, ax0, one, ax1) n = Shape(b) "
        "o = ConstantOfShape<value = int64[1] {2}>(n) kept = ScatterElements<axis=1>(a, o, b)",
        "float[D,4] kept", ", int64[1] one = {1}",
    ),
    "selected_again": (
        "a = Gather<axis=0>(y, index) m = Greater(a, zero) q = NonZero(m) r = Squeeze(q, ax0) "
        "kept = Gather<axis=0>(a, r)",
        "float[D] kept", ", float zero = {0}",
    ),
    "flattened": (
        "a = Gather<axis=0>(rows, index) b = Reshape(a, pairs) kept = Reshape(b, all)",
        "float[D] kept", ", int64[2] pairs = {-1, 2}, int64[1] all = {-1}",
    ),
    "largest": (
        "a = Gather<axis=0>(y, index) m = ReduceMax<keepdims=0>(a) s = Add(a, m) z = ReduceSum<keepdims=0>(s) "
        "kept = Add(s, z)",
        "float[D] kept", "",
    ),
    "like": (
        "a = Gather<axis=0>(y, index) n = Shape(a) o = ConstantOfShape<value = float[1] {2.0}>(n) kept = Add(a, o)",
        "float[D] kept", "",
    ),
    "counted": (
        "a = Gather<axis=0>(y, index) n = Shape(a) m = Squeeze(n, ax0) kept = Range(start, m, step)",
        "int64[D] kept", ", int64 start = {0}, int64 step = {1}",
    ),
    "written_back": (
        "a = Gather<axis=0>(y, index) b = Neg(a) p = Transpose<perm=[1,0]>(places) c = ScatterND(y, p, b) "
        "kept = Gather<axis=0>(c, index)",
        "float[D] kept, float[T] c", "",
    ),
    "product": (
        "a = Gather<axis=0>(rows, index) b = MatMul(a, weight) c = Softmax<axis=1>(b) "
        "kept = ArgMax<axis=1,keepdims=0>(c)",
        "int64[D] kept", ", float[4,2] weight = {1,2,3,4,5,6,7,8}",
    ),
    "sampled": (
        "a = Gather<axis=0>(rows, index) b = Slice(a, ax0, two, ax1) c = Reshape(b, grid) d = GridSample(picture, c) "
        "e = Reshape(d, sampled) kept = Transpose<perm=[1,0]>(e)",
        "float[D,1] kept",
        ", int64[1] two = {2}, int64[4] grid = {1,1,-1,2}, int64[2] sampled = {1,-1}, "
        "float[1,1,2,3] picture = {1,2,3,4,5,6}",
    ),
    "columns_joined": (
        "a = Gather<axis=0>(rows, index) b = Gather<axis=0>(y, index) c = Unsqueeze(b, ax1) "
        "kept = Concat<axis=1>(a, c)",
        "float[D,5] kept", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_equals_the_original(name: str) -> None:
    body, outputs, constants = BODIES[name]
    feeds = [f for f in FEEDS if name != "largest" or f["x"].any()]
    for most in (4, 60):
        _, pairs = both(masked(body, outputs, constants), most, *feeds)
        assert_same(pairs)


def test_mask_of_two_axes() -> None:
    model = parsed("""g (float[A,B] x) => (int64[2,D] places, float[D] kept) <float zero = {0}> {
        mask = Greater(x, zero)
        places = NonZero(mask)
        p = Transpose<perm=[1,0]>(places)
        kept = GatherND(x, p)
    }""")
    chance = np.random.default_rng(0)
    feeds = [{"x": chance.normal(size=s).astype(np.float32)} for s in ((3, 4), (1, 9), (6, 2))]
    record, pairs = both(model, 40, *feeds)
    assert_same(pairs)
    assert {(o.output, o.axis, o.rows, o.count) for o in record.outputs} == {
        ("places", 1, 40, "num_detections"), ("kept", 0, 40, "num_detections"),
    }  # fmt: skip


def test_two_selections_have_two_counts() -> None:
    model = masked(
        "a = Gather<axis=0>(y, index) m = Less(x, half) q = NonZero(m) r = Squeeze(q, ax0) b = Gather<axis=0>(y, r)",
        "float[D] a, float[E] b",
    )
    record, pairs = both(model, 9, *FEEDS)
    assert [o.count for o in record.outputs] == ["a_count", "b_count"]
    assert_same(pairs)


def test_detector_with_suppression_by_class() -> None:
    model = detector_by_class()
    feeds = []
    for seed, count in enumerate((5, 12, 40)):
        feed = selected(1, 3, count, seed)
        corners = np.sort(feed["boxes"].reshape(-1, 2, 2), axis=1).reshape(-1, 4)
        feeds.append({"boxes": corners + 10, "scores": feed["scores"][0].T.copy()})
    record, pairs = both(model, 100, *feeds)
    assert {o.rows for o in record.outputs} == {6}
    assert_same(pairs)


EMPTY = "then_branch = no () => (float[E] none) {{ none = Constant<value = float[0] {{}}>() }}"
SOME = """{branch} = some () => (float[F] part) {{
    first = Constant<value = int64 {{0}}>() axes = Constant<value = int64[1] {{0}}>() at = Unsqueeze(first, axes)
    m = ReduceMax<keepdims=0>(a) s = Add(a, m) part = Slice(s, at, three, at)
}}"""
COUNTS = {
    "elements": ("n = Shape(b) e = ReduceProd<keepdims=0>(n) c = Equal(e, ax_)", "then", "else"),
    "elements_cast": ("e = Size(b) q = Equal(e, ax_) i = Cast<to=6>(q) c = Cast<to=9>(i)", "then", "else"),
    "rows": ("n = Shape(b) e = Gather<axis=0>(n, ax_) c = Greater(e, ax_)", "else", "then"),
    "not": ("n = Shape(b) e = Gather<axis=0>(n, ax_) q = Equal(e, ax_) c = Not(q)", "else", "then"),
}


def guarded(counted: str, empty: str, some: str, condition_of: str = "a") -> onnx.ModelProto:
    """A part that a graph leaves out where there are no rows, as torchvision does before its suppression."""
    branches = f"{EMPTY}, {SOME}".format(branch=f"{some}_branch").replace("then_branch = no", f"{empty}_branch = no")
    body = f"a = Gather<axis=0>(y, index) b = Identity({condition_of}) {counted} kept = If (c) <{branches}>"
    return masked(body, "float[D] kept", ", int64[1] three = {3}, int64 ax_ = {0}")


@pytest.mark.parametrize("name", COUNTS)
def test_a_part_that_is_left_out_for_no_rows(name: str) -> None:
    model = guarded(*COUNTS[name])
    record, pairs = both(model, 9, *FEEDS)
    assert_same(pairs)
    assert not any(n.op_type == "If" for n in fix_rows(model, RTX, 9).model.graph.node)
    assert record.outputs[0].output == "kept"


@pytest.mark.parametrize(
    ("counted", "condition_of"),
    [
        ("n = Shape(b) e = ReduceProd<keepdims=0>(n) c = Equal(e, ax_)", "y"),  # other rows
        ("e = Size(b) o = Constant<value = int64 {1}>() c = Equal(e, o)", "a"),  # another number
    ],
)
def test_a_condition_on_other_rows_stays(counted: str, condition_of: str) -> None:
    with pytest.raises(UnsupportedError):
        fix_rows(guarded(counted, "then", "else", condition_of), RTX, 9)


REFUSED = {
    "single_row": ("a = Gather<axis=0>(y, index) kept = Gather<axis=0>(a, ax0)", "float[1] kept", "picks single rows"),
    "mean": ("a = Gather<axis=0>(y, index) kept = ReduceMean<keepdims=0>(a)", "float kept", "reduces over the rows"),
    "count": ("kept = Shape(index)", "int64[1] kept", "gives the number of rows"),
    "count_used": (
        "n = Shape(index) f = Cast<to=1>(n) kept = Add(y, f)", "float[T] kept", "computes with the number of rows",
    ),
    "rows_summed": (
        "a = Gather<axis=0>(rows, index) b = Transpose<perm=[1,0]>(a) kept = MatMul(b, a)",
        "float[4,4] kept",
        "sums over",
    ),
    "rows_bordered": ("a = Gather<axis=0>(y, index) kept = Pad(a, one_more)", "float[E] kept", "pads the rows"),
    "unknown": ("a = Gather<axis=0>(y, index) kept = CumSum(a, z)", "float[D] kept", "takes rows whose number"),
    "last_rows": (
        "a = Gather<axis=0>(y, index) kept = Slice(a, three, end, ax0)", "float[D] kept", "other than the first rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_named(name: str) -> None:
    body, outputs, why = REFUSED[name]
    constants = ", int64 z = {0}, int64[1] three = {-3}, int64[1] end = {100}, int64[2] one_more = {0, 1}"
    with pytest.raises(UnsupportedError, match=why) as error:
        both(masked(body, outputs, constants), 10, FEEDS[0])
    assert "--nms native" in str(error.value.hint)
