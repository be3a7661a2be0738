"""What the recording exporter has no form of, recorded by the steps that torch defines it by: at lengths not traced."""

import io

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trtconv.export.exporters.recorded.operators import recorded_forms
from trtconv.export.symbolic.mode import symbolic_functions

OPSET = 17


def neighbours(x, i):
    t = x.shape[1]
    return (
        torch.diff(x, dim=1), torch.diff(i, n=2, dim=1), torch.diff(x > 0, dim=1),
        torch.diff(x, dim=1, prepend=x[:, :1], append=x[:, -1:]), torch.rot90(x, 1, (1, 2)), torch.rot90(x, 3, (1, 2)),
        torch.fliplr(x), F.layer_norm(x.transpose(1, 2), (t,)), F.layer_norm(x, x.shape[1:]), F.rms_norm(x, (4,)),
        x.slice_scatter(x[:, :2] * 2, 1, 0, 2), x.select_scatter(x[:, 0] * 2, 1, 1), torch.ravel(x), torch.msort(x),
    )  # fmt: skip


def indexed(x, i):
    rows, back = torch.arange(x.shape[0]), i[:, 0].abs() % 3
    last, y = torch.full_like(rows, -1), x.clone()
    y[rows, -1 - back] = 7.0
    return (
        x[rows, -1 - back], x[rows, last], x[rows, back], x[rows[:, None], :, torch.tensor([-1, 0, -3])], y,
        x[..., rows % 4, last], x.take_along_dim(i[..., None] % 3, 1),
    )  # fmt: skip


def element_by_element(x, i):
    y = x.flip(1)
    return (
        torch.isclose(x, x.round()), torch.isclose(x, y, rtol=0.3), torch.isposinf(1 / x.round()),
        torch.isneginf(-1 / x.round().abs()), torch.isreal(x), torch.signbit(x), torch.sgn(x), torch.copysign(x, y),
        torch.xlogy(x.round(), x.abs()), torch.sinc(x.round() / 2), torch.special.entr(x), torch.erfc(x),
        torch.expm1(x), torch.exp2(x), torch.deg2rad(x), torch.rad2deg(x), torch.float_power(x, 2), +x,
        torch.special.ndtr(x), torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.hypot(x, y), torch.fmax(x, y),
        torch.heaviside(x.round(), y), torch.addcdiv(x, y, x * x + 1), i << (i.abs() % 5), i >> (i.abs() % 70),
        torch.absolute(x).clip_(0.1, 0.7), torch.greater(x, y), torch.subtract(x, y, alpha=2),
    )  # fmt: skip


def summed(x, i):
    holes = torch.where(x > 1, float("nan"), x)
    square = x[0].t() @ x[0]
    return (
        holes.nansum(1), holes.nanmean(1), torch.count_nonzero(x.round(), 1), torch.dist(x, x.flip(1)),
        torch.inner(x, x[0]), torch.addmv(x[0, :, 0], x[0], x[0, 0], alpha=2), torch.addr(x[0], x[0, :, 0], x[0, 0]),
        torch.addbmm(x[0] @ x[0].t(), x, x.transpose(1, 2), beta=0.5), torch.diag_embed(x), torch.diag(square),
        torch.trace(square), torch.matrix_power(square, 3), F.bilinear(x, x, torch.ones(3, 4, 4), torch.ones(3)),
        torch.hsplit(x.transpose(1, 2), 2)[1], torch.dsplit(x, 2)[1], torch.column_stack((x[0], x[0])),
        torch.dstack((x, x)), *torch.frexp(x), torch.renorm(x, 2, 2, 1.0),
    )  # fmt: skip


@pytest.mark.parametrize("function", [neighbours, indexed, element_by_element, summed])
def test_at_lengths_that_were_not_traced(function):
    class Net(nn.Module):
        def forward(self, x, i):
            if not torch.jit.is_tracing():
                return function(x, i)
            with symbolic_functions():
                return (*function(x, i), x.sum() + i.sum())

    net, file, names = Net(), io.BytesIO(), ["x", "i"]
    axes = {name: {0: "N", 1: "T"} for name in names}
    with torch.no_grad(), recorded_forms(OPSET):
        torch.onnx.export(
            net, inputs(2, 6), file, dynamo=False, opset_version=OPSET, input_names=names, dynamic_axes=axes
        )
    session = onnxruntime.InferenceSession(file.getvalue())
    for sizes in ((2, 6), (1, 9), (3, 5)):
        x, i = inputs(*sizes)
        outputs = session.run(None, {"x": x.numpy(), "i": i.numpy()})
        for index, (own, expected) in enumerate(zip(outputs, net(x, i), strict=False)):
            assert own.dtype == expected.numpy().dtype, index
            np.testing.assert_allclose(own, expected.numpy(), rtol=1e-4, atol=1e-5, err_msg=f"{index} at {sizes}")


def inputs(n, t):
    torch.manual_seed(t)
    x = torch.randn(n, t, 4) * 2
    x[0, 0] = torch.tensor([0.0, -0.0, 1.0, -1.0])
    return x, torch.randint(-20, 20, (n, t))
