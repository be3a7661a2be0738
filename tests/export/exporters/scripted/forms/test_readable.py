"""Loops as users write them, which torch.jit.script does not take: a state that is None, backwards, reversed lists."""

from __future__ import annotations

import ast
import textwrap

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from trtconv.core.errors import AccuracyError
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.requests import ModuleSource
from trtconv.export.exporters.scripted.forms.fresh_sums import write_sums_out
from trtconv.export.exporters.scripted.forms.leaving import without_else
from trtconv.export.exporters.scripted.forms.readable import readable_forms
from trtconv.export.exporters.scripted.forms.reversed_lists import flip_reversed_lists
from trtconv.export.module.source import load_module

STEPS = ["x:float32[2,T,4]"]
SPACE = "T=1:5:9"
NETS = """
class Deltas(nn.Module):
    def forward(self, x):
        previous, outs = None, []
        for frame in x.unbind(1):
            outs.append(frame if previous is None else frame - 0.5 * previous)
            previous = frame
        return torch.stack(outs, 1)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 6), nn.Linear(6, 2)

    def forward(self, x):
        state, ys = None, []
        for i, frame in enumerate(x.unbind(dim=1)):
            state = self.cell(frame, state)
            ys.append(self.out(state[0]) * (i + 1))
        return torch.stack(ys, 1), state[1]


class Streamed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x, state=None):
        ys = []
        for t in range(x.size(1)):
            y, state = self.rnn(x[:, t : t + 1], state)
            ys.append(y)
        return torch.cat(ys, 1)


class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, h=None):
        if h is None:
            h = x.new_zeros(x.shape[0], 4)
        ys = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            ys.append(h)
        return torch.stack(ys, 1), h


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Given()

    def forward(self, x):
        y, h = self.core(x)
        return self.core(y, h)[0]


class ByNumber(nn.Module):
    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            if t == 0:
                h = x[:, t]
            else:
                h = 0.5 * h + x[:, t]
            out.append(h)
        return torch.stack(out, dim=-1)


class Backwards(nn.Module):
    def forward(self, x):
        h, out = None, []
        for t in reversed(range(x.shape[1])):
            h = x[:, t] if h is None else x[:, t] + 0.5 * h
            out.append(h)
        out.reverse()
        return torch.stack(out, 1)


class Inserted(nn.Module):
    def forward(self, x):
        h, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1] - 1, -1, -1):
            h = torch.tanh(x[:, t] + 0.5 * h)
            out.insert(0, h)
        return torch.stack(out, 1)


class BothWays(nn.Module):
    def forward(self, x):
        h, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] + 0.5 * h)
            out.append(h)
        return torch.stack(out[::-1], dim=1), torch.stack(list(reversed(out)), -1), torch.stack(out)


class Summed(nn.Module):
    def forward(self, x):
        total, share = torch.zeros_like(x[:, 0]), x.new_ones(x.shape[0], 4) * torch.tensor([[0.5, 1, -2, 1]])
        for t in range(x.shape[1]):
            total += F.normalize(x[:, t], dim=-1)
            share *= 0.9
            if not t % 3:
                share = share + 0.1 * abs(t - 5)
        return total / x.shape[1], share


class Added(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        for i in range(x.shape[1]):
            y[:, i] += x[:, i] * 2
            if i > 0:
                y[:, i] -= y[:, i - 1]
        return y.clamp_(-1, 1)


class Ended(nn.Module):
    def forward(self, x):
        h, steps = torch.zeros(2, 4), torch.full((2,), x.shape[1])
        for t in range(x.shape[1]):
            h = torch.tanh(h + x[:, t])
        else:
            h = h * 2
        return h, steps


class Chosen(nn.Module):
    def forward(self, x):
        seen, out = x[:, 0] > 9, []
        for frame in x.unbind(1):
            seen = torch.where(frame > 0, ~seen, seen & (frame < -0.5))
            out.append(seen)
        return torch.stack(out, 1).float()
"""
NAMES = (
    "Deltas", "Cells", "Streamed", "Given", "Twice", "ByNumber", "Backwards", "Inserted", "BothWays", "Added", "Chosen",
    "Summed", "Ended",
)  # fmt: skip


SLOW = ("Added", "Twice", "Streamed")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in NAMES])
def test_it_converts_at_every_length(write_module, export, name):
    path = write_module(NETS)
    result = export(f"{path}:{name}", STEPS, SPACE, exporter="torchscript")
    model = onnx.load(result.model)
    assert [n for n in walk_nodes(model.graph.node) if n.op_type == "Loop"]
    assert result.sizes.complete
    module = load_module(ModuleSource(f"{path}:{name}", base=path.parent)).eval()
    session = onnxruntime.InferenceSession(result.model)
    for length in (1, 2, 9):
        x = np.random.default_rng(length).standard_normal((2, length, 4), dtype=np.float32)
        with torch.no_grad():
            outputs = module(torch.from_numpy(x))
        expected = [*outputs] if isinstance(outputs, tuple) else [outputs]
        for y, e in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(y, e.numpy(), atol=2e-6)


def test_no_step_at_some_size_is_no_silent_difference(write_module, export):
    """The part for the first step runs in the file whether there is one or not."""
    path = write_module("""
class Around(nn.Module):
    def forward(self, x):
        previous, y = None, x * 1
        for t in range(max(x.shape[1] - 5, 5 - x.shape[1])):
            y = y + (x[:, :1] if previous is None else 0.5 * previous)
            previous = x[:, :1] * t
        return y
""")
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:Around", STEPS, SPACE, exporter="torchscript")
    assert any("T=5" in line for line in caught.value.details)


