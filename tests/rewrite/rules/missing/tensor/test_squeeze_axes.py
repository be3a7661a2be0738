# ruff: noqa: E501 - the text of a model stands on one line
"""Squeeze without axes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.missing.tensor.squeeze_axes import RULE

EIGHT = "tensorrt==8.6"


def recorded(space):
    def edit(model):
        model.metadata_props.add(key=SPACE_KEY, value=space)

    return edit


FROM_TWO = recorded("N=2:2:5 H=16:17:40")
SIZES = ({"N": 2, "H": 16}, {"N": 3, "H": 17}, {"N": 5, "H": 31})
CASES = [
    Case("one axis", "y = Squeeze(x)", "float[5,1,7,3] x", "float[a,b,c] y"),
    Case("two axes, opset 11", "y = Squeeze(x)", "float[5,1,7,1] x", "float[a,b] y", opset=11),
    Case("dims that are never 1", "y = Squeeze(x)", "float[N,1,H,1] x", "float[a,b] y", edit=FROM_TWO, sizes=SIZES),
    Case("dims that are never 1, 8.6", "y = Squeeze(x)", "float[N,1,H] x", "float[a,b] y", edit=FROM_TWO, sizes=SIZES, target=EIGHT),
    Case("a dim that is always 1", "y = Squeeze(x)", "float[K,1,H] x", "float[a] y", edit=recorded("K=1:1:1 H=2:9:17"),
         sizes=({"K": 1, "H": 16}, {"K": 1, "H": 17}, {"K": 1, "H": 2})),
    Case("nothing to take away", "y = Squeeze(x)", "float[N,3,H] x", "float[a,b,c] y", edit=FROM_TWO, sizes=SIZES),
    Case("a size out of a shape, 8.6", "s = Shape(x) g = Slice(s, one, two) q = Squeeze(g) y = Cast<to=1>(q)", outputs="float y",
         constants="int64[1] one = {1}, int64[1] two = {2}", target=EIGHT),
]  # fmt: skip
NEAR_MISSES = [
    Case("a size out of a shape", "s = Shape<start=2,end=3>(x) q = Squeeze(s) y = Cast<to=1>(q)", outputs="float y"),
    Case("a dim without a range", "y = Squeeze(x)", "float[N,1,7,3] x", "float[a,b,c] y", skip="depends"),
    Case("a dim that is 1 at some sizes", "y = Squeeze(x)", "float[N,1,H] x", "float[a,b] y", edit=recorded("N=1:2:5 H=16:17:40"), skip="one axis less"),
    Case("axes given", "y = Squeeze(x, a)", "float[N,1,7,3] x", "float[a,b,c] y", constants="int64[1] a = {1}"),
    Case("nothing of size 1", "y = Squeeze(x)", "float[5,7,3] x", "float[a,b,c] y"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
