"""Functions that are written out, at the ends of where they are defined."""

import math

import pytest
import torch

from trtconv.export.symbolic import numerics, order, short_time

X = torch.tensor([[1.0, -math.inf, 2.0, math.inf, 0.5], [-math.inf, -math.inf, 3.0, 100.0, -2.0]])


def test_running_extremes_keep_infinities():
    for own, torchs in ((order.cummax, torch.cummax), (order.cummin, torch.cummin)):
        assert torch.equal(own(torchs, X, 1).values, torchs(X, 1).values)


def test_running_sums_in_logarithms_keep_infinities():
    torch.testing.assert_close(order.logcumsumexp(torch.logcumsumexp, X, 1), torch.logcumsumexp(X, 1))


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-9])
def test_xlog1py_keeps_its_digits_near_zero(scale):
    y = torch.tensor([0.5, 0.0, 0.3, -0.2, math.nan]) * scale
    x = torch.tensor([1.0, 0.0, -2.0, 0.0, 0.0])
    expected = torch.special.xlog1py(x, y)
    own = numerics.xlog1py(torch.special.xlog1py, x, y)
    torch.testing.assert_close(own, expected, rtol=1e-6, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 400])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("hann_window", (0.5, 0.5)),
        ("hamming_window", (0.54, 0.46)),
        ("blackman_window", (0.42, 0.5, 0.08)),
    ],
)
def test_windows_of_a_size(name, coefficients, length, periodic):
    """TorchScript gives a size as a tensor."""
    torchs = getattr(torch, name)
    own = short_time.cosine_window(*coefficients)
    torch.testing.assert_close(own(torchs, torch.tensor(length), periodic), torchs(length, periodic=periodic))
    assert own(torchs, length, periodic) is NotImplemented
