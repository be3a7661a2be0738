import pytest
from onnx import TensorProto, helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.resize_residual import RULE


FACTORS = {"big": 2, "huge": 4, "a": 2}


def named(model):
    """Inner values with dims as torch.export records them: twice and four times the sizes of the input."""
    made = {name for node in model.graph.node for name in node.output}
    for name, factor in FACTORS.items():
        if name in made:
            shape = ["N", 8, f"{factor}*H", f"{factor}*W"]
            model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


SCALES = "float[4] sc = {1.0, 1.0, 2.0, 2.0}, float[4] four = {1.0, 1.0, 4.0, 4.0}"
NEAREST = '<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">'
BIG = 'b = Resize<mode="linear">(x, , sc) big = Neg(b) '
OPTIONS = {"target": "tensorrt==8.6", "edit": named, "constants": SCALES}
CASES = [
    Case("nearest", BIG + f"r = Resize{NEAREST}(x, , sc) y = Add(big, r)", made=("Shape",), **OPTIONS),
    Case("linear, first operand", BIG + 'r = Resize<mode="linear">(x, , sc) y = Add(r, big)', made=("Shape",), **OPTIONS),
    Case("two in a row", BIG + f"""c = Resize<mode="linear">(x, , four) huge = Neg(c) r = Resize{NEAREST}(x, , sc)
         a = Add(r, big) q = Resize{NEAREST}(a, , sc) y = Add(huge, q)""", fires=2, **OPTIONS),
]  # fmt: skip
NEAR_MISSES = [
    Case("broadcast", f"r = Resize{NEAREST}(x, , sc) y = Add(r, one)", "float[N,8,H,W] x, float[1,8,1,1] one",
         constants=SCALES, target="tensorrt==8.6"),
    Case("three times", f"r = Resize{NEAREST}(x, , sc) y = Add(r, one)", "float[N,8,H,W] x, float[N,1,1,1] one",
         constants="float[4] sc = {1.0, 1.0, 3.0, 3.0}", target="tensorrt==8.6", skip="not known to have the shape"),
    Case("used twice", BIG + f"r = Resize{NEAREST}(x, , sc) a = Add(r, big) y = Mul(a, r)", skip="used elsewhere",
         **OPTIONS),
    Case("nothing recorded", BIG + f"r = Resize{NEAREST}(x, , sc) y = Add(r, big)", constants=SCALES,
         target="tensorrt==8.6", skip="not known to have the shape"),
    Case("fixed sizes", f"r = Resize{NEAREST}(x, , sc) y = Add(r, big)", "float[1,8,4,6] x, float[1,8,8,12] big",
         constants=SCALES, target="tensorrt==8.6"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
