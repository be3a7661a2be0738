"""Whole numbers of every sign and width in a recorded file, traced and scripted."""

import subprocess
import sys

import pytest
import torch


def quotients(x, y):
    return (
        x // 3, x // -3, torch.floor_divide(x, y), torch.div(x, 7, rounding_mode="floor"), x // 100,
        torch.div(x, y, rounding_mode="floor"), x >> 1, x >> 5, torch.bitwise_right_shift(x, torch.abs(y) + 1),
        x // 2.5,
    )  # fmt: skip


def remainders(x, y):
    return (
        x % 3, x % -3, torch.remainder(x, y), torch.fmod(x, 3), torch.fmod(x, y),
        torch.div(x, y, rounding_mode="trunc"), x % 2.5, x % -2.5,
    )  # fmt: skip


WIDTHS = [torch.int64, torch.int32, torch.int16, torch.int8]


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
@pytest.mark.parametrize("function", [quotients, remainders])
def test_divisions_up_to_the_ends_of_the_type(function, dtype, differing):
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, ends.min + 1, ends.max, -7, -6, -1, 0, 1, 5], dtype=dtype)
    y = torch.tensor([2, 3, -3, 4, 5, -2, -5, 1, 3], dtype=dtype)
    assert not differing(function, x, y, tolerance=1e-6)


def numbers_first(y):
    return (torch.full_like(y, -7) // y, torch.full_like(y, 7) // y, torch.full_like(y, 7) % y)


def test_a_number_divided_by_a_tensor(differing):
    assert not differing(numbers_first, torch.tensor([2, -3, 4, -1, 7, -8]))


def test_the_divisors_of_reversed_division(differing, request):
    if "scripted" in request.node.name:
        pytest.skip("torch.jit.script takes no tensor for the divisor of a number")
    assert not differing(lambda y: (7 // y, -7 // y, 7 % y, 0 // y), torch.tensor([2, -3, 4, -1, 7, -8]))


def shifts_by_31(x):
    return x >> 30, x >> 31, torch.bitwise_right_shift(x, torch.full_like(x, 31))


def shifts_by_63(x):
    return x >> 62, x >> 63, torch.bitwise_right_shift(x, torch.full_like(x, 63))


@pytest.mark.parametrize(("dtype", "function"), [(torch.int32, shifts_by_31), (torch.int64, shifts_by_63)])
def test_shifts_by_all_bits(dtype, function, differing):
    ends = torch.iinfo(dtype)
    assert not differing(function, torch.tensor([ends.min, ends.max, -1, 0, 1], dtype=dtype))


def of_bytes(u, i):
    return (
        u // 3, u // 200, u % 7, u >> 1, u >> 7, u // i.to(torch.uint8).clamp(min=1), i // torch.clamp(u, min=1),
        torch.add(i, u, alpha=3), torch.sub(i, u, alpha=2), torch.rsub(u, i, alpha=2), torch.add(u, i, alpha=-2),
    )  # fmt: skip


def compared(u, i):
    return (
        u == 256, u != -1, u > 300, u < 300, u >= 256, u <= -1, u == 44, u > 2.5, i > 2.5, i < 5000000000, i == -3,
    )  # fmt: skip


def summed(u, i):
    return i.cumsum(1), u.cumsum(1), (i > 3).cumsum(1), i.cumsum(1, dtype=torch.int32), i.sum(1), u.sum(1)


@pytest.mark.parametrize("function", [of_bytes, compared, summed])
def test_bytes_beside_int32(function, differing):
    u = torch.tensor([[0, 1, 5, 44, 255, 200]], dtype=torch.uint8)
    i = torch.tensor([[-3, 1, 5, 44, 2**31 - 1, 2**31 - 1]], dtype=torch.int32)
    assert not differing(function, u, i if function is not of_bytes else i.clamp(max=1000))


def beside_a_longest(x, lengths):
    longest = lengths.amax()
    return (
        x == longest, x != longest, longest == x, x > longest + 7, longest >= x, x == lengths[:1],
        longest == 40000, torch.where(x == longest, 1.0, 0.5),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("longest", [40000, 2**32 + 7, -3])
def test_what_has_no_axes_is_compared_in_the_type_of_what_has(dtype, longest, differing):
    ends = torch.iinfo(dtype)
    wrapped = torch.tensor(longest).to(dtype).item()
    x = torch.tensor([ends.min, ends.max, 0, 7, wrapped], dtype=dtype)
    assert not differing(beside_a_longest, x, torch.tensor([longest, longest - 5]))


def test_the_first_export_of_a_process_has_the_forms_of_its_opset():
    """torch registers those above opset 10 in its first export: until then `cumsum` has none."""
    code = (
        "from trtconv.export.exporters.recorded.values import plain_form;"
        "print(plain_form('cumsum', 17).__module__, plain_form('bitwise_and', 20).__module__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name[-2:] for name in run.stdout.split()] == ["11", "18"]
