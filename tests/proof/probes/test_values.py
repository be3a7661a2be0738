"""What probes hold, by kind; and which kinds an input has."""

from __future__ import annotations

import numpy as np
import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.noise.noise_floor import profile
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.probes.masks import structured_mask
from trtconv.proof.probes.stability import probe_floor
from trtconv.proof.probes.values import IN_WORDS, PROBE_KINDS, probe_kinds, probe_values


@pytest.fixture
def normal():
    return np.random.default_rng(0).standard_normal((4, 3, 50)).astype(np.float32)


def test_ranges_that_users_feed(normal):
    unit, whole = probe_values("unit", normal, None), probe_values("bytes", normal, None)
    assert (unit.min() >= 0, unit.max() <= 1, unit.dtype) == (True, True, np.float32)
    assert np.array_equal(whole, np.round(whole))
    assert (whole.min() >= 0, 200 < whole.max() <= 255) == (True, True)
    small = np.abs(probe_values("small", normal, None))
    assert (small.min() >= 1e-7, small.max() <= 1e-3, np.median(small) < 1e-4) == (True, True, True)


def test_ties_hold_both_zeros_and_halves(normal):
    ties = probe_values("ties", normal, None)
    assert {-0.5, 0.0, 0.5, 1.5} <= set(ties.reshape(-1).tolist())
    assert np.signbit(ties[ties == 0]).any()
    assert not np.signbit(ties[ties == 0]).all()


def test_constant_images_differ_by_row(normal):
    constant = probe_values("constant", normal, None)
    assert all(len(np.unique(row)) == 1 for row in constant)
    assert len(np.unique(constant)) > 1


@pytest.mark.parametrize(("kind", "value"), [("minus-infinity", -np.inf), ("plus-infinity", np.inf)])
def test_one_infinity_in_each_example_at_places_of_their_own(normal, kind, value):
    probe = probe_values(kind, normal, None)
    examples = probe.reshape(len(probe), -1) == value
    assert (examples.sum(1) == 1).all()
    assert len(set(examples.argmax(1))) == len(probe)
    assert (probe == normal).sum() == normal.size - len(probe)
    assert (probe_values(kind, normal[0, 0], None) == value).sum() == 1


@pytest.mark.parametrize("kind", PROBE_KINDS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-2.0, 3.0), (0.0, 255.0)])
def test_values_stay_in_their_range(kind, bounds):
    chance = np.random.default_rng(1)
    for random in (chance.uniform(*bounds, (3, 8)).astype(np.float32), chance.integers(*bounds, (3, 8))):
        probe = probe_values(kind, random, bounds)
        assert probe.shape == random.shape
        assert probe.dtype == random.dtype
        assert probe.min() >= bounds[0]
        assert probe.max() <= bounds[1]


@pytest.mark.parametrize("kind", PROBE_KINDS)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (1, 1)])
def test_shapes_without_much_in_them(kind, shape):
    for dtype in (np.float32, np.float16, np.int64, np.bool_):
        assert probe_values(kind, np.zeros(shape, dtype), None).shape == shape


def test_padding_masks_fall_from_the_whole_row():
    random = np.random.default_rng(0).integers(0, 2, (4, 8)).astype(bool)
    prefix, suffix = structured_mask("prefix", random), structured_mask("suffix", random)
    assert np.array_equal(prefix, ~suffix)
    assert prefix[0].all()
    assert (np.diff(prefix.astype(int), axis=1) <= 0).all()
    assert (prefix.sum(1) >= 1).all()
    assert len(set(prefix.sum(1))) > 1


def test_a_square_mask_is_causal():
    random = np.ones((2, 5, 5), bool)
    assert np.array_equal(structured_mask("prefix", random)[1], np.tril(np.ones((5, 5), bool)))


def test_one_row_all_and_one_row_none():
    random = np.random.default_rng(0).integers(0, 2, (4, 8)).astype(bool)
    mask = structured_mask("one-row", random)
    assert mask[0].all()
    assert not mask[1].any()
    assert np.array_equal(mask[2:], random[2:])


def test_inputs_have_the_kinds_of_their_types():
    assert not {"prefix", "edges"} & set(probe_kinds([("float", None)]))
    assert {"prefix", "suffix", "one-row", "none"} == set(probe_kinds([("bool", None)]))
    assert {"prefix", "edges"} <= set(probe_kinds([("int", (0, 1))]))
    assert "prefix" not in probe_kinds([("int", (3, 7))])
    assert {"bytes", "minus-infinity"}.isdisjoint(probe_kinds([("float", (0, 1))]))
    assert set(IN_WORDS) >= set(PROBE_KINDS)


def test_probes_are_sample_points_with_rows():
    specs = [parse_tensor("x:float32[N,3,H]"), parse_tensor("m:bool[N,H]")]
    points = [p for p in sample_points(parse_space(["N=1:1:4 H=6:8:16"]), specs) if p.probes]
    assert [p.values for p in points] == [k for k in PROBE_KINDS if k != "edges"]
    assert all(p.sizes["N"] > 1 for p in points)
    suffix = sample_inputs(specs, next(p for p in points if p.values == "suffix"))
    assert np.array_equal(suffix["m"], np.sort(suffix["m"], axis=1))
    assert [p.values for p in points if p.advisory] == ["minus-infinity", "plus-infinity"]


def test_flips_of_some_elements_allow_nothing_to_the_others():
    output = np.arange(100, dtype=np.float32)
    errors = np.full(100, 1e-6)
    errors[::3] = 1.0
    random = np.random.default_rng(0).standard_normal(100).astype(np.float32) * 50
    floor = probe_floor(profile([random], [np.full(100, 1e-6, np.float32)]), output, errors.astype(np.float32))
    assert (floor.error[::3] == 1).all()
    assert np.delete(floor.error, np.s_[::3]).max() < 1e-4
