"""Whole numbers of sizes beyond 64 bits are refused with their line; powers below are exact at every size."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.sizes.integer_powers import write_powers_as_products
from trtconv.export.sizes.whole_numbers import BeyondIntegersError

NET = """
class Net(nn.Module):
    def forward(self, x, ids):
        n = x.shape[1]
        m = {formula}
        return torch.where((ids == m)[:, None, None], -1.0, x)
"""
INPUTS, SPACE = ["x:float32[N,T,4]", "ids:int64[N]=0:1000000"], "N=1:2:4 T=3:9:35"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "formula",
    [
        "n * 6364136223846793005 % 1000003",
        "n ** 13 % 9973",
        "3 ** n % 9973",
        "(n << 60) % 97",
        "n * n * n * n * 10 ** 15 % 97",
    ],
)
def test_beyond_64_bits(write_module, export, formula):
    path = write_module(NET.format(formula=formula))
    with pytest.raises(BeyondIntegersError) as error:
        export(f"{path}:Net", INPUTS, SPACE)
    assert error.value.where.endswith("net.py:9")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("formula", "number"),
    [
        ("n ** 12 % 9973", lambda n: n**12 % 9973),
        ("n * 1103515245 % 65536", lambda n: n * 1103515245 % 65536),
        ("(1 << n) % 9973", lambda n: (1 << n) % 9973),
        # Beyond 64 bits on the other path alone.
        ("n ** 13 % 9973 if n < 20 else n", lambda n: n**13 % 9973 if n < 20 else n),
    ],
)
def test_within_64_bits_at_every_size(write_module, export, formula, number):
    result = export(f"{write_module(NET.format(formula=formula))}:Net", INPUTS, SPACE)
    run = OnnxRuntimeRunner(result.model)
    for n in range(3, 36):
        (y,) = run({"x": np.zeros((2, n, 4), np.float32), "ids": np.asarray([number(n), number(n) + 1])}).values()
        assert [y[0].max(), y[1].min()] == [-1, 0], n


def power_of(dtype, exponent):
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    signature = f"g ({dtype}[N] x) => ({dtype}[N] y) <int64 e = {{{exponent}}}>"
    return onnx.parser.parse_model(f"{head} {signature} {{ y = Pow(x, e) }}")


@pytest.mark.parametrize("exponent", [2, 3, 7, 12, 13])
def test_powers_are_products(exponent):
    model = power_of("int64", exponent)
    assert write_powers_as_products(model) == 1
    assert {n.op_type for n in model.graph.node} == {"Mul"}
    assert not model.graph.initializer
    x = np.asarray([-3, 0, 2, 23])
    (y,) = OnnxRuntimeRunner(model.SerializeToString())({"x": x}).values()
    assert y.tolist() == [int(v) ** exponent for v in x]


def test_powers_of_floats_stay():
    model = power_of("float", 3)
    assert write_powers_as_products(model) == 0
    assert [n.op_type for n in model.graph.node] == ["Pow"]
