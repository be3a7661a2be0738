"""Loops over a size are in the file: the parts that loop are scripted, and what they list are scan outputs."""

import onnx
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.model.bodies import walk_nodes
from trtconv.export.exporters.scripted.cells import plain_cell
from trtconv.export.exporters.scripted.parts import loops, replaced

STEPS = ["x:float32[N,T,4]"]
SPACE = "N=1:2:4 T=3:9:20"
RECURRENT = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        h, ys = x.new_zeros(x.shape[0], 8), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            ys.append(self.out(h))
        return torch.stack(ys, 1), h


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.share = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        y = x[:, 0]
        out = [y]
        for t in range(1, x.size(1)):
            y = self.share * x[:, t] + (1 - self.share) * y
            out.append(y)
        return torch.stack(out, dim=-1)


class LongShort(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 8)
        c, ys = torch.zeros_like(h), []
        for row in x.unbind(1):
            h, c = self.cell(row, (h, c))
            ys.append(self.out(h).unsqueeze(1))
        return torch.cat(ys, 1)


class Every(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(4, 8)

    def forward(self, x):
        h, ys = torch.zeros(x.shape[0], 8), []
        for t in range(1, x.shape[1], 3):
            h = self.cell(x[:, t], h)
            ys.append(h)
        return torch.stack(ys, 1)


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 8)

    def forward(self, x):
        h, y = torch.zeros(x.shape[0], 8), torch.zeros(x.shape[0], x.shape[1], 8)
        for t in range(x.shape[1]):
            h = torch.tanh(self.gate(torch.cat([x[:, t], h], -1)))
            y[:, t] = h
        return y


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.steps, self.after = nn.Linear(4, 4), Cell(), nn.Sequential(nn.Linear(3, 5), nn.ReLU())

    def forward(self, x):
        return self.after(self.steps(self.before(x))[0])
