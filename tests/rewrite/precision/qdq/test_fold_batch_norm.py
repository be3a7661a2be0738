# ruff: noqa: E501 - the text of a model stands on one line
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.precision.qdq.fold_batch_norm import RULE

C4 = "float[4] s = {1.5, -0.5, 2.0, 0.1}, float[4] b = {0.1, 0.2, 0.3, 0.4}, float[4] m = {0.0, 1.0, -1.0, 0.5}, float[4] v = {1.0, 4.0, 0.25, 2.0}"
WEIGHTS = ", float[4,8,1,1] w = {" + ", ".join(str((i * 7 % 13 - 6) / 8) for i in range(32)) + "}"
TRANSPOSED = ", float[8,2,1,1] w = {" + ", ".join(str((i * 5 % 11 - 5) / 8) for i in range(16)) + "}"
NORM = "y = BatchNormalization(h, s, b, m, v)"
CASES = [
    Case("no bias", f"h = Conv(x, w) {NORM}", constants=C4 + WEIGHTS, absent=("BatchNormalization",)),
    Case("bias and stride", f"h = Conv<strides=[2,2]>(x, w, b) {NORM}", constants=C4 + WEIGHTS, absent=("BatchNormalization",)),
    Case("transposed, two groups", f"h = ConvTranspose<group=2>(x, w, b) {NORM}", constants=C4 + TRANSPOSED, absent=("BatchNormalization",)),
    Case("another epsilon", "h = Conv(x, w) y = BatchNormalization<epsilon=0.5>(h, s, b, m, v)", constants=C4 + WEIGHTS, absent=("BatchNormalization",)),
]  # fmt: skip
NEAR_MISSES = [
    Case("result used twice", f"h = Conv(x, w) {NORM} z = Relu(h)", outputs="float[a,b,c,d] y, float[a,b,c,d] z", constants=C4 + WEIGHTS, skip="elsewhere"),
    Case("no convolution", "h = Relu(x) y = BatchNormalization(h, s, b, m, v)", constants=C4, inputs="float[N,4,H,W] x"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
