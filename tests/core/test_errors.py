"""Errors and what they were raised from."""

from trtconv.core.errors import causes


def test_a_ring_of_causes_has_an_end():
    first, second = ValueError("first"), TypeError("second")
    first.__context__, second.__cause__ = second, first
    assert list(causes(first)) == [first, second]
    assert list(causes(None)) == []
