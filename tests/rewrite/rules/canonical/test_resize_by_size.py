# ruff: noqa: E501 - the text of a model stands on one line
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.resize_by_size import RULE

C = (
    "int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {3}, int64[1] zero = {0}, int64[1] two = {2}, "
    "int64[1] four = {4}, int64 three = {3}, float f2 = {2.0}"
)
TWO = "float[N,8,H,W] x, float[N,4,P,Q] ref"
SIZES = (
    {"N": 2, "H": 16, "W": 24, "P": 5, "Q": 9},
    {"N": 1, "H": 17, "W": 23, "P": 31, "Q": 33},
    {"N": 3, "H": 7, "W": 9, "P": 14, "Q": 11},
)
PARTS = "hx = Shape(x) h = Gather(hx, i2) w = Gather(hx, i3) nc = Slice(hx, zero, two, zero) "
JOIN = "uh = Unsqueeze(h2, zero) uw = Unsqueeze(w2, zero) s = Concat<axis=0>(nc, uh, uw) "
CASES = [
    Case("twice the size becomes scales", PARTS + "h2 = Mul(h, three) w2 = Mul(three, w) " + JOIN + 'y = Resize<mode="linear">(x, , , s)',
         constants=C, absent=("Concat", "Shape")),
    Case("through float and floor", PARTS + """hf = Cast<to=1>(h) wf = Cast<to=1>(w) hm = Mul(hf, f2) wm = Mul(wf, f2) ho = Floor(hm)
         wo = Floor(wm) h2 = Cast<to=7>(ho) w2 = Cast<to=7>(wo) """ + JOIN + 'y = Resize<mode="nearest">(x, , , s)', constants=C, absent=("Concat",)),
    Case("another tensor's size", """hx = Shape(x) hr = Shape(ref) nc = Slice(hx, zero, two, zero) h2 = Gather(hr, i2) w2 = Gather(hr, i3) """
         + JOIN + 'y = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , , s)', TWO, constants=C, sizes=SIZES, absent=("Unsqueeze", "Slice")),
    Case("sizes for two axes", "hr = Shape<start=2>(ref) y = Resize<mode=\"linear\",axes=[2,3]>(x, , , hr)", TWO, constants=C, opset=18, sizes=SIZES),
    Case("computed sizes for two axes", "hr = Shape<start=2>(ref) k = Div(hr, two) e = Add(k, two) y = Resize<mode=\"linear\",axes=[2,3]>(x, , , e)",
         TWO, constants=C, opset=18, sizes=SIZES),
    Case("scales for two axes", "y = Resize<mode=\"nearest\",axes=[2,3]>(x, , sc)", constants="float[2] sc = {2.0, 3.0}", opset=18),
]  # fmt: skip
NEAR_MISSES = [
    Case("constant scales", 'y = Resize<mode="nearest">(x, , sc)', constants="float[4] sc = {1.0, 1.0, 2.0, 2.0}"),
    Case("half the size is not a constant ratio", PARTS + "h2 = Div(h, i2k) w2 = Div(w, i2k) " + JOIN + 'y = Resize<mode="linear">(x, , , s)',
         constants=C + ", int64 i2k = {2}"),
    Case("sizes picked from shapes already", """hx = Shape(x) nc = Gather(hx, z1) hr = Shape(ref) hw = Gather(hr, z2) s = Concat<axis=0>(nc, hw)
         y = Resize<mode="linear">(x, , , s)""", TWO, constants="int64[2] z1 = {0, 1}, int64[2] z2 = {2, 3}", sizes=SIZES),
    Case("constant sizes", 'y = Resize<mode="linear">(x, , , s)', "float[2,8,H,W] x", constants="int64[4] s = {2, 8, 20, 30}"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
