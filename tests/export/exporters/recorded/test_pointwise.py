"""Functions element by element in a recorded file, at infinities, NaN and both zeros; orders of narrow numbers."""

import pytest
import torch
import torch.nn.functional as F

INF, NAN = float("inf"), float("nan")
EDGES = torch.tensor([-INF, -2.5, -1.0, -0.3, -0.0, 0.0, 0.3, 1.0, 2.5, 9e9, INF, NAN])


def cut(x):
    return torch.trunc(x), torch.frac(x), torch.exp2(x), torch.fix(x)


def stepped(x):
    return F.threshold(x, 0.3, 7.0), F.threshold(x, -1.0, -9.0), torch.heaviside(x, x * 0 + 0.5)


def summed(x):
    return (
        torch.addcdiv(x, x + 1, x * 2 + 0.5, value=0.5), torch.addcmul(x, x, x, value=-2.0), torch.addcmul(x, x, x),
    )  # fmt: skip


def joined(x):
    return torch.logaddexp(x[:, None], x[None]), torch.logaddexp(x, x * 0.999)


def signed(x):
    return (
        torch.signbit(x), torch.copysign(x, x.flip(0)), torch.copysign(x[:, None], x[None]), torch.isposinf(x),
        torch.isneginf(x), torch.deg2rad(x), torch.rad2deg(x),
    )  # fmt: skip


def numbers_of_two(x):
    return torch.fmax(x[:, None], x[None]), torch.fmin(x[:, None], x[None]), torch.xlogy(x[:, None], x[None].abs())


@pytest.mark.parametrize("function", [cut, stepped, summed, joined, signed, numbers_of_two])
def test_at_the_edges(function, differing):
    assert not differing(function, EDGES, tolerance=1e-6)


def whole(i):
    return (
        torch.addcmul(i, i, i, value=-2), torch.trunc(i), torch.exp2(i % 7), torch.signbit(i), torch.fmax(i, i.flip(0)),
        torch.fmin(i, i * 2),
    )  # fmt: skip


def test_of_whole_numbers(differing):
    assert not differing(whole, torch.tensor([-5, 0, 3, 2**31]), tolerance=1e-6)


def ordered(x, y):
    return (
        torch.amax(x, 1), torch.amin(x, 1, True), torch.max(x, 1)[0], torch.max(x, 1)[1], torch.min(x, 0)[0],
        torch.max(x), torch.min(x), torch.maximum(x, y), torch.minimum(x, y), torch.where(x > 3, x, y), torch.relu(x),
        torch.clamp(x, 2, 50), torch.argmax(x, 1), torch.argmin(x, 0), torch.masked_fill(x, y > 3, 9),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int16, torch.int8, torch.uint8], ids=str)
def test_orders_of_narrow_numbers(dtype, differing):
    ends = torch.iinfo(dtype)
    x = torch.tensor([[ends.min, 3, ends.max], [5, 100, ends.min]], dtype=dtype)
    assert not differing(ordered, x, x.flip(1).contiguous())


def extremes(x):
    return torch.amax(x, 1), torch.amin(x, 1), torch.max(x, 1)[0]


def test_orders_of_booleans(differing):
    assert not differing(extremes, torch.tensor([[True, False, False], [False, False, False]]))
