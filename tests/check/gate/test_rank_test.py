import itertools

import pytest

from trtconv.check.gate.rank_test import p_value_of_larger


def share_of_orderings(high, low):
    """The share of all ways to deal the ranks that put the first sample at least as far up as it is."""
    values = sorted((*high, *low))

    def below(chosen):
        return sum(values[c] < values[o] for c in chosen for o in set(range(len(values))) - set(chosen))

    deals = list(itertools.combinations(range(len(values)), len(high)))
    limit = below([values.index(v) for v in high])
    return sum(below(deal) <= limit for deal in deals) / len(deals)


@pytest.mark.parametrize(
    ("high", "low"), [((4, 5, 6), (1, 2, 3)), ((1, 5, 6), (2, 3, 4, 7)), ((1, 2), (3, 4, 5)), ((9,), (1, 2, 3))]
)
def test_it_counts_what_enumeration_counts(high, low):
    assert p_value_of_larger(high, low) == pytest.approx(share_of_orderings(high, low))


def test_ties_are_on_the_safe_side():
    assert p_value_of_larger([2, 2, 2], [2, 2, 2]) >= 0.5
    assert p_value_of_larger([2, 3, 4], [1, 2, 2]) > p_value_of_larger([3, 4, 5], [0, 1, 2])
