"""Functions that are written out, at the ends of where they are defined."""

import math

import pytest
import torch
import torch.nn.functional as F

from trtconv.export.symbolic import order, short_time
from trtconv.export.symbolic.arithmetic import division, numerics, shifts
from trtconv.export.symbolic.indexing import sums
from trtconv.export.symbolic.mode import symbolic_functions

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
    """TorchScript gives a size as a tensor; a number makes a constant."""
    torchs = getattr(torch, name)
    own = short_time.cosine_window(*coefficients)
    torch.testing.assert_close(own(torchs, torch.tensor(length), periodic), torchs(length, periodic=periodic))
    torch.testing.assert_close(own(torchs, length, periodic), torchs(length, periodic=periodic))


@pytest.mark.parametrize("reduce", ["amax", "amin", "mean", "prod"])
@pytest.mark.parametrize("own", [True, False])
def test_reductions_by_index(reduce, own):
    torch.manual_seed(0)
    x, base, index = torch.randn(5, 6), torch.full((5, 6), 2.0), torch.randint(0, 6, (5, 6))
    x[0, 0], x[1, 1] = math.inf, -math.inf

    def both():
        rows = torch.ones(4, 6).index_reduce(0, index[:, 0] % 4, x, reduce, include_self=own)
        return base.scatter_reduce(1, index, x, reduce, include_self=own), rows

    with symbolic_functions():
        written = both()
    torch.testing.assert_close(written, both(), equal_nan=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keep", [True, False])
def test_the_most_frequent(dim, keep):
    torch.manual_seed(0)
    for x in (torch.randn(5, 6).round(), torch.randint(-2, 3, (6, 5))):
        own, torchs = order.mode(torch.mode, x, dim, keep), x.mode(dim, keep)
        assert torch.equal(own.values, torchs.values)
        assert torch.equal(own.indices, torchs.indices)


def test_whole_quotients_are_cut_off_exactly():
    a = torch.tensor([2147483647, -2147483648, 621491000, -7, 7, 0], dtype=torch.int32)
    for b in (torch.tensor([3, 5, -7, 2, -2, 4], dtype=torch.int32), 9, -9):
        assert torch.equal(
            division.divide(torch.div, a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="trunc")
        )


def test_signs_and_numbers_beside_nan():
    x = torch.tensor([-0.0, 0.0, -1.0, 2.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40])
    assert torch.equal(numerics.signbit(torch.signbit, x), torch.signbit(x))
    for own, torchs in ((numerics.fmax, torch.fmax), (numerics.fmin, torch.fmin)):
        torch.testing.assert_close(own(torchs, x, x.flip(0)), torchs(x, x.flip(0)), equal_nan=True)
    y = x * 100
    torch.testing.assert_close(numerics.logaddexp2(None, x, y), torch.logaddexp2(x, y), equal_nan=True)
    assert torch.equal(numerics.rrelu(F.rrelu, x[:6]), F.rrelu(x[:6]))
    for other in (x.nan_to_num(2.0).flip(0), -0.0, 3.0):
        torch.testing.assert_close(
            numerics.copysign(None, x, other), torch.copysign(x, torch.as_tensor(other)), equal_nan=True
        )
    assert numerics.rrelu(F.rrelu, x, training=True) is NotImplemented


def test_lerp_beside_infinities():
    values = torch.tensor([-math.inf, -1.0, 0.0, 0.25, 0.5, 2.0, math.inf])
    parts = torch.meshgrid(values, values, values, indexing="ij")
    torch.testing.assert_close(numerics.lerp(torch.lerp, *parts), torch.lerp(*parts), equal_nan=True)
    assert numerics.lerp(torch.lerp, values, values, 0.5) is NotImplemented


def test_put_and_roll():
    x = torch.arange(12.0).view(3, 4)
    index, values = torch.tensor([0, -1, 0]), torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(sums.put(None, x, index, values, True), x.put(index, values, accumulate=True))
    shift = torch.tensor(-5)
    assert torch.equal(order.roll(None, x, (shift, 1), (1, 0)), x.roll((-5, 1), (1, 0)))


def test_the_remainder_by_a_size_is_one_by_a_tensor():
    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.arange(20) % x.shape[0] + x.long().sum()

    with symbolic_functions():
        program = torch.export.export(Net(), (torch.ones(5),), dynamic_shapes=({0: torch.export.Dim("N", min=2)},))
    targets = {n.target for n in program.graph.nodes}
    assert torch.ops.aten.remainder.Tensor in targets
    assert torch.ops.aten.remainder.Scalar not in targets


@pytest.mark.parametrize(
    ("dtype", "bits"), [(torch.int64, 62), (torch.int64, 63), (torch.int32, 30), (torch.int32, 31)]
)
def test_shifts_by_all_bits(dtype, bits):
    ends = torch.iinfo(dtype)
    x = torch.tensor([ends.min, ends.max, -1, 0, 1, 5], dtype=dtype)
    assert torch.equal(shifts.shift_right(None, x, bits), x >> bits)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_weights_are_quantised_by_channel_to_a_narrow_range(axis):
    torch.manual_seed(0)
    x = torch.randn(4, 3, 5)
    scale = torch.rand(x.shape[axis]) * 0.02 + 0.001
    zero = torch.arange(x.shape[axis], dtype=torch.int32) - 1
    expected = torch.fake_quantize_per_channel_affine(x, scale, zero, axis % 3, -127, 127)
    assert torch.equal(numerics.fake_quantize_by_channel(None, x, scale, zero, axis, -127, 127), expected)
    assert numerics.fake_quantize_by_channel(None, x, scale, zero, axis, -128, 127) is NotImplemented


def test_whole_numbers_are_clamped_to_fractions():
    i = torch.arange(-5, 6, dtype=torch.int32)
    for bounds in ((-0.5, 2.5), (None, 2.5), (-3, 2.5), (0.5, None)):
        clamped = numerics.clamp(torch.clamp, i, *bounds)
        assert clamped.dtype == torch.float32
        assert torch.equal(clamped, torch.clamp(i, *bounds))
    assert numerics.clamp(torch.clamp, i, -3, 2) is NotImplemented
