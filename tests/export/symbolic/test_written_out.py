"""Functions that no exporter has, written with those that it has: the same as torch's at values that try them."""

import math

import pytest
import torch
from torch import nn

from trtconv.export.symbolic import grids, linear_algebra, numerics, order
from trtconv.export.symbolic.mode import symbolic_functions


def test_kronecker_of_other_ranks():
    p, q = torch.randn(2, 3, 4), torch.randn(3, 2)
    assert torch.equal(linear_algebra.kronecker(None, p, q), torch.kron(p, q))
    assert torch.equal(linear_algebra.kronecker(None, q, p), torch.kron(q, p))


def test_blocks_of_vectors_numbers_and_other_types():
    blocks = [torch.randn(2, 3), torch.arange(3), torch.tensor(2.0), torch.randn(1, 1)]
    assert torch.equal(linear_algebra.block_diagonal(None, *blocks), torch.block_diag(*blocks))


@pytest.mark.parametrize("shape", [(3, 3), (4, 5)])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradients(shape, edge_order):
    x = torch.randn(shape)
    for own, torchs in zip(
        grids.gradient(None, x, spacing=(0.3, 2.0), dim=(0, 1), edge_order=edge_order),
        torch.gradient(x, spacing=(0.3, 2.0), dim=(0, 1), edge_order=edge_order),
        strict=True,
    ):
        torch.testing.assert_close(own, torchs)


def test_gradient_along_places_that_are_not_even_is_left_to_torch():
    x = torch.randn(4)
    assert grids.gradient(None, x, spacing=(torch.tensor([0.0, 1.0, 3.0, 4.0]),)) is NotImplemented


def test_nanmedian_of_rows_without_numbers():
    x = torch.randn(5, 6)
    x[0, 1:], x[1], x[2, 3], x[3, :3] = math.nan, math.nan, math.nan, math.inf
    torch.testing.assert_close(order.nanmedian(None, x, 1).values, torch.nanmedian(x, 1).values, equal_nan=True)
    torch.testing.assert_close(order.nanmedian(None, x), torch.nanmedian(x))


def test_erfinv_keeps_its_digits_at_the_ends():
    x = torch.cat([torch.linspace(-1, 1, 4001), torch.tensor([1 - 2**-24, 1e-7, 1e-30, -0.0, 1.5, math.nan])])
    expected = torch.erfinv(x.double())
    torch.testing.assert_close(numerics.erfinv(None, x).double(), expected, rtol=3e-7, atol=0.0, equal_nan=True)


def test_frexp_beside_every_power_of_two():
    powers = 2.0 ** torch.arange(-149, 128)
    below = torch.nextafter(powers[23:], torch.tensor(0.0))
    x = torch.cat([powers, -powers, below, torch.tensor([0.0, -0.0, 3.4e38, math.inf, math.nan])])
    mantissa, exponent = numerics.frexp(None, x)
    expected = torch.frexp(x)
    torch.testing.assert_close(mantissa, expected.mantissa, rtol=0.0, atol=0.0, equal_nan=True)
    assert torch.equal(exponent, expected.exponent)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_lstm_with_projections_and_states(both_ways, bias):
    torch.manual_seed(0)
    layer = nn.LSTM(4, 6, 2, proj_size=3, bidirectional=both_ways, bias=bias, batch_first=True)
    ways = 2 if both_ways else 1
    x, states = torch.randn(2, 5, 4), (torch.randn(2 * ways, 2, 3), torch.randn(2 * ways, 2, 6))
    with torch.no_grad():
        expected, with_states = layer(x), layer(x, states)
        with symbolic_functions():
            torch.testing.assert_close(layer(x), expected)
            torch.testing.assert_close(layer(x, states), with_states)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(size, upper):
    torch.manual_seed(size)
    a = torch.randn(4, size, size, dtype=torch.float64)
    x = a @ a.mT + torch.eye(size)
    # In FP64: LAPACK goes by blocks, so that its sums have another order.
    torch.testing.assert_close(
        linear_algebra.cholesky(None, x, upper=upper), torch.linalg.cholesky(x, upper=upper), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_trapezoids(dim):
    torch.manual_seed(0)
    y = torch.randn(4, 5, 6)
    places = torch.randn(y.shape[dim]).cumsum(0)
    for rule, torch_rule in (
        (grids.trapezoid, torch.trapezoid),
        (grids.trapezoid, torch.trapz),
        (grids.cumulative_trapezoid, torch.cumulative_trapezoid),
    ):
        torch.testing.assert_close(rule(None, y, dim=dim), torch_rule(y, dim=dim))
        torch.testing.assert_close(rule(None, y, dx=0.3, dim=dim), torch_rule(y, dx=0.3, dim=dim))
        torch.testing.assert_close(rule(None, y, places, dim=dim), torch_rule(y, places, dim=dim))
        torch.testing.assert_close(
            rule(None, y, y.abs().cumsum(dim), dim=dim), torch_rule(y, y.abs().cumsum(dim), dim=dim)
        )
