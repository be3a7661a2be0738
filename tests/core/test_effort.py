"""A search that may end early tries no less on a machine that stalls."""

import pytest

from trtconv.core.effort import Effort


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_seconds_end_a_search_that_had_its_steps(clock):
    effort = Effort(2.0, 3, clock)
    assert [effort.step() for _ in range(5)] == [True] * 5
    clock.now = 2.5
    assert not effort.step()


def test_a_stall_leaves_the_steps_that_are_granted(clock):
    effort = Effort(2.0, 3, clock)
    clock.now = 15.0
    assert [effort.step() for _ in range(5)] == [True] * 3 + [False] * 2


def test_patience_ends(clock):
    effort = Effort(2.0, 3, clock)
    clock.now = 20.5
    assert effort.spent
    assert not effort.step()
