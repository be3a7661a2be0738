"""Equations as authors write them, in the letters that the parser takes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.einsum_letters import RULE, small_letters

INPUTS = "float[N,2,H,4] p, float[N,2,W,4] q"
CASES = [
    Case(
        "capitals and spaces",
        'y = Einsum<equation="B H I D, B H J D -> B H I J">(p, q)',
        INPUTS,
        "float[a,b,c,d] y",
        target="tensorrt-rtx",
    ),
    Case("no arrow", 'y = Einsum<equation="Bhid,Bhjd">(p, q)', INPUTS, "float[a,b] y", target="tensorrt-rtx"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


def test_small_letters_stay():
    equation = 'y = Einsum<equation="bhid,bhjd->bhij">(p, q)'
    check_near_miss(RULE, Case("small letters", equation, INPUTS, "float[a,b,c,d] y", target="tensorrt-rtx"))


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("B G H I D, B G H J D -> B G H I J", "acdeb,acdfb->acdef"),
        ("...iA,...Aj->...ij", "...ba,...ac->...bc"),
        (" ij , jk ", "ij,jk"),
        # Without an arrow the labels of the result are in the order of ASCII: capitals come first.
        ("bA,Ac", "ba,ac"),
        ("abcdefghijklmnopqrstuvwxyzA", None),
    ],
)
def test_spellings(equation, expected):
    assert small_letters(equation) == expected
