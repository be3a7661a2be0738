"""What stands behind masks that no sample turns is compared all the same."""

from __future__ import annotations

import pytest

HEAD = """
def rare(x):
    return (x.reshape(-1)[0] * 777.0).sin().mul(1e6).floor() == 1234.0

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("level", torch.zeros(4))

    def forward(self, x):
{lines}
"""
DIFFERING = {
    "a form of the exporter's": "return torch.where(rare(x), torch.cross(x[..., :3], x[..., 1:]), x[..., :3])",
    "a form that divides": "return torch.where(rare(x), torch.cdist(x, x.round(), p=0.0).sum(-1, keepdim=True), x)",
    "a fitted number": "return torch.where(x > 5e4, x.shape[1].to_bytes(2, 'big')[1], x)",
    "a count of calls": "self.calls += 1\nreturn torch.where(rare(x), x * self.calls, x)",
    "an assigned buffer": "y = x.lerp(x + self.level, rare(x).float())\nself.level = x[0, -1].clone()\nreturn y",
    "dice of Python": "import random\nreturn torch.where(rare(x), x * random.random(), x)",
}
EQUAL = {
    "both sides": "return torch.where(rare(x), x.tanh(), x)",
    "a mask that comes out both ways": "return torch.where(x > 0, x.tanh(), x)",
    "filled": "return x.masked_fill(torch.isnan(x), 0.0).softmax(-1)",
    "a loop that would not end": "y = x\nwhile (y > 1e30).any():\n    y = y / 2\nreturn y",
}


def notes_of(write_module, export, lines):
    body = "".join(f"        {line}\n" for line in lines.splitlines())
    path = write_module(HEAD.format(lines=body))
    notes = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=4:9:300").notes
    return [note for note in notes if "a mask comes out the same at every sample point" in note]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lines", DIFFERING.values(), ids=DIFFERING)
def test_a_difference_behind_a_mask_is_told(write_module, export, lines):
    (note,) = notes_of(write_module, export, lines)
    assert "net.py:" in note


# A run that does not end is given a minute.
SLOW = {"a loop that would not end": [pytest.mark.slow]}


@pytest.mark.parametrize("lines", [pytest.param(v, id=k, marks=SLOW.get(k, [])) for k, v in EQUAL.items()])
def test_what_is_equal_behind_a_mask_is_not(write_module, export, lines):
    assert notes_of(write_module, export, lines) == []
