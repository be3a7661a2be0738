"""Numbers that a loop computes in FP64 are what Python's are where they meet a tensor, or a note says where not."""


import numpy as np
import onnxruntime
import pytest
import torch

from trtconv.export.exporters.scripted.decisions import inexact_decisions
from trtconv.export.exporters.scripted.rounding import Rounding, of_constant, roundings, walk

LOOP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 0.3

    def forward(self, x, levels):
        ys, n, k, decay = [], x.shape[1], 0, 1.0
        for t in range({counts}):
            {body}
            k = k + 1
            decay = decay * 0.9
        return torch.stack(ys, 1), levels + k
"""
TIES = [
    ("n", "ys.append(x[:, t] >= t * 0.3)", [t * 0.3 for t in range(30)]),
    ("n", "ys.append(x[:, t] >= t * self.rate)", [t * 0.3 for t in range(30)]),
    ("n", "ys.append(torch.where(x[:, t] > 1 - 0.1 * k, 1.0, 0.0))", [1 - t * 0.1 for t in range(30)]),
    ("n", "ys.append(x[:, t].masked_fill(x[:, t] == 0.3 * t, 9.0))", [t * 0.3 for t in range(30)]),
    ("n", "ys.append(levels * 0.1 == t * 0.1)", [0.0] * 30),
    ("n", "ys.append(x[:, t] <= decay)", [0.9**t if t < 2 else None for t in range(30)]),
    ("n - 1, -1, -1", "ys.append(x[:, t] >= t * 0.3)", [t * 0.3 for t in range(30)]),
    ("2, n, 3", "ys.append(torch.stack([x[:, t], x[:, 0]]).max(0)[0] >= t * 0.7)", [t * 0.7 for t in range(30)]),
    ("n", "ys.append(x[:, t] * (2.0 if t < n * 0.28 else 1.0))", [1.0] * 25),
    ("n", "ys.append(x[:, int(t * 1.16) if t * 1.16 < n else 0])", list(range(30))),
    ("n", "ys.append(torch.floor(x[:, t] * 0 + t * 1.16))", [1.0] * 30),
]


def _decays():
    values, number = [], 1.0
    for _ in range(30):
        values.append(number)
        number = number * 0.9
    return values


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("counts", "body", "values"), TIES)
def test_numbers_are_rounded_once_where_they_meet_tensors(counts, body, values, write_module, export, load):
    path = write_module(LOOP.format(counts=counts, body=body))
    values = _decays() if None in values else values
    length = len(values)
    spec = ["x:float32[N,T]", "levels:int64[N]=0:300"]
    result = export("net.py:Net", spec, f"N=2:2:3 T={length - 1}:{length}:{length}", exporter="torchscript")
    assert not any("in FP64" in note for note in result.notes)
    rows = np.array([values, values], np.float32)
    levels = np.arange(2 if "levels" not in body else 300)
    rows = np.repeat(rows[:1], len(levels), 0)
    module = load(path).Net()
    with torch.no_grad():
        expected = module(torch.from_numpy(rows), torch.from_numpy(levels))[0].numpy()
    session = onnxruntime.InferenceSession(str(result.model))
    actual, _ = session.run(None, {"x": rows, "levels": levels})
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("ys.append(x[:, t] >= int(levels[0]) * 0.3)", "ys.append(x[:, t] >= int(levels[0]) * 0.3)"),
        ("y = x[:, t] - float(x[0, 0]) * 0.3\n            ys.append(torch.floor(y))", "torch.floor(y)"),
    ],
)
def test_a_comparison_that_has_no_table_is_told_with_its_line(body, line, write_module, export):
    write_module(LOOP.format(counts="n", body=body))
    spec = ["x:float32[N,T]", "levels:int64[N]=1:30"]
    result = export("net.py:Net", spec, "N=1:2:3 T=3:5:6", exporter="torchscript")
    (note,) = [n for n in result.notes if "in FP64" in n]
    assert line in note
    assert "net.py:" in note


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("dtype", "body"),
    [
        ("float16", "ys.append(x[:, t] >= t * 0.3)"),
        ("float64", "ys.append(x[:, t] >= t / n)"),
    ],
)
def test_numbers_that_meet_other_types_have_no_table_and_are_told(dtype, body, write_module, export):
    """FP16(0.9) is 0.8999, and what is fed as that is not FP32(0.9)."""
    write_module(LOOP.format(counts="n", body=body).replace("decay = decay * 0.9", "pass"))
    result = export("net.py:Net", [f"x:{dtype}[N,T]", "levels:int64[N]"], "N=1:2:3 T=3:5:6", exporter="torchscript")
    assert any("in FP64" in note and "net.py:" in note for note in result.notes)


SCRIPTED = """
class Steps(nn.Module):
    def forward(self, x):
        y = x * 0
        for t in range(x.shape[1]):
            y = torch.where(x >= t * 0.3, y + 1, y)
        return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.jit.script(Steps())

    def forward(self, x):
        return self.steps(x)
"""


@pytest.mark.slow
def test_a_script_of_the_users_own_keeps_its_numbers_and_is_told(write_module, export):
    write_module(SCRIPTED)
    result = export("net.py:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:5:6", exporter="torchscript")
    assert any("in FP64" in note and "t * 0.3" in note for note in result.notes)


def test_what_only_scales_values_is_not_told():
    def scaled(x, k: int):
        for t in range(x.shape[1]):
            x = torch.tanh(x * (t * 0.3) * (k * 0.7))
        return x >= 0.5

    assert inexact_decisions(torch.jit.script(scaled).inlined_graph) == ()


@pytest.mark.parametrize(
    ("value", "rounding"),
    [(0.25, Rounding.SHORT), (1e-3, Rounding.ONCE), (1 + 2**-20, Rounding.EXACT), (1e300, Rounding.ONCE)],
)
def test_constants_are_as_exact_as_fp32_has_them(value, rounding):
    assert of_constant(value) is rounding


def test_a_quotient_of_sizes_is_rounded_once_and_compared_with_halves():
    def shares(x, k: int):
        n = x.shape[0]
        return k / n, k / n > 0.5, k / n > 0.3, 1 - k / n, k * 0.5, k * 0.3, k / 4 + 1

    graph = torch.jit.script(shares).graph
    levels = roundings(graph)
    (results,) = (n for n in walk(graph) if n.kind() == "prim::TupleConstruct")
    actual = [levels[i.unique()] for i in results.inputs()]
    short, exact, once, twice = Rounding
    assert actual == [once, short, twice, twice, exact, twice, once]
    assert short < exact
