# ruff: noqa: E501 - the text of a model stands on one line
"""Products of bytes."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.integer_product import RULE

RNG = np.random.default_rng(0)


def with_weights(shape, points=None, dtype=np.int8):
    def edit(model):
        low, high = (-128, 128) if dtype is np.int8 else (0, 256)
        model.graph.initializer.append(numpy_helper.from_array(RNG.integers(low, high, shape).astype(dtype), "w"))
        if points is not None:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(points, dtype), "v"))

    return edit


BYTES = {"inputs": "uint8[N,16] q, uint8 z", "outputs": "float[a,b] y", "ranges": {"q": (0, 255), "z": (0, 255)}}
IMAGE = {"inputs": "uint8[N,8,H,W] q, uint8 z", "outputs": "float[a,b,c,d] y", "ranges": {"q": (0, 255), "z": (0, 255)}}
CASES = [
    Case("matmul", "i = MatMulInteger(q, w, z) y = Cast<to=1>(i)", edit=with_weights((16, 5)), absent=("MatMulInteger",), **BYTES),
    Case("weights with a zero point", "i = MatMulInteger(q, w, z, v) y = Cast<to=1>(i)", edit=with_weights((16, 5), 7, np.uint8), **BYTES),
    Case("a zero point for each column", "i = MatMulInteger(q, w, z, v) y = Cast<to=1>(i)", edit=with_weights((16, 5), [1, 2, 3, 4, 5]), **BYTES),
    Case("conv", "i = ConvInteger<pads=[1,1,1,1]>(q, w, z) y = Cast<to=1>(i)", edit=with_weights((4, 8, 3, 3)), present=("Conv",), **IMAGE),
    Case("groups", "i = ConvInteger<group=2>(q, w, z, v) y = Cast<to=1>(i)", edit=with_weights((4, 4, 3, 3), 3), **IMAGE),
]  # fmt: skip
WHOLE = BYTES | {"outputs": "int32[a,b] y"}
LONG = WHOLE | {"inputs": "uint8[N,2000] q, uint8 z"}
CASES += [
    Case("a whole number", "y = MatMulInteger(q, w, z)", edit=with_weights((16, 5)), absent=("MatMulInteger",), **WHOLE),
    Case("used as a whole number too", "i = MatMulInteger(q, w, z) y = Cast<to=1>(i)", edit=with_weights((16, 5)), absent=("MatMulInteger",), **(BYTES | {"outputs": "float[a,b] y, int32[a,b] i"})),
    Case("a long sum in two halves", "y = MatMulInteger(q, w, z, v)", edit=with_weights((2000, 5), 3, np.uint8), **LONG),
    Case("two values", "y = MatMulInteger(q, p, z)", **(WHOLE | {"inputs": "uint8[N,16] q, uint8 z, uint8[16,5] p"})),
    Case("conv as a whole number", "y = ConvInteger<pads=[1,1,1,1]>(q, w, z, v)", edit=with_weights((4, 8, 3, 3), 3), **(IMAGE | {"outputs": "int32[a,b,c,d] y"})),
]  # fmt: skip
NEAR_MISSES = [
    Case("a sum that two halves do not hold", "y = MatMulInteger(q, w, z)", edit=with_weights((40000, 2), 0, np.uint8), skip="exactly", **(WHOLE | {"inputs": "uint8[N,40000] q, uint8 z"})),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
