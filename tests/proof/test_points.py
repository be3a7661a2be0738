import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import DimRange, parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import SamplePoint, awkward_size, sample_array, sample_inputs, sample_points

SPACE = parse_space(["N=1:4:16 H=320:640:1280%32 W=320:640:1280%32"])
IMAGES = parse_tensor("images:float32[N,3,H,W]")


def test_the_points_cover_what_the_design_asks_for():
    points = sample_points(SPACE, [IMAGES], traced={"N": 2, "H": 352, "W": 416})
    labels = [p.label for p in points]
    for label in (
        "traced",
        "opt",
        "min",
        "max",
        "interior-1",
        "interior-2",
        "corner-1",
        "corner-2",
        "batch",
        "zeros",
        "nan",
    ):
        assert label in labels
    assert all(SPACE.contains(p.sizes) for p in points)
    assert any(p.sizes["N"] > 1 and p.sizes["H"] != p.sizes["W"] for p in points)


def test_interior_sizes_divide_by_little_in_units_of_the_multiple():
    for point in sample_points(SPACE, [IMAGES]):
        if point.label.startswith("interior"):
            units = point.sizes["H"] // 32, point.sizes["W"] // 32
            assert all(u % 2 for u in units)
            assert units[0] != units[1]


def test_equal_points_come_once():
    points = sample_points(parse_space(["N=1:1:1"]), [parse_tensor("x:float32[N,4]")])
    assert len({(p.dims, p.values) for p in points}) == len(points)
    assert [p.label for p in points if p.values == "random"] == ["opt"]


def test_a_static_model_has_points_too():
    points = sample_points(parse_space([]), [parse_tensor("x:float32[2,4]")])
    values = [p.values for p in points]
    assert values[:5] == ["random", "zeros", "large", "denormal", "nan"]
    assert values[5:] == ["unit", "bytes", "small", "constant", "ties", "minus-infinity", "plus-infinity"]


@pytest.mark.parametrize(
    "rng", [DimRange(1, 1, 1), DimRange(1, 2, 3), DimRange(7, 9, 100000), DimRange(64, 64, 4096, 64)]
)
def test_an_awkward_size_is_in_the_range(rng):
    for fraction in (0.05, 0.5, 0.95):
        assert awkward_size(rng, fraction) in rng


def test_values_are_deterministic_and_do_not_depend_on_other_inputs():
    point = sample_points(SPACE, [IMAGES], seed=3)[1]
    other = parse_tensor("mask:bool[N,H]")
    one, two = sample_inputs([IMAGES], point), sample_inputs([other, IMAGES], point)
    np.testing.assert_array_equal(one["images"], two["images"])
    assert two["mask"].dtype == np.bool_


def test_seeds_differ():
    first = sample_array(IMAGES, sample_points(SPACE, [IMAGES], seed=0)[1])
    second = sample_array(IMAGES, sample_points(SPACE, [IMAGES], seed=1)[1])
    assert not np.array_equal(first, second)


def test_integers_stay_in_their_range():
    spec = parse_tensor("ids:int64[N,T]=5:7")
    point = sample_points(parse_space(["N=1:4:8 T=50:50:50"]), [spec])[0]
    assert set(np.unique(sample_array(spec, point))) == {5, 6, 7}


def test_value_kinds():
    spec = parse_tensor("x:float32[1000]")
    by_kind = {p.values: sample_array(spec, p) for p in sample_points(parse_space([]), [spec])}
    assert not by_kind["zeros"].any()
    assert np.abs(by_kind["large"]).max() > 1e4
    tiny = np.abs(by_kind["denormal"])
    assert 0 < tiny.max() < np.finfo(np.float32).tiny
    assert 0 < np.isnan(by_kind["nan"]).sum() < 1000


def test_what_has_a_highest_value_has_it_everywhere_at_one_point():
    specs = [parse_tensor(t) for t in ("mask:bool[N,T]", "ids:int64[N]=2:7", "unit:float32[N]=0:1", "x:float32[N,T]")]
    full = [p for p in sample_points(parse_space(["N=1:2:3 T=4:5:6"]), specs) if p.values == "full"]
    assert [p.sizes for p in full] == [{"N": 3, "T": 6}]
    mask, ids, unit, x = (sample_array(s, full[0]) for s in specs)
    assert mask.all()
    assert mask.dtype == np.bool_
    assert ids.tolist() == [7, 7, 7]
    assert unit.tolist() == [1.0, 1.0, 1.0]
    assert len(np.unique(x)) > 1
    assert not any(p.values == "full" for p in sample_points(SPACE, [IMAGES]))


def test_zeros_respect_a_range_without_zero():
    spec = parse_tensor("x:float32[4]=0.5:1")
    point = next(p for p in sample_points(parse_space([]), [spec]) if p.values == "zeros")
    assert sample_array(spec, point).tolist() == [0.5] * 4


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize("values", ["random", "zeros", "large", "denormal", "nan"])
def test_a_scalar_is_an_array_too(dtype, values):
    array = sample_array(parse_tensor(f"s:{dtype}[]"), SamplePoint("p", (), values))
    assert isinstance(array, np.ndarray)
    assert array.shape == ()


def test_an_input_beyond_the_memory_is_one_error():
    with pytest.raises(InvalidRequestError, match=r"needs .* of memory, more than there is"):
        sample_inputs([parse_tensor("x:float32[2000000000,2000000000]")], SamplePoint("p", ()))
