"""Which sample points a network can afford depends on what its runs compute."""

from __future__ import annotations

from trtconv.core.dtypes import DTYPES
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import SamplePoint, sample_points
from trtconv.proof.sizes import ALWAYS, Budget, affordable, input_bytes

FLOAT = next(d for d in DTYPES if d.name == "float32")
SPACE = ShapeSpace((("N", DimRange(1, 2, 8)), ("H", DimRange(32, 64, 128)), ("W", DimRange(32, 64, 128))))
SPECS = (TensorSpec("x", FLOAT, ("N", 3, "H", "W")),)
POINTS = sample_points(SPACE, SPECS, traced={"N": 3, "H": 39, "W": 55})
BYTES = {p: input_bytes(SPECS, p) for p in POINTS}
LEAST = min(BYTES.values())


def chosen(work_at_least: float) -> tuple[tuple[SamplePoint, ...], tuple[str, ...]]:
    """What is chosen of a network that takes so many operations at its smallest size."""
    return affordable(POINTS, SPECS, work_at_least / LEAST, Budget())


def test_a_small_network_is_compared_at_all_points() -> None:
    assert chosen(1e6) == (POINTS, ())


def test_special_values_of_a_large_network_are_looked_at_where_a_run_takes_least() -> None:
    points, notes = chosen(3.5e9)
    assert len(notes) == 1
    assert notes[0].endswith("the full batch is too large for one run: max (N=8 H=128 W=128)")
    assert [p.values for p in points] == [p.values for p in POINTS]
    special = [p for p in points if p.values != "random"]
    assert {BYTES[p] for p in POINTS if p.values != "random"} != {LEAST}
    assert all(input_bytes(SPECS, p) == LEAST for p in special)
    assert [p for p in points if p.values == "random" and p.label != "max"] == [
        p for p in POINTS if p.values == "random" and p.label != "max"
    ]


def test_what_a_huge_network_leaves_out_is_told_and_the_main_points_are_not_among_it() -> None:
    points, notes = chosen(6e10)
    assert {p.label for p in points} >= set(ALWAYS)
    missing = {p.label for p in POINTS} - {p.label for p in points}
    assert "nan" in missing
    assert "probe-ties" not in missing
    assert all(label in notes[-1] for label in missing)
    assert "400 GFLOP" in notes[-1]
    assert points[0] == POINTS[0]
    assert {p.label: p.sizes["N"] for p in points if p.sizes["N"] > 1} == {"traced": 3, "batch": 2}


def test_a_short_axis_is_no_place_for_special_values() -> None:
    space = ShapeSpace((("N", DimRange(1, 1, 4)), ("T", DimRange(1, 16, 256))))
    specs = (TensorSpec("x", FLOAT, ("N", "T", 64)),)
    points = sample_points(space, specs)
    least = min(input_bytes(specs, p) for p in points)
    large, _ = affordable(points, specs, 1e10 / least, Budget())
    assert all(p.sizes["T"] >= 4 for p in large if p.values != "random")
