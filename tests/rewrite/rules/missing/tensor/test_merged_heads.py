"""A sum with 0 behind the heads of attention, for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.missing.tensor.merged_heads import RULE

SIZES = ({"N": 2, "T": 3}, {"N": 1, "T": 5}, {"N": 3, "T": 4})
# x[N, T, 4] as two heads of two, which attend to each other without scores.
HEADS = (
    "r = Reshape(x, s) h = Transpose<perm=[0,2,1,3]>(r) k = Transpose<perm=[0,2,3,1]>(r) p = MatMul(h, k) "
    "o = MatMul(p, h) t = Transpose<perm={perm}>(o) m = Reshape(t, f) y = MatMul({product})"
)
CONSTANTS = "int64[4] s = {0,-1,2,2}, int64[3] f = {0,-1,4}, float[4,4] w = {" + ",".join("1" * 16) + "}"


def case(name, perm="[0,2,1,3]", product="m, w", inputs="float[N,T,4] x", **more):
    options = {"target": "tensorrt==8.6", "sizes": SIZES, "constants": CONSTANTS, "inputs": inputs}
    options |= {"outputs": "float[a,b,c] y"}
    return Case(name, HEADS.format(perm=perm, product=product), **{**options, **more})


def test_case():
    check_case(RULE, case("both move"))


MISSES = [
    case("a batch of two", inputs="float[2,T,4] x", sizes=({"T": 3}, {"T": 5}, {"T": 4}), skip="does not move"),
    case("an image", inputs="float[N,6,4] x", sizes=({"N": 1}, {"N": 2}, {"N": 3}), skip="fixed number of tokens"),
    case("another order", perm="[0,1,2,3]"),
    case("a product with itself", product="m, q", constants=CONSTANTS, inputs="float[N,T,4] x, float[4,4] q"),
]


@pytest.mark.parametrize("case", MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_later_versions_need_it_not():
    assert RULE.needed(parse_target("tensorrt==8.6"))
    assert not RULE.needed(parse_target("tensorrt==10"))
