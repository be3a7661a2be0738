"""Bits of whole numbers of every width, of negative ones too, and of booleans, in a recorded file."""

import pytest
import torch

from trtconv.export.exporters.recorded.bits import NewerOpsetError


def of_numbers(x, y):
    return (
        x & 7, x | 5, x ^ -3, ~x, x & -8, torch.bitwise_and(x, y), torch.bitwise_or(x, y), torch.bitwise_xor(x, y),
        torch.bitwise_not(x), (x & 3) | (y ^ 1),
    )  # fmt: skip


def of_bytes(x, y):
    return x & 7, x | y, ~x, x ^ y


def of_booleans(a, b):
    return a & b, a | b, a ^ b, ~a


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_up_to_the_ends_of_the_type(dtype, differing):
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, ends.max, 0, 1, 5, 100], dtype=dtype)
    y = torch.tensor([ends.max, 3, ends.min, 7, 6, 12], dtype=dtype)
    if dtype != torch.uint8:
        assert not differing(of_numbers, x, y, opset=18)
    assert not differing(of_bytes, x, y, opset=18)


def of_two_widths(x, y):
    return x & y, x | y, x ^ y


def test_of_two_widths_and_of_booleans(differing):
    x = torch.tensor([-1, 0, 2**40 + 5, -(2**33)])
    assert not differing(of_two_widths, x, torch.tensor([-7, 3, -1, 255], dtype=torch.int32), opset=18)
    assert not differing(of_two_widths, x, torch.tensor([True, True, False, True]), opset=18)
    assert not differing(of_booleans, torch.tensor([True, False]), torch.tensor([True, True]))


def test_an_older_opset_has_none(differing):
    with pytest.raises(NewerOpsetError, match="from opset 18 on"):
        differing(of_two_widths, torch.arange(4), torch.arange(4))
