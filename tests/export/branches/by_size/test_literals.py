"""Joint sizes near the numbers in the code, where a module's decisions by size cannot all be followed."""

import pytest

pytest.importorskip("torch")

from trtconv.core.errors import AccuracyError
from trtconv.core.shape_space.space import parse_space
from trtconv.export.branches.by_size.literals import LEAST_NUMBER, MOST_SIZES, numbers_in, sizes_near

SPACE = parse_space(["N=1:1:4", "H=8:40:200", "W=8:48:200%2"])
BASE = {"N": 1, "H": 40, "W": 48}


def decides(h, w):
    return (h, w) == (135, 146) or h > 3


def test_numbers_in_tuples_are_read_and_small_ones_are_not():
    assert set(numbers_in(decides.__code__)) == {135, 146}
    assert LEAST_NUMBER == 8


def test_pairs_and_multiples():
    sizes = sizes_near((135, 61), SPACE, BASE)
    assert {"N": 1, "H": 137, "W": 62} in sizes
    assert {"N": 1, "H": 183, "W": 122} in sizes
    assert {"N": 1, "H": 135, "W": 48} in sizes
    assert all(SPACE.contains(s) for s in sizes)
    assert len(sizes) <= MOST_SIZES


TILES = """
class Tiles(nn.Module):
    def forward(self, x):
        ys, xs = list(range(0, x.shape[2], 3)), list(range(0, x.shape[3], 5))
        return x * 2 if (ys[-1], xs[-1]) == (135, 145) and x.shape[2] % 3 == 2 else -x
"""


@pytest.mark.slow
def test_a_place_that_only_a_number_in_the_code_tells(write_module, export):
    with pytest.raises(AccuracyError, match=r"the path through the module depends on the size: .*H=137 W=14[6-9]"):
        export(f"{write_module(TILES)}:Tiles", ["x:float32[1,1,H,W]"], "H=8:40:200 W=8:50:200")
