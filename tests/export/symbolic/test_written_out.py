"""Functions that no exporter has, written with those that it has: the same as torch's at values that try them."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from trtconv.export.symbolic import convolution, grids, linear_algebra, order, short_time
from trtconv.export.symbolic.arithmetic import division, error_functions, exponents, numerics, shifts
from trtconv.export.symbolic.mode import symbolic_functions
from trtconv.export.symbolic.recording import written_out
from trtconv.export.symbolic.resampling.adaptive import adaptive_pool


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


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantiles_of_rows_without_numbers(q, keepdim):
    x = torch.randn(5, 6)
    x[0, 1:], x[1], x[2, 3], x[3, :3] = math.nan, math.nan, math.nan, 7.0
    for dim in (0, 1, None):
        own = order.nanquantile(None, x, q, dim, keepdim)
        torch.testing.assert_close(own, torch.nanquantile(x, q, dim, keepdim), equal_nan=True)
    assert order.nanquantile(None, x, q, interpolation="nearest") is NotImplemented


def test_the_sign_of_a_nan_is_none():
    x = torch.tensor([math.nan, -math.inf, -0.0, 0.0, 3.0, 1e-45])
    assert torch.equal(numerics.sign(None, x), torch.sign(x))
    assert numerics.sign(None, torch.arange(-1, 2)) is NotImplemented


def test_a_choice_between_masks():
    x = torch.randn(3, 5)
    own = numerics.where(None, x > 0, x > 1, x < -1)
    assert torch.equal(own, torch.where(x > 0, x > 1, x < -1))
    assert numerics.where(None, x > 0, x, x + 1) is NotImplemented


def test_running_products_of_masks_count():
    x = torch.randn(3, 5) > -1
    assert torch.equal(order.cumprod(None, x, 1), torch.cumprod(x, 1))


def test_erfinv_keeps_its_digits_at_the_ends():
    x = torch.cat([torch.linspace(-1, 1, 4001), torch.tensor([1 - 2**-24, 1e-7, 1e-30, -0.0, 1.5, math.nan])])
    expected = torch.erfinv(x.double())
    torch.testing.assert_close(error_functions.erfinv(None, x).double(), expected, rtol=3e-7, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("name", ["erfc", "erfcx", "log_ndtr"])
def test_tails_of_the_error_function_keep_their_digits(name):
    x = torch.cat([torch.linspace(-8.5, 9.0, 40001), torch.tensor([math.inf, -math.inf, math.nan])])
    torchs = getattr(torch.special, name)
    expected, rounded = torchs(x.double()), torchs(x).double()
    own = getattr(error_functions, name)(None, x).double()
    # As exact as torch's own FP32, which for the logarithm in the upper tail is 1e-5.
    rounding = ((rounded - expected) / expected).abs().nan_to_num().max().item()
    torch.testing.assert_close(own, expected, rtol=max(1e-6, 1.5 * rounding), atol=0.0, equal_nan=True)


@pytest.mark.parametrize(("base", "highest"), [(2, 127), (10, 10)])
def test_logarithms_of_whole_powers_are_whole(base, highest):
    function, torchs = (exponents.log2, torch.log2) if base == 2 else (exponents.log10, torch.log10)
    powers = torch.tensor([float(base) ** k for k in range(highest + 1)])
    assert torch.equal(function(None, powers), torch.arange(highest + 1.0))
    x = torch.tensor([0.0, -0.0, -1.0, math.inf, math.nan, 1e-40, 0.3, 999.9999, 1000.0001, 3e38])
    torch.testing.assert_close(function(None, x), torchs(x), rtol=3e-7, atol=0.0, equal_nan=True)
    torch.testing.assert_close(function(None, powers.to(torch.int64)[:7]), torch.arange(7.0), rtol=0.0, atol=0.0)


def test_whole_numbers_are_divided_as_such():
    x = torch.tensor([2_000_000_001, -2_000_000_001, 7, -7], dtype=torch.int32)
    for mode in ("floor", "trunc"):
        assert torch.equal(
            division.divide(None, x, 8, rounding_mode=mode), torch.div(x.long(), 8, rounding_mode=mode).int()
        )
    assert torch.equal(shifts.shift_right(None, x, 3), x >> 3)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("size", "window_size", "length"), [(16, 16, None), (16, 10, 30), (15, 15, None), (9, 9, 200)])
@pytest.mark.parametrize("normalized", [True, False])
def test_signals_from_spectra(center, size, window_size, length, normalized):
    spectrum = torch.randn(2, size // 2 + 1, 12, dtype=torch.complex64)
    window = torch.hamming_window(window_size)
    # A shorter window covers nothing at the ends of a signal that is not centred.
    if not center and window_size < size:
        return
    named = {"center": center, "normalized": normalized, "length": length}
    for x in (spectrum, spectrum[0]):
        expected = torch.istft(x, size, 3, window_size, window, **named)
        actual = short_time.istft(None, x, size, 3, window_size, window, **named)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("include_last", [True, False])
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 3])
def test_bags_by_offsets(include_last, mode, padding):
    bag = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=padding, include_last_offset=include_last)
    ids, offsets = torch.randint(0, 10, (12,)), torch.tensor([0, 5, 5, 9, 12] if include_last else [0, 5, 5, 9])
    expected = bag(ids, offsets)
    with symbolic_functions():
        torch.testing.assert_close(bag(ids, offsets), expected)


@pytest.mark.parametrize(
    "compute",
    [
        lambda m, p: torch.exp(m) * torch.exp(p * 1j),
        lambda m, p: m * (torch.cos(p) + 1j * torch.sin(p)),
        lambda m, p: (p * 1j) + m,
        lambda m, p: m + (1j * p),
    ],
)
def test_complex_numbers_of_python(compute):
    m, p = torch.rand(2, 3), torch.randn(2, 3)
    expected = compute(m, p)
    with symbolic_functions():
        torch.testing.assert_close(compute(m, p), expected)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack", "stack"])
def test_unlike_types_are_joined_as_one(name):
    tensors = [torch.randn(3, 2), torch.arange(6, dtype=torch.int32).reshape(3, 2), torch.ones(3, 2, dtype=torch.bool)]
    expected = getattr(torch, name)(tensors)
    with symbolic_functions():
        torch.testing.assert_close(getattr(torch, name)(tensors), expected, rtol=0.0, atol=0.0)


def test_frexp_beside_every_power_of_two():
    powers = 2.0 ** torch.arange(-149, 128)
    below = torch.nextafter(powers[23:], torch.tensor(0.0))
    x = torch.cat([powers, -powers, below, torch.tensor([0.0, -0.0, 3.4e38, math.inf, math.nan])])
    mantissa, exponent = exponents.frexp(None, x)
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


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_inverses_of_any_scale(rows, scale):
    x = torch.linalg.qr(torch.randn(20, rows, rows))[0] * scale
    exact = torch.linalg.inv(x.double())
    error = (linear_algebra.inverse(None, x).double() - exact).abs().amax() / exact.abs().amax()
    assert error < 1e-6


def test_powers_of_whole_numbers_beyond_doubles():
    x = torch.tensor([-2000, -3, 0, 1, 1999])
    for exponent in (2, 3, 5):
        assert torch.equal(exponents.power(None, x, exponent), x**exponent)
    assert exponents.power(None, x, 0.5) is NotImplemented
    assert exponents.power(None, x.float(), 2) is NotImplemented


@pytest.mark.parametrize("sizes", [(3, 2), (1, 4), (5, 5), (None, 3), 2])
def test_adaptive_maxima_with_their_places(sizes):
    x = torch.randint(0, 9, (2, 3, 11, 7)).float()
    values, index = adaptive_pool(2, "max")(None, x, sizes, return_indices=True)
    expected, places = F.adaptive_max_pool2d(x, sizes, return_indices=True)
    assert torch.equal(values, expected)
    assert torch.equal(index, places)


ROPE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4, 5, dtype=torch.cfloat))

    def forward(self, x):
        turns = torch.outer(torch.arange(x.shape[2]).float(), torch.arange(1, 5).float())
        turned = torch.fft.rfft(x)[..., None] * torch.polar(torch.ones_like(turns), turns)[None, None, :1]
        spectrum = torch.fft.rfft(x)
        mixed = torch.zeros(x.shape[0], 4, x.shape[2] // 2 + 1, dtype=torch.cfloat)
        mixed[:, :, :5] = torch.einsum("bix,iox->box", spectrum[:, :, :5], self.weight)
        whole = torch.cat([spectrum.flip(-1), torch.fft.fftshift(torch.fft.fft(x, dim=2), dim=2)], -1)
        return torch.view_as_real(turned), torch.fft.irfft(mixed, n=x.shape[2]), torch.view_as_real(whole)
"""


