"""The part of many groups that a builder gets right."""

import pytest

from trtconv.proof.halving import MOST, largest_that_holds

GROUPS = tuple("abcdefghijklmnop")


def tried_parts(*guilty, groups=GROUPS):
    tried = largest_that_holds(groups, lambda part: part, lambda part: not set(guilty) & set(part))
    return tried, [part for part in tried if not set(guilty) & set(part)]


@pytest.mark.parametrize("guilty", "adhip")
def test_one_guilty_group_is_left_out_alone(guilty):
    tried, good = tried_parts(guilty)
    assert good[-1] == tuple(g for g in GROUPS if g != guilty)
    assert len(tried) <= 8


def test_two_that_are_wrong_together_lose_one():
    tried = largest_that_holds(GROUPS[:4], lambda part: part, lambda part: not {"a", "d"} <= set(part))
    assert tried[-2] == ("a", "b", "c")


def test_builds_are_few_whatever_is_wrong():
    tried, good = tried_parts(*GROUPS)
    assert (len(tried), good) == (MOST, [])
    assert tried_parts("a", groups=("a",)) == ([], [])
