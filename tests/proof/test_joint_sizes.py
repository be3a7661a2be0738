"""Joint sizes: all of them in arrays, in an order made for coverage, and the line that says what was tried."""

import itertools

import numpy as np
import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.proof.joint_sizes import (
    SizeCoverage,
    count_sizes,
    coverage_of,
    covering_sizes,
    size_grids,
    sizes_where,
)

SMALL = parse_space(["N=1:2:3", "H=8:16:24%4", "W=10:11:14"])
PAIRS = parse_space(["H=16:64:2000", "W=16:64:2000"])


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_the_grids_together_are_all_joint_sizes_once(chunk):
    rows = [
        tuple(int(np.broadcast_to(g, shape)[index]) for g in grids.values())
        for grids in size_grids(SMALL, list(SMALL), chunk)
        for shape in [np.broadcast_shapes(*(g.shape for g in grids.values()))]
        for index in np.ndindex(shape)
    ]
    assert sorted(rows) == sorted(itertools.product(*(r.values() for _, r in SMALL.dims)))


def test_one_pair_of_four_million_is_found():
    rows = [
        sizes
        for grids in size_grids(PAIRS, ["H", "W"])
        for sizes in sizes_where(grids["H"] * grids["W"] == 769 * 1013, grids, 3)
    ]
    assert count_sizes(PAIRS) == 1985**2
    assert rows == [{"H": 769, "W": 1013}, {"H": 1013, "W": 769}]


def test_every_joint_size_comes_once_and_the_corners_first():
    sizes = [tuple(s.values()) for s in covering_sizes(SMALL, ("N",))]
    assert len(sizes) == len(set(sizes)) == count_sizes(SMALL)
    assert set(sizes[:8]) == set(itertools.product((1, 3), (8, 24), (10, 14)))


def test_of_a_large_space_every_quarter_of_a_pair_of_dims_is_visited_early():
    first = list(itertools.islice(covering_sizes(PAIRS, ()), 100))
    cells = {((s["H"] - 16) * 4 // 1985, (s["W"] - 16) * 4 // 1985) for s in first}
    assert len(cells) == 16
    assert all(v in PAIRS[n] for s in first for n, v in s.items())


@pytest.mark.parametrize(
    ("coverage", "complete", "words"),
    [
        (SizeCoverage(3234, 3234, 2, 3234), True, "sizes tried: 3,234 of 3,234"),
        (SizeCoverage(40, 3940225, 1, 3940225), True, "all of them take the same path"),
        (SizeCoverage(40, 3940225, 3, 3940225, ("net.py:12",)), True, "one of 3 paths"),
        (SizeCoverage(8000, 3940225, 64, 900, ("net.py:12",)), False, "decides by size at net.py:12"),
        (SizeCoverage(8000, 3940225, 0, 0, (), ("net.py:9",)), False, "looks its size up in a table at net.py:9"),
        (SizeCoverage(8, 90, 0, 0, (), (), "it reads values at line 3"), False, "it reads values at line 3"),
    ],
)
def test_the_line_says_what_was_tried_and_survives_json(coverage, complete, words):
    assert coverage.complete is complete
    assert words in str(coverage)
    assert coverage_of(coverage.as_dict()) == coverage
