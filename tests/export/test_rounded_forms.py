"""Forms that give other values than torch for a few inputs are told by their lines."""

from __future__ import annotations

import pytest

TOLD = {
    "y = x.clone(); y.expand(2, *y.shape)[0].fill_(2.0); return y": "comes back by a difference",
    "return torch.quantize_per_tensor(x, 0.05, 113, torch.quint8).dequantize()": "half-way between two steps",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("line", "words"), TOLD.items(), ids=["expanded", "quantised"])
def test_they_are_told(write_module, export, line, words):
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n        {line}\n")
    notes = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=4:9:40").notes
    assert any(words in note and "net.py:" in note for note in notes)


HELD = """
        y = x[:, :1].clone()
        z = y.expand(-1, x.shape[1], -1).contiguous()
        z.clamp_(-1, 1)
        return y, z"""


@pytest.mark.slow
def test_an_expanded_view_of_one_size_is_told_too(write_module, export):
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):{HELD}\n")
    notes = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=1:9:40").notes
    assert any("comes back by a difference" in note and "net.py:" in note for note in notes)


@pytest.mark.parametrize("line", ["return x + (x.round() - x)", "return x + (x - x.mean(0)).sum(0)"])
def test_a_sum_of_other_differences_is_not(write_module, export, line):
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n        {line}\n")
    notes = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=4:9:40").notes
    assert not any("by a difference" in note for note in notes)
