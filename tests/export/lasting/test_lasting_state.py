"""What a module keeps from call to call outside of itself is told by its name."""

import pytest
import torch

from trtconv.core.errors import AccuracyError, UnsupportedError
from trtconv.export.lasting.content import content_of

NOTED = {
    "a context variable": (
        "import contextvars\n\nLAST = contextvars.ContextVar('last', default=0)\n",
        "before = LAST.get()\n        LAST.set(x.shape[1])\n"
        "        return x * 2 if before == 37 > x.shape[1] else x",
        "forward leaves `LAST` of `net.py` for the next call",
    ),
    "a global": (
        "last = 0\n",
        "global last\n        before, last = last, x.shape[1]\n"
        "        return x * 2 if before == 37 > x.shape[1] else x",
        "forward leaves `last` of `net.py` for the next call",
    ),
    "an attribute of a function": (
        "def keep(t):\n    before, keep.last = keep.last, t\n    return before\n\n\nkeep.last = 0\n",
        "return x * 2 if keep(x.shape[1]) == 37 > x.shape[1] else x",
        "forward leaves `keep` for the next call",
    ),
    "an object of the user's": (
        "class Notes:\n    last = 0\n\n\nNOTES = Notes()\n",
        "before, NOTES.last = NOTES.last, x.shape[1]\n        return x * 2 if before == 37 > x.shape[1] else x",
        "forward leaves `NOTES` of `net.py` for the next call",
    ),
    "a class": (
        "class Notes:\n    last = 0\n",
        "before, Notes.last = Notes.last, x.shape[1]\n        return x * 2 if before == 37 > x.shape[1] else x",
        "forward leaves `Notes.last` for the next call",
    ),
    "the first of each size": (
        "FIRST = {}\n",
        "first = FIRST.setdefault(x.shape[0], x.detach()[:, 0])\n"
        "        return torch.where((x > 3.1) & (x < 3.1001), first[:, None], x)",
        "forward keeps `FIRST` of `net.py` from the values of a call",
    ),
}
SILENT = {
    "a table for each size": (
        "TABLE = {}\n",
        "t = x.shape[1]\n        if t not in TABLE:\n            TABLE[t] = torch.arange(t).float()\n"
        "        return x + TABLE[t]",
    ),
    "a table that is made once": (
        "steps = None\n",
        "global steps\n        if steps is None:\n            steps = torch.arange(64).float()\n"
        "        return x + steps[: x.shape[1]]",
    ),
    "nothing": ("TABLE = {1: 2.0}\n", "return x * TABLE[1]"),
}


def _export(write_module, export, head, body):
    path = write_module(f"{head}\n\nclass Net(nn.Module):\n    def forward(self, x):\n        {body}\n")
    return export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:60")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("head", "body", "note"), NOTED.values(), ids=NOTED)
def test_it_is_told(write_module, export, head, body, note):
    assert any(n.startswith(note) for n in _export(write_module, export, head, body).notes)


@pytest.mark.parametrize(("head", "body"), SILENT.values(), ids=SILENT)
def test_what_every_call_computes_alike_is_not_told(write_module, export, head, body):
    notes = _export(write_module, export, head, body).notes
    assert not any("from call to call" in n for n in notes)


def _generator():
    step = yield 0
    yield step


def test_content_is_compared_by_value():
    assert content_of({"a": torch.ones(2)}) == content_of({"a": torch.ones(2)})
    assert content_of([1, 2]) != content_of((1, 2))
    assert content_of({1.0}) != content_of({1})
    assert content_of(bytearray(b"ab")) != content_of(bytearray(b"ac"))
    running = _generator()
    before = content_of(running)
    next(running)
    assert content_of(running) != before
    assert content_of(torch.nested.nested_tensor([torch.ones(2)])) is None


GROWS = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 16

    def forward(self, x):
        t = x.shape[1]
        self.longest = t if t > self.longest else 16 if t <= 16 else self.longest
        return x / self.longest
"""


def test_a_file_that_is_not_equal_for_it_names_the_state(write_module, export):
    with pytest.raises(AccuracyError, match=r"^forward leaves `longest` for the next call"):
        export(f"{write_module(GROWS)}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:60")


def test_batch_norms_in_a_plain_list_are_named(write_module, export):
    path = write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.norms = [nn.BatchNorm1d(4)]\n\n    def forward(self, x):\n        return self.norms[0](x)\n"
    )
    with pytest.raises(UnsupportedError, match="the batch norms in `norms` of Net stay in training mode"):
        export(f"{path}:Net", ["x:float32[N,4]"], "N=1:2:3")


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        ("self.width = x.shape[1]\n        return x * self.width", False),
        ("self.seen = x.detach()\n        return x * 2", False),
        ("y = x + getattr(self, 'past', 0) * 0\n        self.past = x.shape[1]\n        return y", True),
    ],
    ids=["handed on within a call", "to be looked at", "read by the next call"],
)
def test_what_no_call_reads_is_not_told(write_module, export, body, is_told):
    notes = _export(write_module, export, "", body).notes
    assert any("for the next call" in n or "from the values of a call" in n for n in notes) == is_told


FROM_AFAR = {
    "a running maximum": (
        "torch.where(self.kept > 100, x * 2, x)",
        "self.kept.copy_(torch.maximum(self.kept, x.mean()))",
    ),
    "a running minimum": ("torch.where(self.kept < -5, x * 2, x)", "self.kept = torch.minimum(self.kept, x.mean())"),
    "a mean that decays": ("x + (self.kept > 5)", "self.kept.mul_(0.9).add_(x.mean() * 0.1).clamp_(0, 100)"),
    "a count of floats": ("torch.where(self.kept > 500, x * 2, x)", "self.kept += 1"),
}


def _keeping(write_module, result, change):
    return write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('kept', torch.zeros(()))\n\n"
        f"    def forward(self, x):\n        y = {result}\n        {change}\n        return y\n"
    )


@pytest.mark.parametrize(("result", "change"), FROM_AFAR.values(), ids=FROM_AFAR)
def test_state_that_decides_from_afar_is_refused(write_module, export, result, change):
    """A NaN among the sample points stays in the buffer, and no comparison with it is true."""
    with pytest.raises(AccuracyError, match="forward changes 'kept' and depends on it"):
        export(f"{_keeping(write_module, result, change)}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:60")


def test_what_is_written_in_place_is_told(write_module, export):
    """It decides where nobody looks for it: between 90 and 91."""
    path = _keeping(
        write_module, "torch.where((self.kept > 90) & (self.kept < 91), x * 2, x)",
        "self.kept.copy_(torch.maximum(self.kept, x.mean()))",
    )  # fmt: skip
    notes = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:60").notes
    assert any(n.startswith("forward keeps `kept` from the values of a call") for n in notes)


def test_rows_that_a_lookup_renormalises_are_no_state(write_module, export):
    path = write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table = nn.Embedding(9, 4, max_norm=1.0)\n        nn.init.normal_(self.table.weight, 0, 2)\n\n"
        "    def forward(self, ids):\n        return self.table(ids)\n"
    )
    notes = export(f"{path}:Net", ["ids:int64[N]=0:8"], "N=1:2:3").notes
    assert not any("from call to call" in n for n in notes)
