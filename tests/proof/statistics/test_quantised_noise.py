"""What quantised outputs may be off: measured on one part, held on another."""

import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.allowance import Arithmetic, allow
from trtconv.proof.comparison import compare_output
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, read_samples, write_reference
from trtconv.proof.statistics.quantised_noise import MOST_NOISE, UNSEEN, measure_quantised_noise

INT8_ENGINE = Arithmetic("int8", engine=True)
# By column: logits of which one is ten times as noisy as the others.
DEVIATION = np.array([0.03, 0.03, 0.3, 0.03])


def outputs(seed, count=64, deviation=DEVIATION):
    random = np.random.default_rng(seed)
    exact = random.standard_normal((count, 4)) * np.array([2.0, 2.0, 20.0, 2.0])
    return exact.astype(np.float32), (exact + random.standard_normal((count, 4)) * deviation).astype(np.float32)


@pytest.fixture(scope="module")
def noise():
    pairs = [outputs(seed) for seed in range(4)]
    return measure_quantised_noise(*zip(*pairs, strict=True))


def compared(noise, exact, actual, arithmetic=INT8_ENGINE):
    return compare_output("y", "data0", exact, actual, allow(exact, noise.floor(exact), None, arithmetic))


def test_typical_errors_are_those_of_the_columns(noise):
    assert noise.axis == 1
    np.testing.assert_allclose(noise.typical, DEVIATION, rtol=0.15)
    assert UNSEEN * 2.5 < noise.reach < UNSEEN * 6.0


def test_unseen_samples_pass(noise):
    assert all(compared(noise, *outputs(seed)).passed for seed in range(100, 300))


@pytest.mark.parametrize("scale", [0.0, 0.8, 1.2])
def test_another_scale_is_reported(noise, scale):
    exact, _ = outputs(7)
    assert not compared(noise, exact, exact * np.float32(scale)).passed


def test_noise_three_times_as_large_is_reported_though_no_element_is_out_of_reach(noise):
    exact, _ = outputs(7)
    signs = np.where(np.random.default_rng(1).random(exact.shape) < 0.5, -1.0, 1.0)
    actual = (exact + 6.0 * DEVIATION * signs).astype(np.float32)
    result = compared(noise, exact, actual)
    assert not result.passed
    assert "cosine" in result.reason


def test_a_graph_that_was_quantised_badly_allows_no_more_than_a_limit():
    pairs = [outputs(seed, deviation=np.array([2.0, 2.0, 20.0, 2.0])) for seed in range(4)]
    noise = measure_quantised_noise(*zip(*pairs, strict=True))
    share = np.sqrt((noise.typical**2).mean()) / np.sqrt((noise.scale**2).mean())
    assert share == pytest.approx(MOST_NOISE)
    assert not compared(noise, *outputs(9, deviation=np.array([2.0, 2.0, 20.0, 2.0]))).passed


def test_an_fp32_subject_is_held_to_fp32(noise):
    exact, actual = outputs(7)
    assert not compared(noise, exact, actual, Arithmetic()).passed


def test_integers_and_infinities_have_no_such_noise():
    whole = [np.arange(4, dtype=np.int64)]
    assert measure_quantised_noise(whole, whole) is None
    assert measure_quantised_noise([np.ones((2, 2), np.float32)], [np.full((2, 2), np.inf, np.float32)]) is None


def written(path, noise, **changes):
    exact, _ = outputs(7)
    point, spec = SamplePoint("data0", (("N", 64),), "data"), parse_tensor("x:float32[N]")
    floor = noise.floor(exact)
    for name, value in changes.items():
        object.__setattr__(floor, name, value)
    info = ReferenceInfo((point,), (spec,), ("y",), parse_space(["N=1:64:64"]))
    write_reference(path, info, [ReferenceSample(point, {"x": np.ones(64, np.float32)}, {"y": exact}, {"y": floor})])
    return next(read_samples(path))


def test_it_lies_in_the_reference_file(tmp_path, noise):
    sample = written(tmp_path / "r.safetensors", noise)
    assert sample.floors["y"].reach == noise.reach
    np.testing.assert_allclose(sample.floors["y"].error.reshape(-1), noise.typical, rtol=1e-6)


@pytest.mark.parametrize("reach", [-1.0, 1e9])
def test_a_reach_that_allows_anything_is_refused(tmp_path, noise, reach):
    with pytest.raises(InvalidRequestError, match="damaged"):
        written(tmp_path / "r.safetensors", noise, reach=reach)
