"""Of equal elements the first comes first, in the original as in the exported file."""

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.module.noise.ranked import stable_sorts
from trtconv.export.module.runner import ModuleRunner

TIED = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5] * 40)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (lambda x: x.topk(81).indices, [i for i in range(200) if i % 5 in (1, 3)] + [4]),
        (lambda x: x.topk(3, largest=False).indices, [0, 2, 5]),
        (lambda x: x.sort().indices[:3], [0, 2, 5]),
        (lambda x: x.argsort(descending=True)[:3], [1, 3, 6]),
        (lambda x: x.kthvalue(82).indices, 9),
        (lambda x: x.median(0).indices, 99),
    ],
)
def test_the_first_of_equal_elements_comes_first(rank, expected):
    with stable_sorts():
        assert rank(TIED).tolist() == expected


@pytest.mark.parametrize("keepdim", [True, False])
def test_results_lie_in_memory_as_torchs_own(keepdim):
    x = torch.randn(2, 7, 3).transpose(1, 2)
    for dim in range(3):
        for rank in (lambda d: x.topk(2, d), lambda d: x.kthvalue(2, d, keepdim), lambda d: x.median(d, keepdim)):
            own = rank(dim)
            with stable_sorts():
                assert [t.stride() for t in rank(dim)] == [t.stride() for t in own]


def test_a_median_of_nan_stays_one():
    with stable_sorts():
        assert torch.tensor([1.0, float("nan"), 2.0]).median(0).values.isnan()


class Peaks(torch.nn.Module):
    def forward(self, x):
        return x.round().topk(5).indices


def test_a_runner_that_has_seen_a_sort_keeps_the_order():
    runner = ModuleRunner(Peaks())
    x = np.random.default_rng(0).normal(size=(3, 400)).astype(np.float32)
    first = np.argsort(-x.round(), axis=1, kind="stable")[:, :5]
    outputs, _ = runner.counted({"x": x})
    assert runner.ranks
    np.testing.assert_array_equal(*outputs.values(), first)
    np.testing.assert_array_equal(*runner({"x": x}).values(), first)


def test_ties_all_over_convert(export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        heat = x.sigmoid()
        peaks = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        scores, index = peaks.flatten(1).topk(10)
        return torch.stack((scores, (index // x.shape[2]).float(), (index % x.shape[2]).float()), -1)
""")
    result = export("net.py:Net", ["x:float32[N,4,H]=-3:3"], "N=1:2:3 H=6:9:12")
    x = np.zeros((1, 4, 8), np.float32)
    assert OnnxRuntimeRunner(result.model)({"x": x})["output"][0, :, 2].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


class Best(torch.nn.Module):
    def forward(self, x):
        values, order = x.sort(-1, descending=True)
        return values, order, x.topk(3, -1, sorted=True)[1], x.kthvalue(2, -1).values, x.median(-1)[0]


def test_nearly_equal_elements_change_places():
    """Two that part by a rounding in half of the runs, those further apart in none, and equal ones where asked."""
    runner = ModuleRunner(Best())
    close = np.float32(1.0) - np.float32(2.0**-24)
    x = np.array([[0.5, close, 0.25, 1.0, 0.25, 0.75]], np.float32)
    assert runner.reranked(0, ties=True) is None
    outputs, _ = runner.counted({"x": x})
    values, order = (v[0] for v in list(outputs.values())[:2])
    orders = {}
    for ties in (False, True):
        runs = [[v[0] for v in runner.reranked(s, ties)({"x": x}).values()] for s in range(24)]
        for run in runs:
            np.testing.assert_array_equal(x[0, run[1]], run[0])
            assert set(run[2]) == {1, 3, 5}
            assert set(run[1][2:4]) == {5, 0}
            assert run[3] == 0.25
            assert run[4] == 0.5
        orders[ties] = {tuple(run[1]) for run in runs}
    assert orders[False] == {(3, 1, 5, 0, 2, 4), (1, 3, 5, 0, 2, 4)}
    assert orders[True] == {(*a, 5, 0, *b) for a in ((3, 1), (1, 3)) for b in ((2, 4), (4, 2))}
    np.testing.assert_array_equal(values, x[0, order])
