"""Deviations of rows of one value are zero, in files too; others are torch's."""

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.symbolic.arithmetic.deviations import deviation

VALUES = (0.1, 0.3, 0.7, 3.3, 114 / 255, -100.1, 250.3, 1000 / 3)
NAMES = {"var": {"root": False}, "std": {"root": True}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), {}), ((False,), {}), ((1,), {}), ((-1, False), {}), (((0, 2), True, True), {}),
        ((), {"dim": (1, -1), "correction": 0, "keepdim": True}), ((), {"dim": 1, "correction": 2}),
    ],
)  # fmt: skip
def test_they_are_torchs(name, arguments, named):
    for shape in ((3, 4, 5), (2, 1, 3), (1, 6, 2)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 3 + 2
        expected = getattr(torch, name)(x, *arguments, **named)
        torch.testing.assert_close(deviation(**NAMES[name])(None, x, *arguments, **named), expected, equal_nan=True)
        pair = deviation(**NAMES[name], with_mean=True)(None, x, *arguments, **named)
        for ours, theirs in zip(pair, getattr(torch, f"{name}_mean")(x, *arguments, **named), strict=True):
            torch.testing.assert_close(ours, theirs, equal_nan=True)
    half = torch.randn(4, 300).half() * 100
    torch.testing.assert_close(deviation(**NAMES[name])(None, half, 1), getattr(half, name)(1))
    assert deviation(**NAMES[name])(None, half.to(torch.complex64)) is NotImplemented


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_rows_of_one_value_have_none(exporter, export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        s, m = torch.std_mean(x, 1, keepdim=True)
        return x.std(1) > 0, (x - m) / (s + 1e-8), torch.var(x, (1, 2), correction=0)
""")
    result = export("net.py:Net", ["x:float32[N,T,4]"], "N=1:2:4 T=2:9:20", exporter=exporter)
    assert result.exporter == exporter
    runner = OnnxRuntimeRunner(result.model)
    for value in VALUES:
        for length in (2, 7, 13, 20):
            for output in runner({"x": np.full((1, length, 4), value, np.float32)}).values():
                assert not output.any(), (value, length)


def test_what_a_mask_leaves_may_be_nothing(export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        return x[x > 0].std(), x[x[:, 0] > 0].var(0), x[x > 0].mean() / 3
""")
    result = export("net.py:Net", ["x:float32[N,4]"], "N=1:3:9")
    runner = OnnxRuntimeRunner(result.model)
    nothing, one = np.full((3, 4), -1.0, np.float32), np.full((5, 4), 0.1, np.float32)
    assert all(np.isnan(output).all() for output in runner({"x": nothing}).values())
    deviation_of_one, variance_of_one, third = runner({"x": one}).values()
    assert not deviation_of_one.any()
    assert not variance_of_one.any()
    np.testing.assert_allclose(third, 0.1 / 3, rtol=1e-6)
