"""Writes through masks and views, conjugates and transposes: ordinary code that the exporters do not follow."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from trtconv.export.symbolic import grids
from trtconv.export.symbolic.complex_numbers import parts as complex_parts
from trtconv.export.symbolic.indexing import writes

HEAD = "class Net(nn.Module):\n    def forward(self, x, mask):\n"
N_T = "N=1:2:3 T=2:5:9"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "lines",
    [
        "y = x * 2; y.data.masked_fill_(mask, -float('inf')); return y.softmax(1)",
        "y = x[None] * 2; y[:, mask] = 5; return y",
        "y = torch.stack([x, x], -1); y[mask, 0] = -1.; return y",
        "z = torch.complex(x, x + 1); return torch.einsum('nt,mt->nm', z, z.conj()).abs()",
        "z = torch.complex(x, x + 1); o = z * .5; o[:, :1] = z[:, :1].conj(); return torch.view_as_real(o)",
        "z = x[:, :, None] * x[:, None]; z.diagonal(dim1=1, dim2=2).fill_(-9.); return z.softmax(-1)",
        "z = x[:, :, None] * x[:, None]; i, j = torch.tril_indices(x.shape[1], x.shape[1]); return z[:, i, j]",
        "z = x[:, :, None] * x[:, None]; i, j = torch.triu_indices(x.shape[1], x.shape[1]); return z[:, i, j]",
    ],
)
def test_torch_export_follows_it(write_module, export, lines):
    write_module(HEAD + "".join(f"        {line.strip()}\n" for line in lines.split(";")))
    result = export("net.py:Net", ["x:float32[N,T]", "mask:bool[N,T]"], N_T)
    assert result.exporter == "dynamo"
    assert result.sizes.tried > 1


@pytest.mark.parametrize("form", ["x.mT", "x.adjoint()", "torch.adjoint(x)"])
def test_a_recording_transposes_matrices(write_module, export, form):
    write_module(f"class Net(nn.Module):\n    def forward(self, x):\n        return x @ {form}\n")
    result = export("net.py:Net", ["x:float32[N,T,4]"], N_T, exporter="torchscript")
    assert result.exporter == "torchscript"


@pytest.mark.parametrize("count", [1, 2, 7])
def test_triangles(count, monkeypatch):
    monkeypatch.setattr(grids, "is_symbolic", lambda size: True)
    assert torch.equal(grids.triangle(lower=True)(None, count, count), torch.tril_indices(count, count))
    assert torch.equal(grids.triangle(lower=False)(None, count, count), torch.triu_indices(count, count))
    for offset in range(-count - 1, count + 2):
        low, high = torch.tril_indices(count, count, offset), torch.triu_indices(count, count, offset)
        assert torch.equal(grids.triangle(lower=True)(None, count, count, offset), low)
        assert torch.equal(grids.triangle(lower=False)(None, count, count, offset), high)


def test_masks_beside_other_indices():
    x, rows, last = torch.randn(3, 4, 5), torch.tensor([True, False, True]), torch.randn(4, 5) > 0
    for index in ((slice(None), last), (rows, 2), (slice(1, None), last[:, 0], 3), (None, rows), (2, last[:, 1])):
        own, torchs = x.clone(), x.clone()
        writes.set_item(None, own, index, 7.0)
        torchs[index] = 7.0
        assert torch.equal(own, torchs), index
    two = (rows, torch.tensor([0, 1]))
    assert writes.set_item(None, x.clone(), two, 7.0) is NotImplemented
    several = torch.randn(3, int(last.sum()))
    for index, values in (
        ((slice(None), last), several),
        ((Ellipsis, last), several[0]),
        ((Ellipsis, rows, slice(None), slice(1, 3)), torch.randn(2, 4, 2)),
        ((slice(1, None), last[:, 0], slice(None)), torch.randn(int(last[:, 0].sum()), 1)),
        ((2, last[:, 1], Ellipsis), torch.randn(1, 5)),
        (last.expand(3, 4, 5), several.reshape(-1)),
        (rows, torch.randn(2, 4, 5)),
    ):
        own, torchs = x.clone(), x.clone()
        writes.set_item(None, own, index, values)
        torchs[index] = values
        assert torch.equal(own, torchs), index


def test_conjugates_of_real_numbers_stay():
    assert complex_parts.conjugate(torch.conj, torch.randn(3)) is NotImplemented
    z = torch.randn(3, dtype=torch.complex64)
    assert torch.equal(complex_parts.conjugate(torch.conj, z), z.conj().resolve_conj())


SQUEEZED = """
class Net(nn.Module):
    def forward(self, x, y):
        return x.squeeze(1) * 2.0, torch.squeeze(y, 2) + 1.0, y.squeeze((1, 2)) - 1.0, y.squeeze(dim=-1).exp()
"""


def test_a_squeeze_of_what_is_longer_than_one_changes_nothing(export, write_module, tmp_path):
    write_module(SQUEEZED)
    result = export("net.py:Net", ["x:float32[N,6,4]", "y:float32[2,1,T,3]"], "N=2:3:4 T=2:5:7", exporter="dynamo")
    assert result.exporter == "dynamo"
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    feeds = {"x": np.ones((2, 6, 4), np.float32), "y": np.ones((2, 1, 6, 3), np.float32)}
    assert [o.shape for o in session.run(None, feeds)] == [(2, 6, 4), (2, 1, 6, 3), (2, 6, 3), (2, 1, 6, 3)]


CHOSEN = """
class Net(nn.Module):
    def forward(self, x):
        if x.shape[0] == 1:
            return x.squeeze().argmax(-1).view(1) * 2
        return x.squeeze().argmax(-1)
"""


def test_a_squeeze_without_dims_gets_those_of_its_part(export, write_module, tmp_path):
    write_module(CHOSEN)
    export("net.py:Net", ["x:float32[N,1,5]"], "N=1:2:4", exporter="dynamo")
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    (choice,) = [n for n in graph.node if n.op_type == "If"]
    squeezes = [n for a in choice.attribute for n in a.g.node if n.op_type == "Squeeze"]
    # Without axes, TensorRT cannot tell the rank: a part no longer says which sizes it is for.
    values = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in graph.initializer}
    assert sorted(values[n.input[1]] for n in squeezes) == [[0, 1], [1]]


UNDECIDED = """
class Net(nn.Module):
    def forward(self, x):
        return x.squeeze().argmax(-1).view(-1)
"""


def test_a_squeeze_of_what_is_one_at_some_sizes_keeps_them_open(export, write_module, tmp_path):
    write_module(UNDECIDED)
    export("net.py:Net", ["x:float32[N,1,5]"], "N=1:2:4", exporter="dynamo")
    (squeeze,) = [n for n in onnx.load(tmp_path / "out" / "model.onnx").graph.node if n.op_type == "Squeeze"]
    assert len(squeeze.input) == 1
