"""State whose content is the same after every sample is told, too."""

import pytest

from trtconv.core.errors import AccuracyError

HEAD = "def middle(x):\n    return (x.max() < 0.4) & (x.min() > 0.1)\n\n\n"
MIDDLE = "middle(x)"
CHOICE = "return torch.where(self.flag, -x, x)"
FLAG = "self.register_buffer('flag', torch.zeros((), dtype=torch.bool))"
NOTED = {
    "a flag that is put anew": (FLAG, f"self.flag = self.flag | {MIDDLE}\n        {CHOICE}"),
    "a flag that is written": (FLAG, f"self.flag.logical_or_({MIDDLE})\n        {CHOICE}"),
    "a count that matters from a thousand on": (
        "self.register_buffer('flag', torch.zeros((), dtype=torch.long))",
        f"self.flag = self.flag + {MIDDLE}\n        return torch.where(self.flag > 1000, -x, x)",
    ),
    "a count": (
        "self.register_buffer('flag', torch.zeros((), dtype=torch.long))",
        f"self.flag += {MIDDLE}.long()\n        return x / (1 + self.flag)",
    ),
    "a dictionary": (
        "self.flag = {'seen': torch.zeros(())}",
        f"self.flag['seen'] = torch.maximum(self.flag['seen'], {MIDDLE}.float())\n"
        "        return x + self.flag['seen']",
    ),
    "a parameter": (
        "self.flag = nn.Parameter(torch.ones(4))",
        f"with torch.no_grad():\n            self.flag.mul_(1 - {MIDDLE}.float())\n        return x * self.flag",
    ),
}
SILENT = {
    "a weight that each call normalises": (
        "self.flag = nn.Parameter(torch.ones(4) / 2)",
        "with torch.no_grad():\n            self.flag.copy_(F.normalize(self.flag, dim=0))\n"
        "        return x * self.flag",
    ),
    "a count that is there to be looked at": (
        "self.register_buffer('flag', torch.zeros((), dtype=torch.long))",
        f"self.flag += {MIDDLE}.long()\n        return x * 2",
    ),
    "zeros in the shape of the input": (
        "self.flag = torch.zeros(2, 4)",
        "self.flag = torch.zeros_like(x[:2]) + self.flag[:2]\n        return x + self.flag.sum(0)",
    ),
}


def _notes(write_module, export, first, body, inputs="x:float32[N,4]=-2:2", space="N=2:3:5"):
    path = write_module(
        f"{HEAD}class Net(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {first}\n\n"
        f"    def forward(self, x):\n        {body}\n"
    )
    notes = export(f"{path}:Net", [inputs], space).notes
    return [note for note in notes if note.startswith("forward keeps")]


@pytest.mark.parametrize(("first", "body"), NOTED.values(), ids=NOTED)
def test_what_is_written_from_inputs_and_read_is_told(write_module, export, first, body):
    (note,) = _notes(write_module, export, first, body)
    assert note.startswith("forward keeps `flag` from the values of a call")


@pytest.mark.parametrize(("first", "body"), SILENT.values(), ids=SILENT)
def test_what_reaches_no_output_or_no_input_is_not(write_module, export, first, body):
    assert not _notes(write_module, export, first, body)


HISTORIES = {
    "in a buffer": (
        "self.register_buffer('last', torch.full((3,), 5.0))",
        "self.last = torch.cat([self.last[1:], x.max()[None]])\n        return x * (1 + (self.last.min() > 2.99))",
    ),
    "in a list": (
        "self.last = []",
        "self.last = (self.last + [x.max()])[-3:]\n        return x * (1 + (torch.stack(self.last).min() > 2.99))",
    ),
    "in a list of numbers": (
        "self.last = []",
        "self.last = [*self.last, float(x.max())][-3:]\n        return x * (2 if min(self.last) > 2.99 else 1)",
    ),
}


@pytest.mark.parametrize(("first", "body"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_that_matters_at_special_values_is_refused(write_module, export, first, body):
    with pytest.raises(AccuracyError, match="forward keeps 'last' from the values of earlier calls"):
        _notes(write_module, export, first, body, "x:float32[N,T]=-3:3", "N=1:2:4 T=1:6:12")