"""
PIECES = """
class Pieces(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        ys = []
        for start in range(0, x.shape[1], 5):
            ys.append(self.linear(x[:, start:start + 5]).cumsum(1))
        return torch.cat(ys, 1)
"""


def operators(path):
    return {n.op_type for n in walk_nodes(onnx.load(path).graph.node)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    ["Cell", "Average", "Every", *(pytest.param(n, marks=pytest.mark.slow) for n in ("Written", "LongShort", "Inner"))],
)
def test_a_loop_over_steps_is_exported_for_all_their_numbers(name, write_module, export):
    write_module(RECURRENT)
    result = export(f"net.py:{name}", STEPS, SPACE, exporter="auto" if name == "Cell" else "torchscript")
    assert result.sizes.complete
    assert "Loop" in operators(result.model)
    assert not any("Sequence" in operator for operator in operators(result.model))


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "weight"), [("Cell", "cell.weight_hh"), ("Inner", "steps.cell.weight_hh")])
def test_weights_keep_their_names(name, weight, write_module, export):
    write_module(RECURRENT)
    result = export(f"net.py:{name}", STEPS, "N=1:2:2 T=3:5:6", exporter="torchscript")
    assert weight in {t.name for t in onnx.load(result.model).graph.initializer}


@pytest.mark.slow
def test_pieces_of_different_lengths_stay_a_list(write_module, export):
    write_module(PIECES)
    result = export("net.py:Pieces", STEPS, SPACE, exporter="torchscript")
    assert result.sizes.complete
    assert {"Loop", "SequenceInsert", "ConcatFromSequence"} <= operators(result.model)


CEILINGS = """
class Ceilings(nn.Module):
    def forward(self, x, counts):
        steps = torch.ceil(counts.to(torch.float32) / 3).long()
        total = x[:, 0] * 0
        for t in range(2, x.shape[1], 3):
            total = total + x[:, t]
        return steps, total
"""


@pytest.mark.slow
def test_only_what_a_loop_counts_is_counted_in_whole_numbers(write_module, export):
    """ceil(-4 / 3) is -1, and (-4 + 2) / 3 is 0."""
    write_module(CEILINGS)
    spec = [*STEPS, "counts:int64[N]=-20:20"]
    result = export("net.py:Ceilings", spec, SPACE, exporter="torchscript")
    assert result.sizes.complete
    nodes = [n for n in onnx.load(result.model).graph.node if n.op_type == "Ceil"]
    assert len(nodes) == 1


def test_what_is_no_script_is_told(write_module, export):
    write_module(
        """
class Backwards(nn.Module):
    def forward(self, x):
        y = x[:, 0]
        for t in sorted(range(x.shape[1]), key=lambda t: -t):
            y = y * 0.5 + x[:, t]
        return y
"""
    )
    with pytest.raises(AccuracyError) as caught:
        export("net.py:Backwards", STEPS, SPACE, exporter="torchscript")
    assert "Backwards is no script" in "".join(caught.value.details)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.steps = nn.ModuleList(nn.Linear(2, 2) for _ in range(2)), 3

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        return sum(x * i for i in range(self.steps))


class Steps(Layers):
    def forward(self, x):
        while x.sum() < len(x):
            x = x * 2
        return list(x)


def test_loops_over_a_modules_own_parts_are_none():
    assert not loops(Layers())
    assert loops(Steps())
    assert not loops(nn.Sequential(nn.Linear(2, 2)))


def test_only_what_changes_is_copied():
    layer = nn.Linear(4, 4)
    module = nn.Sequential(layer, nn.Sequential(nn.GRUCell(4, 4)), nn.Sequential(layer))
    other = replaced(module, plain_cell)
    assert other is not module
    assert type(module[1][0]) is nn.GRUCell
    assert other[0] is other[2][0] is layer
    assert other[2] is module[2]
    assert other[1][0].weight_hh is module[1][0].weight_hh
    assert replaced(layer, plain_cell) is layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.GRUCell, nn.RNNCell])
def test_cells_compute_what_torchs_do(kind, bias):
    cell = kind(5, 7, bias=bias)
    x, h = torch.randn(3, 5), torch.randn(3, 7)
    plain = plain_cell(cell)
    assert type(plain) is not kind
    torch.testing.assert_close(plain(x, h), cell(x, h))
    torch.testing.assert_close(plain(x), cell(x))


def test_a_cell_of_another_kind_stays():
    cell = nn.RNNCell(5, 7, nonlinearity="relu")
    assert plain_cell(cell) is cell


LOOP = """
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {before}
        h = x.new_zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            {body}
        return h
"""
CLEANED = """
import functools


def cleaned(function):
    @functools.wraps(function)
    def clean(x, h):
        return function(x.masked_fill(x == -9999.0, 0.0), h)
    return clean


@cleaned
def step(x, h):
    return torch.tanh(x + h)


class Cleaning(nn.Tanh):
    def __call__(self, x):
        return super().__call__(x.masked_fill(x == -9999.0, 0.0))
"""
WRITES = "writes in place into what something else may read"
OTHERWISE = "compiles something else than Python runs"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("made", "before", "body", "reason"),
    [
        ("", "y = x", "row = y[:, t]; row.masked_fill_(row == -9999.0, 0.0); h = torch.tanh(row + h)", WRITES),
        ("", "y = x.clone(); z = y.transpose(1, 2); z[z == -9999.0] = 0.0", "h = torch.tanh(y[:, t] + h)", WRITES),
        ("", "y = x.clone()", "part = y[:, t:t + 1].transpose(1, 2); part[part == 9.0] = 0.0; h = y[:, t] + h", WRITES),
        ("", "y = x.clone(); z = y.transpose(1, 2)", "y[:, t] = h; h = torch.tanh(z[:, :, t] + 1)", WRITES),
        ("", "y = x", "row = y[:, t] if torch.jit.is_scripting() else y[:, t].relu(); h = row + h", OTHERWISE),
        ("self.act = Cleaning()", "y = x", "h = self.act(y[:, t]) + 0.5 * h", OTHERWISE),
        ("", "y = x", "h = step(y[:, t], h)", OTHERWISE),
    ],
)
def test_a_script_that_would_not_be_the_module_is_refused(made, before, body, reason, write_module, export):
    """A rare value shows none of these: at usual ones the files are equal."""
    write_module(CLEANED + LOOP.format(made=made or "pass", before=before, body=body))
    with pytest.raises(AccuracyError) as caught:
        export("net.py:Steps", STEPS, "N=1:2:3 T=3:5:8", exporter="torchscript")
    assert reason in "".join(caught.value.details)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("made", "before", "body"),
    [
        ("self.line = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))", "y = x", "h = self.line(y[:, t] + h)"),
        ("", "y = torch.zeros_like(x)", "y[:, t] = torch.tanh(x[:, t] + h); h = y[:, t] * (1 - h) + 1 / (2 + h * h)"),
    ],
)
def test_what_nobody_else_has_may_be_written(made, before, body, write_module, export):
    write_module(LOOP.format(made=made or "pass", before=before, body=body) + "\n\nclass Child(Steps):\n    pass\n")
    assert export("net.py:Child", STEPS, "N=1:2:3 T=3:5:8", exporter="torchscript").sizes.complete


def test_a_script_of_the_users_own_may_not_write_through_views_either(write_module, export):
    write_module(
        """
class Part(nn.Module):
    def forward(self, x):
        y = x.clone()
        z = y.transpose(1, 2)
        z[z == -9999.0] = 0.0
        return y


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(Part())

    def forward(self, x):
        return self.part(x) * 2
"""
    )
    with pytest.raises(TrtconvError) as caught:
        export("net.py:Scripted", STEPS, "N=1:2:3 T=3:5:8", exporter="torchscript")
    assert WRITES in str(caught.value) + "".join(caught.value.details)