REVERSED = {
    "def f(x):\n    r = [x]\n    r.reverse()\n    return torch.stack(r, 1)": True,
    "def f(x):\n    r = [x]\n    y = torch.stack(r, 1)\n    r.reverse()\n    return torch.stack(r, 1) + y": False,
    "def f(x):\n    r = []\n    r.append(x)\n    r.reverse()\n    r.append(x)\n    return torch.stack(r, 1)": False,
    "def f(x):\n    r = []\n    r.append(x)\n    r.reverse()\n    y = r[0]\n    return torch.stack(r) + y": False,
    "def f(x):\n    r = []\n    if x:\n        r.reverse()\n    return torch.stack(r)": False,
    "def f(x):\n    r = []\n    r.insert(0, x)\n    r.append(x)\n    return torch.stack(r)": False,
    "def f(x):\n    r = []\n    r.insert(1, x)\n    return torch.stack(r)": False,
    "def f(x):\n    r = [x]\n    return torch.cat(r[::-1])": False,
    "def f(x):\n    r = [x]\n    return torch.stack(r[::-1], dim=1)": True,
    "def f(x):\n    r = [x]\n    return torch.stack(r[1::-1], dim=1)": False,
    "def f(x):\n    r = [x]\n    return torch.stack(tuple(reversed(r)), -1)": True,
    "def f(x):\n    r = [x]\n    return torch.stack(list(r), -1)": False,
}


@pytest.mark.parametrize(("source", "is_flipped"), REVERSED.items())
def test_a_list_is_flipped_only_where_it_is_only_stacked(source, is_flipped):
    function = ast.parse(textwrap.dedent(source)).body[0]
    text = ast.unparse(flip_reversed_lists(function))
    assert ("torch.flip(" in text) == is_flipped, text
    assert is_flipped or text == source


IN_PLACE = {
    "def f(x):\n    s = torch.zeros_like(x)\n    for y in x:\n        s += y\n    return s, x": True,
    "def f(x):\n    s = x * 2\n    for y in x:\n        s *= y\n        z = s + 1\n    return s": True,
    "def f(x):\n    n = 0\n    for y in x:\n        n += 1\n    return n": True,
    "def f(x):\n    s = x\n    s += 1\n    return s": False,
    "def f(s):\n    s += 1\n    return s": False,
    "def f(x):\n    s = x[0]\n    s += 1\n    return s": False,
    "def f(x):\n    s = x.view(-1)\n    s += 1\n    return s": False,
    "def f(x):\n    s, r = x * 2, []\n    for y in x:\n        s += y\n        r.append(s)\n    return r": False,
    "def f(x):\n    s = x * 2\n    for y in x:\n        p = s\n        s += y\n    return p": False,
    "def f(x):\n    s = x * 2\n    p = s[0]\n    s += 1\n    return p": False,
    "def f(x):\n    s = x * 2\n    p = s.view(-1)\n    s += 1\n    return p": False,
    "def f(x):\n    s = x * 2\n    p = g(s)\n    s += 1\n    return p": False,
    "def f(x):\n    s = x * 2\n    p = [s]\n    s += 1\n    return p": False,
    "def f(x):\n    for s in x:\n        s += 1\n    return x": False,
}


@pytest.mark.parametrize(("source", "is_written_out"), IN_PLACE.items())
def test_a_sum_is_written_out_only_where_the_tensor_has_no_other_name(source, is_written_out):
    text = ast.unparse(write_sums_out(ast.parse(source).body[0]))
    assert ("+=" in text or "*=" in text) != is_written_out, text


BROKEN = """
def f(x, last):
    total = 0
    for value in x:
        for other in x:
            if other > 6:
                break
            total += other
        if value == last:
            total += 100
            break
    else:
        total = -total
    n = len(x)
    while n > 0:
        n -= 2
        if n == last:
            break
    else:
        total += 1000
    return total
"""


@pytest.mark.parametrize("last", [1, 3, 7, 9])
def test_an_else_runs_where_the_loop_is_not_left(last):
    tree = ast.parse(BROKEN)
    tree.body[0].body = [
        new
        for s in tree.body[0].body
        for new in (without_else(s, f"ended_{s.lineno}") if isinstance(s, (ast.For, ast.While)) else [s])
    ]
    assert not any(getattr(n, "orelse", None) for n in ast.walk(tree) if isinstance(n, (ast.For, ast.While)))
    written: dict = {}
    plain: dict = {}
    exec(compile(tree, "written", "exec"), written)
    exec(BROKEN, plain)
    for x in ([], [1], [3, 1, 2], [5, 7, 1, 3], [2, 2, 9, 9, 7]):
        assert written["f"](x, last) == plain["f"](x, last)


def test_scripts_of_others_are_as_they_were():
    from torch.jit import _state, frontend

    before = frontend.parse_def, dict(_state._jit_caching_layer)
    with readable_forms():
        torch.jit.script(count_down)
    assert (frontend.parse_def, dict(_state._jit_caching_layer)) == before
    with pytest.raises(RuntimeError, match="range cannot be used as a value"):
        torch.jit.script(count_down)


def count_down(n: int) -> int:
    total = 0
    for i in reversed(range(1, n)):
        total = 2 * total + i
    return total


def test_counting_down_gives_the_same_numbers():
    with readable_forms():
        script = torch.jit.script(count_down)
    assert [script(n) for n in range(6)] == [count_down(n) for n in range(6)]
