"""Where something is undefined, told by sizes alone: a multiple, or a least size."""

import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.proof.undefined_sizes import find_undefined


def undefined(space, problem):
    return find_undefined(lambda sizes: problem(**sizes) or None, parse_space([space]))


@pytest.mark.parametrize(
    ("space", "problem", "multiple", "least"),
    [
        ("T=1:16:128", lambda T: "" if T >= 5 else "small", 5, 5),
        ("T=2:16:128%2", lambda T: "" if T >= 5 else "small", 6, 6),
        ("T=16:64:512", lambda T: "" if T % 8 == 0 else "odd", 8, None),
        ("T=33:34:34", lambda T: "" if T % 2 == 0 else "odd", 2, None),
        ("T=1:16:128", lambda T: "" if T >= 5 and T % 4 == 0 else "both", 8, None),
    ],
)
def test_a_dim(space, problem, multiple, least):
    (dim,) = undefined(space, problem)
    assert (dim.multiple, dim.least) == (multiple, least)
    assert ("=MIN:OPT:MAX" in str(dim)) == (least is None)
    assert (f"T={least}:OPT:MAX" in str(dim)) == (least is not None)


def test_all_is_defined():
    assert undefined("N=1:2:4 T=1:16:128", lambda N, T: "") == ()
