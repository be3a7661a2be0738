"""Which dims follow from others is found by trying, and told as the expression to write."""

from __future__ import annotations

import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.proof.tied_dims import find_ties

CASES = {
    "a mask over past and new tokens": (
        "N=1:1:2 S=1:1:3 P=0:4:7 K=1:5:10",
        lambda s: s["K"] in (1, s["P"] + s["S"]),
        {"K": "S+P"},
    ),
    "twice and one": ("N=1:1:2 T=1:4:9 U=3:9:19", lambda s: s["U"] == 2 * s["T"] + 1, {"U": "2*T+1"}),
    "patches": (
        "N=1:2:4 H=32:64:96 W=32:64:96 A=4:8:12 B=4:8:12",
        lambda s: (s["A"], s["B"]) == ((s["H"] + 7) // 8, (s["W"] + 7) // 8),
        {"A": "(H+7)//8", "B": "(W+7)//8"},
    ),
    "one name for two": ("N=1:2:4 M=1:2:4 T=3:6:9", lambda s: s["M"] == s["N"], {"N": "M"}),
    "places": ("H=2:4:6 W=3:4:7 P=6:16:42", lambda s: s["P"] == s["H"] * s["W"], {"P": "H*W"}),
    "multiples alone": ("N=1:2:4 H=32:64:96", lambda s: s["H"] % 8 == 0, {}),
    "nothing": ("N=1:2:4 H=32:64:96", lambda s: False, {}),
    "a size that is too small": ("N=1:2:4 T=1:6:9", lambda s: s["T"] > 3, {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_expression_is_found(case):
    space, runs, expected = case
    assert find_ties(lambda sizes: None if runs(sizes) else "raises", parse_space([space])) == expected