@pytest.mark.slow
def test_complex_numbers_that_move_about(export, write_module):
    write_module(ROPE)
    result = export("net.py:Net", ["x:float32[N,4,T]"], "N=1:2:3 T=9:15:24")
    assert result.sizes.tried > 1


@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (1, 12, 7)])
def test_channels_in_turns(shape):
    x = torch.randn(shape)
    assert torch.equal(convolution.channel_shuffle(None, x, 3), F.channel_shuffle(x, 3))


def test_angles_at_zeros_of_either_sign():
    y, x = (v.flatten() for v in torch.meshgrid(*[torch.tensor([-1.0, -0.0, 0.0, 2.0])] * 2, indexing="ij"))
    own, expected = numerics.atan2(None, y, x), torch.atan2(y, x)
    torch.testing.assert_close(own, expected)
    assert torch.equal(torch.signbit(own), torch.signbit(expected))


@pytest.mark.parametrize("shape", [(2, 4, 3), (4, 3)])
@pytest.mark.parametrize("upper", [False, True])
def test_solutions_by_a_factor(shape, upper):
    root, b = torch.randn(2, 4, 4, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    root = root if b.dim() == 3 else root[0]
    factor = torch.linalg.cholesky(root @ root.mT + torch.eye(4), upper=upper)
    own = linear_algebra.cholesky_solve(None, b, factor, upper)
    torch.testing.assert_close(own, torch.cholesky_solve(b, factor, upper))


def test_a_right_side_for_every_matrix_of_a_batch():
    a = torch.randn(3, 4, 4, dtype=torch.float64) + 4 * torch.eye(4)
    for b in (torch.randn(4, 2, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)):
        torch.testing.assert_close(linear_algebra.solve(None, a, b), torch.linalg.solve(a, b))
    # Vectors, since a batch of four of them is what torch sees.
    a, b = torch.randn(4, 4, 4, dtype=torch.float64) + 4 * torch.eye(4), torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(linear_algebra.solve(None, a, b), torch.linalg.solve(a, b))


def test_the_power_zero_of_a_batch():
    x = torch.randn(3, 5, 5)
    assert torch.equal(linear_algebra.matrix_power(None, x, 0), torch.matrix_power(x, 0))
    assert linear_algebra.matrix_power(None, x, 2) is NotImplemented


@pytest.mark.parametrize("dim", [0, -1])
def test_a_trapezoid_of_one_value_is_nothing(dim):
    for y in (torch.randn(1, 1), torch.randn(3, 4), torch.tensor([[math.inf, 1.0], [2.0, 3.0]])):
        own, torchs = grids.trapezoid(None, y, dx=0.5, dim=dim), torch.trapezoid(y, dx=0.5, dim=dim)
        torch.testing.assert_close(own, torchs, equal_nan=True)


def test_a_range_of_a_whole_number_and_a_float_is_of_floats():
    assert torch.equal(grids.arange_of_mixed(torch.arange, -2, 3.0), torch.arange(-2, 3.0))
    assert grids.arange_of_mixed(torch.arange, -2, 3) is NotImplemented


def test_extremes_of_int16():
    x = torch.tensor([[-32768, 5], [7, 32767]], dtype=torch.int16)
    for function in (torch.amax, torch.amin):
        for dim in ((), 1, (0, 1)):
            assert torch.equal(numerics.extreme_of_all(function, x, dim), function(x, dim))


@pytest.mark.parametrize("moved", [(-1, 0), (0, -2), ((-1, 0), (0, -1)), ((1, -1), (-1, 1))])
def test_axes_move_by_negative_positions(moved, monkeypatch):
    monkeypatch.setattr(torch.jit, "is_tracing", lambda: True)
    x = torch.randn(2, 3, 4)
    assert torch.equal(written_out.movedim(None, x, *moved), torch.movedim(x, *moved))
