"""A Resize by whole scales beside the map that it is added to, for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.missing.resizing.resize_like_summand import RULE

NEAREST = 'mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor"'
LINEAR = 'mode="linear",coordinate_transformation_mode="half_pixel"'
# The coarser map is pooled from x, so that its size times the scale is that of x where H and W are multiples.
POOLED = "z = AveragePool<kernel_shape=[{k},{k}],strides=[{k},{k}]>(x)"
EVEN = ({"N": 2, "H": 16, "W": 24}, {"N": 1, "H": 8, "W": 40}, {"N": 3, "H": 32, "W": 56})


def model(attributes, scale, order="x, r"):
    pool = POOLED.format(k=scale)
    return f"{pool} r = Resize<{attributes}>(z, , s) y = Add({order})"


def case(name, attributes, scale, order="x, r", **more):
    options = {"target": "tensorrt==8.6", "sizes": EVEN, "constants": f"float[4] s = {{1,1,{scale},{scale}}}"}
    return Case(name, model(attributes, scale, order), **{**options, **more})


CASES = [
    case("nearest by 2", NEAREST, 2),
    case("nearest by 8, other order", NEAREST, 8, "r, x"),
    case("bilinear by 4", LINEAR, 4),
]
MISSES = [
    case("sizes that are numbers", NEAREST, 2, inputs="float[N,8,16,24] x", sizes=({"N": 1}, {"N": 2}, {"N": 3})),
    Case(
        "a summand that may be stretched",
        f"r = Resize<{NEAREST}>(x, , s) m = ReduceMean<axes=[2,3]>(r) y = Add(m, r)",
        constants="float[4] s = {1,1,2,2}",
        target="tensorrt==8.6",
        skip="different sizes",
    ),
    Case(
        "a scale that is not an integer",
        f"r = Resize<{LINEAR}>(x, , s) a = Relu(r) y = Add(a, r)",
        constants="float[4] s = {1,1,1.5,1.5}",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_later_versions_need_it_not():
    assert RULE.needed(parse_target("tensorrt==8.6"))
    assert not RULE.needed(parse_target("tensorrt==10.3"))


def test_nearest_by_size_stays_when_all_rules_run(tmp_path):
    import onnx

    from tests.rewrite.harness import model_of
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import RewriteRequest
    from trtconv.rewrite import rewrite_model

    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model_of(CASES[0]), source)
    rewrite_model(RewriteRequest(source, target, parse_target("tensorrt==8.6")), SilentProgress())
    node = onnx.load(target).graph.node
    assert [n.op_type for n in node if n.op_type in ("Resize", "Gather")] == ["Resize"]
    assert all(len(n.input) == 4 for n in node if n.op_type == "Resize")
