"""The handlers compute what torch computes, at every size; and what they make survives both exporters."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from trtconv.core.errors import TrtconvError
from trtconv.export.module.binding import bind_inputs
from trtconv.export.module.flat_module import flat_module
from trtconv.export.symbolic import linear_algebra, order, short_time
from trtconv.export.symbolic import mode as symbolic_mode
from trtconv.export.symbolic.arithmetic import division, numerics, shifts
from trtconv.export.symbolic.indexing import writes
from trtconv.export.symbolic.mode import handlers
from trtconv.export.symbolic.resampling import resize, windows
from trtconv.export.symbolic.resampling.adaptive import pool_to
from trtconv.export.symbolic.resampling.antialias import resize_antialiased, resize_linear


@pytest.mark.parametrize("size", range(1, 24))
@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 10, 13])
def test_adaptive_pools_are_exact(size, outputs):
    torch.manual_seed(size)
    x = torch.randn(2, 3, size, size + 4)
    torch.testing.assert_close(pool_to(x, [outputs, 3], "average"), F.adaptive_avg_pool2d(x, (outputs, 3)))
    torch.testing.assert_close(pool_to(x, [outputs, None], "max"), F.adaptive_max_pool2d(x, (outputs, None)))
    # Means of halves are what they are in torch to the last bit, and what is cut from them is the same.
    halves = torch.randint(-8, 9, x.shape) / 2
    expected = F.adaptive_avg_pool2d(halves, (outputs, 3))
    assert torch.equal(pool_to(halves, [outputs, 3], "average"), expected)
    assert pool_to(halves.half() * 4000, [outputs, 3], "average").isfinite().all()


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(5, 2, 1), (4, 4, 0), (7, 1, 3), (3, 5, 1)])
@pytest.mark.parametrize("size", [9, 16, 31])
def test_windows_of_a_plain_pool(kernel, stride, padding, size):
    x = torch.randn(2, 3, size)
    outputs = (size + 2 * padding - kernel) // stride + 1
    start = torch.arange(outputs) * stride - padding
    low, high = start.clamp(min=0), (start + kernel).clamp(max=size)
    counted = F.avg_pool1d(x, kernel, stride, padding)
    torch.testing.assert_close(windows.average(x, [windows.Windows(-1, low, high, kernel)]), counted)
    clipped = F.avg_pool1d(x, kernel, stride, padding, count_include_pad=False)
    own_counts = windows.Windows(-1, low, high, high - low)
    torch.testing.assert_close(windows.average(x, [own_counts]), clipped)
    torch.testing.assert_close(windows.maximum(x, -1, low, high), F.max_pool1d(x, kernel, stride, padding))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(9, 11), (40, 35), (23, 12)])
def test_antialias_by_size(mode, size):
    x = torch.randn(2, 3, 23, 31)
    expected = F.interpolate(x, size=size, mode=mode, antialias=True)
    result = resize_antialiased(x, list(size), [23 / size[0], 31 / size[1]], mode)
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("factor", [0.3, 0.4, 0.77, 1.6])
def test_antialias_by_factor(mode, factor):
    x = torch.randn(2, 3, 23, 31)
    sizes = [int(23 * factor), int(31 * factor)]
    expected = F.interpolate(x, scale_factor=factor, mode=mode, antialias=True)
    torch.testing.assert_close(resize_antialiased(x, sizes, [1 / factor] * 2, mode), expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_order_statistics(size):
    torch.manual_seed(3)
    x = torch.randint(0, 4, (3, size, 4)).float()
    for mine, theirs in (
        (order.median(None, x, 1), x.median(1)),
        (order.kthvalue(None, x, size, 1), x.kthvalue(size, 1)),
    ):
        assert torch.equal(mine.values, theirs.values)
    for mine, theirs in ((order.cummax(None, x, 1), x.cummax(1)), (order.cummin(None, x, 1), x.cummin(1))):
        assert torch.equal(mine.values, theirs.values)
        assert torch.equal(mine.indices, theirs.indices)
    torch.testing.assert_close(order.cumprod(None, x, 1), x.cumprod(1))
    torch.testing.assert_close(order.logcumsumexp(None, x, 1), x.logcumsumexp(1))
    assert torch.equal(order.median(None, x), x.median())
    assert torch.equal(order.median(None, x, 1, True).indices, x.median(1, keepdim=True).indices)
    assert torch.equal(numerics.extreme_of_all(torch.amax, x), x.amax())
    assert torch.equal(numerics.extreme_of_all(torch.amin, x, keepdim=True), x.amin(keepdim=True))
    assert numerics.extreme_of_all(torch.amax, x, 1) is NotImplemented
    assert torch.equal(order.tensor_unfold(None, x, 2, 3, 1), x.unfold(2, 3, 1))


@pytest.mark.parametrize("shape", [(3, 1000), (999,)])
@pytest.mark.parametrize(
    "settings",
    [
        {"n_fft": 400, "hop_length": 160},
        {"n_fft": 24, "hop_length": 7, "win_length": 15},
        {"n_fft": 25, "center": False, "normalized": True},
        {"n_fft": 24, "onesided": False, "pad_mode": "constant"},
    ],
)
def test_short_time_transforms(shape, settings):
    torch.manual_seed(0)
    x, window = torch.randn(shape), torch.hann_window(settings.get("win_length", settings["n_fft"]))
    expected = torch.stft(x, window=window, return_complex=True, **settings)
    result = short_time.stft(None, x, window=window, return_complex=True, **settings)
    torch.testing.assert_close(result, expected, atol=3e-5, rtol=1e-5)
    parts = short_time.stft(None, x, window=window, return_complex=False, **settings)
    assert torch.equal(parts, torch.view_as_real(result))
    bare = torch.stft(x, return_complex=True, **settings, window=torch.ones(len(window)))
    torch.testing.assert_close(short_time.stft(None, x, return_complex=True, **settings), bare, atol=5e-5, rtol=1e-5)


def test_short_time_transforms_of_powers_of_two_stay():
    assert short_time.stft(None, torch.randn(2, 900), 512, return_complex=True) is NotImplemented
    assert short_time.stft(None, torch.randn(2, 900).double(), 400, return_complex=True) is NotImplemented


def test_searching():
    edges, x = torch.tensor([-1.0, 0.0, 0.5, 0.5, 1.0]), torch.tensor([[-2.0, 0.0, 0.5], [0.7, float("nan"), 3.0]])
    for right in (False, True):
        assert torch.equal(order.bucketize(None, x, edges, right=right), torch.bucketize(x, edges, right=right))
    assert torch.equal(order.isin(None, x, edges), torch.isin(x, edges))
    rows = torch.sort(torch.randn(2, 6))[0]
    assert torch.equal(order.searchsorted(None, rows, x), torch.searchsorted(rows, x))


@pytest.mark.parametrize(("size", "out"), [(62, 40), (10, 15), (9, 17), (33, 32), (48, 20), (50, 49)])
def test_nearest_by_index_is_what_torch_picks(size, out):
    x = torch.randn(1, 2, size, size)
    picked = x.index_select(-1, resize._picked(x, size, out, None)).index_select(-2, resize._picked(x, size, out, None))
    assert torch.equal(picked, F.interpolate(x, size=(out, out)))


def test_handlers_leave_static_calls_alone():
    x = torch.randn(1, 2, 8, 8)
    table = handlers()
    assert table["avg_pool2d"](F.avg_pool2d, x, 2) is NotImplemented
    assert table["max_pool2d"](F.max_pool2d, x, [3, 3], 2, 1) is NotImplemented
    assert table["conv2d"](F.conv2d, x, torch.zeros(1, 2, 3, 3)) is NotImplemented
    assert table["interpolate"](F.interpolate, x, None, 2.0, "bilinear") is NotImplemented
    assert table["clamp"](torch.clamp, x, 0.0, 1.0) is NotImplemented


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
def test_linear_algebra(size):
    torch.manual_seed(size)
    x = torch.randn(4, size, size)
    x[0] = torch.eye(size).flip(0)  # every pivot is elsewhere
    b = torch.randn(4, size, 3)
    torch.testing.assert_close(linear_algebra.inverse(None, x), torch.linalg.inv(x), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(linear_algebra.determinant(None, x), torch.linalg.det(x), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(linear_algebra.solve(None, x, b), torch.linalg.solve(x, b), atol=1e-3, rtol=1e-3)
    one = torch.linalg.solve(x, b[..., 0])
    torch.testing.assert_close(linear_algebra.solve(None, x, b[..., 0]), one, atol=1e-3, rtol=1e-3)
    assert torch.equal(linear_algebra.determinant(None, x * 0), torch.zeros(4))


@pytest.mark.parametrize("other", [1.3, -2.5, 7.7, torch.tensor(2.5), torch.tensor([1.3, 2.5, -0.3, 22.05, 0.75])])
def test_remainders_of_whole_numbers_by_decimals(other):
    """`x - floor(x / y) * y` of FP32 is 0 for 20000002 % 2.5, which is 2."""
    x = torch.tensor([100003, 65536, -1000001, 16777217, 20000002], dtype=torch.int32)
    assert torch.equal(division.remainder(None, x, other), torch.remainder(x, other))


def test_remainders_and_shifts():
    x = torch.cat([torch.randn(1000) * 100, torch.arange(-5.0, 5.0) * 0.7])
    for other in (0.7, -0.7, 3.0):
        assert torch.equal(division.remainder(None, x, other), torch.remainder(x, other))
    i = torch.arange(-20, 20)
    assert torch.equal(shifts.shift_right(None, i, 2), i >> 2)
    assert torch.equal(shifts.shift_left(None, i, 3), i << 3)


def test_masked_assignment_and_diagonal():
    x, y = torch.randn(3, 4, 5), torch.randn(3, 4, 5)
    y.copy_(x)
    y[x > 0] = 0.5
    assert torch.equal(writes.set_item(None, x.clone(), x > 0, 0.5), y)
    rows = torch.tensor([True, False, True])
    z = x.clone()
    z[rows] = -1.0
    assert torch.equal(writes.set_item(None, x.clone(), rows, -1.0), z)
    assert order.diagonal(None, x, 0, 1, 2) is NotImplemented


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 33])
def test_fourier_transforms(size, norm):
    torch.manual_seed(size)
    x, z = torch.randn(2, size, 6), torch.randn(2, size, 6, dtype=torch.complex64)
    table, close = handlers(), torch.testing.assert_close
    close(table["fft_fft"](None, z, None, 1, norm), torch.fft.fft(z, dim=1, norm=norm), atol=1e-4, rtol=1e-4)
    close(table["fft_ifft"](None, x, None, 1, norm), torch.fft.ifft(x, dim=1, norm=norm), atol=1e-4, rtol=1e-4)
    close(table["fft_rfft"](None, x, None, 1, norm), torch.fft.rfft(x, dim=1, norm=norm), atol=1e-4, rtol=1e-4)
    close(table["fft_rfft2"](None, x, norm=norm), torch.fft.rfft2(x, norm=norm), atol=1e-4, rtol=1e-4)
    close(table["fft_fft2"](None, z, norm=norm), torch.fft.fft2(z, norm=norm), atol=1e-4, rtol=1e-4)
    half = torch.fft.rfft(x, dim=1)
    close(table["fft_irfft"](None, half, size, 1, norm), torch.fft.irfft(half, size, 1, norm), atol=1e-4, rtol=1e-4)
    plane = torch.fft.rfft2(x)
    back = torch.fft.irfft2(plane, (size, 6), norm=norm)
    close(table["fft_irfft2"](None, plane, (size, 6), norm=norm), back, atol=1e-4, rtol=1e-4)
    for dim, lengths in ((None, None), (-1, None), ((1, 0), None), (None, (size,)), (None, (4, 6))):
        options = {"dim": dim, "s": lengths, "norm": norm}
        close(table["fft_rfftn"](None, x, **options), torch.fft.rfftn(x, **options), atol=1e-4, rtol=1e-4)
        close(table["fft_irfftn"](None, plane, **options), torch.fft.irfftn(plane, **options), atol=1e-4, rtol=1e-4)
        close(table["fft_ifftn"](None, plane, **options), torch.fft.ifftn(plane, **options), atol=1e-4, rtol=1e-4)
        close(table["fft_fftn"](None, x, **options), torch.fft.fftn(x, **options), atol=1e-4, rtol=1e-4)
    assert table["fft_fftshift"](None, x, (1, 2)) is NotImplemented  # nothing dynamic: torch's own


def test_statistics():
    torch.manual_seed(0)
    x, y = torch.randn(4, 9), torch.randn(4, 9)
    close = torch.testing.assert_close
    close(linear_algebra.covariance(None, x), torch.cov(x))
    close(linear_algebra.correlation(None, x), torch.corrcoef(x))
    close(numerics.logaddexp(None, x * 1e4, y), torch.logaddexp(x * 1e4, y))
    for p in (1.0, 2.0, 3.0, float("inf")):
        close(numerics.cdist(None, x, y, p), torch.cdist(x, y, p), atol=1e-4, rtol=1e-4)
    index = torch.randint(0, 4, (4, 9))
    for own in (True, False):
        result = writes.scatter_reduce(None, x, 1, index, y, "mean", include_self=own)
        close(result, x.scatter_reduce(1, index, y, "mean", include_self=own))


@pytest.mark.parametrize(("size", "out"), [(19, 12), (17, 30), (23, 23), (9, 31)])
def test_linear_resize_by_a_ratio_that_gives_no_whole_size(size, out):
    x, ratio = torch.randn(1, 2, size), (out + 0.4) / size
    expected = F.interpolate(x, scale_factor=ratio, mode="linear")
    result = resize_linear(x, -1, expected.shape[-1], torch.tensor(1 / ratio))
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)


def test_sums_of_exponentials_of_nothing():
    """minus infinity is the logarithm of zero: a path that does not exist."""
    x = torch.tensor([-float("inf"), -float("inf"), 0.5, float("inf")])
    y = torch.tensor([-float("inf"), 1.0, -float("inf"), float("inf")])
    torch.testing.assert_close(numerics.logaddexp(None, x, y), torch.logaddexp(x, y))


def test_angles_on_the_axes():
    """Real spectra have an imaginary part of exactly zero at their ends."""
    steps = torch.tensor([-2.0, -1.0, 0.0, 1.0, 3.0])
    y, x = torch.meshgrid(steps, steps, indexing="ij")
    torch.testing.assert_close(numerics.atan2(None, y, x), torch.atan2(y, x))
    sides = torch.tensor([-0.0, 0.0, -0.0]), torch.tensor([-1.0, -1.0, 2.0])
    torch.testing.assert_close(numerics.atan2(None, *sides), torch.atan2(*sides))
    infinite = torch.tensor([-torch.inf, -torch.inf, torch.inf]), torch.tensor([-1.0, 2.0, -1.0])
    torch.testing.assert_close(numerics.atan2(None, *infinite), torch.atan2(*infinite))
    nothing = torch.full((4,), torch.nan), torch.tensor([-0.0, 0.0, 1.0, -1.0])
    torch.testing.assert_close(numerics.atan2(None, *nothing), torch.atan2(*nothing), equal_nan=True)
    torch.testing.assert_close(numerics.atan2(None, *nothing[::-1]), torch.atan2(*nothing[::-1]), equal_nan=True)
    spectrum = torch.fft.rfft(torch.tensor([[-1.0, 0.0, -1.0, 0.5], [1.0, 2.0, -4.0, 0.0]]))
    torch.testing.assert_close(numerics.angle(None, spectrum), spectrum.angle())


def test_sums_and_products_of_booleans():
    from trtconv.export.symbolic.mode import symbolic_functions

    one, other = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    with symbolic_functions():
        assert torch.equal(one + other, torch.tensor([True, True, True, False]))
        assert torch.equal(torch.mul(one, other), torch.tensor([True, False, False, False]))
        assert torch.equal(one + 1, torch.tensor([2, 2, 1, 1]))


def test_a_stable_order_of_ties():
    ids = torch.tensor([[3, 1, 3, 1, 2, 3]])
    for descending in (False, True):
        actual = order.argsort(torch.argsort, ids, 1, descending, stable=True)
        assert torch.equal(actual, ids.argsort(dim=1, descending=descending, stable=True))
    assert order.argsort(torch.argsort, ids, 1) is NotImplemented


class SplitByKeyword(torch.nn.Module):
    def forward(self, x):
        first, second = torch.tensor_split(x, indices=[2], dim=1)
        parts = torch.tensor_split(x, sections=3, dim=2)
        return first.sum(1) + second.sum(1), parts[0], parts[2]


def test_calls_with_other_keywords_than_a_handler_has():
    from trtconv.export.symbolic.mode import symbolic_functions

    x = torch.randn(2, 5, 7)
    expected = SplitByKeyword()(x)
    with symbolic_functions():
        for one, other in zip(SplitByKeyword()(x), expected, strict=True):
            torch.testing.assert_close(one, other)
        out = torch.empty(2, 5, 7)
        # `out` is a keyword that no handler has.
        torch.log1p(x.abs(), out=out)
    torch.testing.assert_close(out, torch.log1p(x.abs()))


def test_sizes_of_long_formulas_are_refused(monkeypatch):
    class Windows(torch.nn.Module):
        def forward(self, x):
            return F.pad(x, (0, -x.shape[2] % 7)).reshape(x.shape[0], x.shape[1], -1, 7).amax(3)

    flat, x = flat_module(Windows(), bind_inputs(Windows().forward, ["x"])), torch.ones(2, 3, 40)
    shapes = (({2: torch.export.Dim.DYNAMIC},),)
    torch.export.export(flat, (x,), dynamic_shapes=shapes, strict=False)
    monkeypatch.setattr(symbolic_mode, "DEEPEST_SIZE", 2)
    with pytest.raises(TrtconvError, match=r"more than the 2 that torch\.export can follow") as refused:
        torch.export.export(flat, (x,), dynamic_shapes=shapes, strict=False)
    assert "multiples" in refused.value.hint
