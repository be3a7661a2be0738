"""What a file ranks within its own rounding stands in the notes, with its line."""

from __future__ import annotations

import numpy as np
import pytest

from trtconv.export.module.noise.near_ties import in_steps

SORTED = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.score = nn.Linear(16, 1)\n\n"
    "    def forward(self, x):\n        scores = self.score(x).squeeze(-1)\n"
    "        return torch.sort(scores, dim=1, descending=True)\n"
)
BEST = SORTED.replace("torch.sort(scores, dim=1, descending=True)", "scores.argmax(1), scores.topk(2)[0]")


def ties_of(result):
    return [n for n in result.notes if "nearly tied" in n]


def test_a_sort_of_many_scores_is_told_with_line_margin_and_noise(write_module, export):
    result = export(f"{write_module(SORTED)}:Net", ["x:float32[N,T,16]"], "N=1:1:2 T=9000:9500:10000")
    (note,) = ties_of(result)
    assert "net.py:12 (TopK at " in note
    assert "part by " in note
    assert "rounding moves them by " in note


def test_a_clear_choice_is_not_told(write_module, export):
    result = export(f"{write_module(BEST)}:Net", ["x:float32[N,T,16]"], "N=1:2:3 T=4:9:20")
    assert ties_of(result) == []


EXPERTS = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        torch.manual_seed(0)\n"
    "        self.tokens = nn.Embedding(20, 8, padding_idx=0)\n        self.router = nn.Linear(8, 4, bias=False)\n"
    "        self.experts = nn.Parameter(torch.randn(4, 8))\n\n"
    "    def forward(self, ids):\n        x = self.tokens(ids)\n"
    "        gates, chosen = self.router(x).topk(2, -1)\n"
    "        return (self.experts[chosen] * gates.softmax(-1)[..., None]).sum(-2) + x\n"
)


def test_others_of_equal_values_than_the_first_are_told(write_module, export):
    """All experts score the same for a row of padding, and torch takes the last two."""
    result = export(f"{write_module(EXPERTS)}:Net", ["ids:int64[N,T]=0:19"], "N=1:2:3 T=1:3:4")
    (note,) = [n for n in result.notes if "equal values are ranked" in n]
    assert "at zeros" in note
    assert "net.py:15" in note
    without_bias = EXPERTS.replace("bias=False", "bias=True")
    result = export(f"{write_module(without_bias)}:Net", ["ids:int64[N,T]=0:19"], "N=1:2:3 T=1:3:4")
    assert not [n for n in result.notes if "equal values are ranked" in n]


BELOW_A_THRESHOLD = (
    "class Net(nn.Module):\n    def forward(self, x):\n        best, index = x.sigmoid().topk(5)\n"
    "        return index * (best > 0.5)\n"
)
NEIGHBOURS = (
    "class Net(nn.Module):\n    def forward(self, x):\n"
    "        d = torch.cdist(x, x, compute_mode='donot_use_mm_for_euclid_dist')\n"
    "        i = d.topk(3, -1, largest=False)[1]\n"
    "        return x.gather(1, i.flatten(1)[..., None].expand(-1, -1, 3))\n"
)


@pytest.mark.parametrize(
    ("net", "spec", "at"),
    [
        (BELOW_A_THRESHOLD, "x:float32[N,T]=-6:6", "at full"),
        (NEIGHBOURS, "x:float32[N,T,3]=-2:2", " values torch takes others"),
    ],
    ids=["hidden at zeros", "on a grid"],
)
def test_equal_values_are_looked_for_where_they_show(write_module, export, net, spec, at):
    result = export(f"{write_module(net)}:Net", [spec], "N=1:2:3 T=8:12:20")
    (note,) = [n for n in result.notes if "equal values are ranked" in n]
    assert at in note


def test_floats_in_few_steps_stay_in_their_range():
    values = np.linspace(-0.7, 2.9, 50, dtype=np.float32)
    coarse = in_steps(values, 4)
    assert coarse.dtype == np.float32
    assert set(coarse) == set(np.float32([-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 2.9]))
    assert in_steps(np.arange(4), 1).tolist() == [0, 1, 2, 3]
    assert np.isnan(in_steps(np.float32([np.nan, 1, 2]), 1)[0])


SORTED_LENGTHS = (
    "class Net(nn.Module):\n    def forward(self, x, lengths):\n        i = lengths.sort(descending=True{})[1]\n"
    "        return x[i].cumsum(0)[i.sort({})[1]]\n"
)
NUCLEUS = (
    "class Net(nn.Module):\n    def forward(self, x):\n        v, i = x.sort(-1, descending=True)\n"
    "        out = (v.softmax(-1).cumsum(-1) > 0.6)\n"
    "        return x.masked_fill(out.scatter(1, i, out), float('-inf'))\n"
)


def test_sorts_of_equal_values_are_told_unless_they_are_stable(write_module, export):
    """torch's sort on the CPU is stable up to 16 elements by chance."""
    specs, dims = ["x:float32[N,T]=-3:3", "lengths:int64[N]=1:3"], "N=1:4:24 T=3:5:7"
    result = export(f"{write_module(SORTED_LENGTHS.format('', ''))}:Net", specs, dims)
    (note,) = [n for n in result.notes if "equal values are ranked" in n]
    assert "at max (N=24 T=7)" in note
    assert "stable=True" in note
    assert "net.py:7" in note
    stable = SORTED_LENGTHS.format(", stable=True", "stable=True")
    result = export(f"{write_module(stable)}:Net", specs, dims)
    assert not [n for n in result.notes if "equal values are ranked" in n]


def test_an_infinity_in_another_place_is_a_difference(write_module, export):
    result = export(f"{write_module(NUCLEUS)}:Net", ["x:float32[N,V]=-6:6"], "N=1:2:4 V=1:8:20")
    assert [n for n in result.notes if "equal values are ranked" in n]
