"""DeformConv."""

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.rules.missing.spatial.deform_conv import RULE

# ONNX Runtime has DeformConv since 1.23; before, the reference evaluator loops in Python, so sizes are small there.
SLOW = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 23)
SIZES = ({"N": 2, "H": 8, "W": 10}, {"N": 1, "H": 7, "W": 9}, {"N": 3, "H": 11, "W": 5})
if SLOW:
    SIZES = ({"N": 2, "H": 3, "W": 4}, {"N": 1, "H": 5, "W": 3}, {"N": 1, "H": 4, "W": 5})
SPACE = "N=1:1:3 H=3:4:12 W=3:4:12"


def weights(model, groups):
    rng = np.random.default_rng(1)
    outs, ins = 5 if groups == 1 else 6, 8 // groups
    model.graph.initializer.append(
        numpy_helper.from_array(rng.standard_normal((outs, ins, 3, 3)).astype(np.float32), "w")
    )
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(outs).astype(np.float32), "b"))


def deform(name, attributes, offset, mask=True, groups=1, **kwargs):
    """Offsets and mask come from convolutions of x, so that their sizes fit."""
    node = f"y = DeformConv<{attributes}>(x, w, o, b{', m' if mask else ''})"
    body = f"o = Conv<{offset}>(x, ow) {'r = Conv<' + offset + '>(x, mw) m = Sigmoid(r)' if mask else ''} {node}"

    def edit(model):
        weights(model, groups)
        model.metadata_props.add(key=SPACE_KEY, value=SPACE)
        rng = np.random.default_rng(2)
        for key, rows in (("ow", 18 * groups), ("mw", 9 * groups)):
            model.graph.initializer.append(
                numpy_helper.from_array(rng.standard_normal((rows, 8, 1, 1)).astype(np.float32) * 0.3, key)
            )

    return Case(name, body, opset=19, edit=edit, sizes=SIZES, **kwargs)


CASES = [
    deform("same size", "pads=[1,1,1,1],kernel_shape=[3,3]", "strides=[1,1]", absent=("DeformConv",)),
    deform("without a mask", "pads=[1,1,1,1]", "strides=[1,1]", mask=False, absent=("DeformConv",)),
    deform("dilated", "pads=[2,2,2,2],dilations=[2,2]", "strides=[1,1]", absent=("DeformConv",)),
    deform("two groups, two offset groups", "pads=[1,1,1,1],group=2,offset_group=2", "strides=[1,1]", groups=2),
    deform("stride 2", "pads=[1,1,1,1],strides=[2,2]", "strides=[2,2]", absent=("DeformConv",)),
]
NEAR_MISSES = [
    Case(
        "computed weights",
        "w = Relu(v) y = DeformConv<pads=[1,1,1,1]>(x, w, o)",
        "float[N,8,H,W] x, float[5,8,3,3] v, float[N,18,H,W] o",
        opset=19,
        skip="not constant",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
