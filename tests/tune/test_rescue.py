"""The part of a candidate that a builder gets right."""

import pytest

from trtconv.tune.candidates import Candidate
from trtconv.tune.rescue import MOST, largest_that_holds

GROUPS = tuple("abcdefghijklmnop")


def rescued(*guilty, groups=GROUPS):
    tried = largest_that_holds(Candidate("int8", groups), lambda c: c, lambda c: not set(guilty) & set(c.groups))
    return tried, [c for c in tried if not set(guilty) & set(c.groups)]


@pytest.mark.parametrize("guilty", "adhip")
def test_one_guilty_group_is_left_out_alone(guilty):
    tried, good = rescued(guilty)
    assert good[-1].groups == tuple(g for g in GROUPS if g != guilty)
    assert len(tried) <= 8


def test_two_that_are_wrong_together_lose_one():
    tried = largest_that_holds(Candidate("int8", GROUPS[:4]), lambda c: c, lambda c: not {"a", "d"} <= set(c.groups))
    assert tried[-2].groups == ("a", "b", "c")


def test_builds_are_few_whatever_is_wrong():
    tried, good = rescued(*GROUPS)
    assert (len(tried), good) == (MOST, [])
    assert rescued("a", groups=("a",)) == ([], [])
