"""What a script of a part that loops is made of: lists of cells, constants of the class, methods from elsewhere."""

import onnx
import pytest
import torch
from torch import nn

from trtconv.core.errors import AccuracyError
from trtconv.core.model.bodies import walk_nodes
from trtconv.export.exporters.scripted.parts import loops, with_class_constants

STACKED = """
class Stacked(nn.Module):
    rate = 0.97
    gains, name = (1.0, 2.0), "stacked"

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(4, 4) for _ in range(2))

    def forward(self, x):
        a, b, ys = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            {body}
        return torch.stack(ys, 1)
"""
BODIES = [
    "a = self.cells[0](x[:, t], a); b = self.cells[1](a, b); ys.append(b)",
    "y = x[:, t]\n            for cell in self.cells:\n                y = cell(y, a)\n            a = y; ys.append(y)",
    "a = self.cells[0](x[:, t], a) * self.rate * self.gains[1]; ys.append(a)",
]
ELSEWHERE = """
def forward_of(scale):
    def forward(self, x):
        total = torch.zeros(x.shape[0], 4)
        for row in x.unbind(1):
            total = torch.tanh(total + row)
        return total

    return forward


class Given(nn.Module):
    forward = forward_of(2)


class Around(nn.Module):
    class Last(nn.Module):
        def forward(self, x):
            best = x[:, 0]
            for t in range(x.shape[1]):
                best = torch.maximum(best * 0.9, x[:, t])
            return best

    def __init__(self):
        super().__init__()
        self.last = self.Last()

    def forward(self, x):
        y = x * 1.0
        y[x == x.flip(-1) + 0.5] = -4.0
        return self.last(y)
"""


@pytest.mark.slow
@pytest.mark.parametrize("body", [*BODIES[:1], *(pytest.param(b, marks=pytest.mark.slow) for b in BODIES[1:])])
def test_cells_in_lists_and_constants_of_the_class_are_scripted(body, write_module, export):
    write_module(STACKED.format(body=body))
    result = export("net.py:Stacked", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:6", exporter="torchscript")
    assert "Loop" in {n.op_type for n in walk_nodes(onnx.load(result.model).graph.node)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["Given", "Around"])
def test_a_forward_from_elsewhere_and_a_nested_class_are_scripted(name, write_module, export):
    """What is around a nested class that loops is recorded: it may write where a script may not."""
    write_module(ELSEWHERE)
    result = export(f"net.py:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:6", exporter="torchscript")
    assert "Loop" in {n.op_type for n in walk_nodes(onnx.load(result.model).graph.node)}


class Outer(nn.Module):
    class Inner(nn.Module):
        rate, steps = 0.5, (1, 2)

        def forward(self, x):
            return [row * self.rate for row in x]

    def __init__(self):
        super().__init__()
        self.inner = self.Inner()


def test_loops_of_a_nested_class_are_its_own():
    assert not loops(Outer())
    assert loops(Outer.Inner())


def test_constants_of_a_class_are_given_to_copies():
    module = Outer()
    other = with_class_constants(module)
    assert other.inner.__dict__["rate"] == 0.5
    assert other.inner.__dict__["steps"] == (1, 2)
    assert "rate" not in module.inner.__dict__
    plain = nn.Linear(2, 2)
    assert with_class_constants(plain) is plain
    assert torch.equal(with_class_constants(nn.Sequential(plain))[0].weight, plain.weight)


CHOOSING = """
class Net(nn.Module):
    def forward(self, x):
        return x.tolist()[0][0][0] + x if x.shape[1] > 4 else x.relu()


namespace = {"nn": nn, "torch": torch}
exec('''class Hidden(nn.Module):
    def forward(self, x):
        return x.tolist()[0][0][0] + x if x.shape[1] > 4 else x.relu()
''', namespace)
Hidden = namespace["Hidden"]
"""
WRITING = """
class Net(nn.Module):
    def forward(self, x):
        y = x.clone()
        z = y.transpose(1, 2)
        z[z == 9.0] = 0.0
        for t in range(x.shape[1]):
            y = y + x[:, t:t + 1]
        return y
"""


def _details(text, name, write_module, export):
    write_module(text)
    with pytest.raises(AccuracyError) as caught:
        export(f"net.py:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:6", exporter="torchscript")
    return [line for line in caught.value.details if "scripted" in line]


def test_a_module_without_loops_is_not_told_so(write_module, export):
    assert _details(CHOOSING, "Net", write_module, export) == []


def test_a_source_that_cannot_be_read_is_told(write_module, export):
    (line,) = _details(CHOOSING, "Hidden", write_module, export)
    assert "the source of Hidden cannot be read" in line


def test_a_write_in_place_is_told_with_its_own_line(write_module, export):
    (line,) = _details(WRITING, "Net", write_module, export)
    assert "a part that is scripted writes in place" in line
    assert "net.py:10 (z[z == 9.0] = 0.0)" in line
