"""Decisions by size whose ways no sample tells apart: both are in the file, or a note names the line."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.export.branches.plain_numbers import plain_numbers
from trtconv.export.exporters import choice
from trtconv.export.exporters.kept.recordings import Recordings, _spread
from trtconv.export.module.source import load_module

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
BRANCH = """
        if x.shape[1] > 16:
            x = torch.where((x > 1.23) & (x < 1.2301), torch.zeros_like(x), x)
        return x * 2
"""
ROUNDS = """
        reach = (x > 0.5).float()
        for _ in range(x.shape[1]):
            reach = torch.maximum(reach, (reach @ reach > 0).float())
        return reach
"""
KEPT = """
        for _ in range(x.shape[1].bit_length()):
            x = torch.where((x > 1.23) & (x < 1.2301), x * 2, x)
        return x * 2
"""
WRITTEN = {
    "windows": "w = y.unfold(2, 2, 1)",
    "a diagonal": "w = y.diagonal(0, 1, 2)",
    "a diagonal of windows": "w = y.unfold(2, 2, 1).diagonal(0, 2, 3)",
    "rows of a part": "w = y[:, 1:].unfold(1, 2, 1)",
}


def _run(tmp_path, path, x):
    (value,) = OnnxRuntimeRunner(tmp_path / "out" / "model.onnx")({"x": x}).values()
    return value, load_module(ModuleSource(f"{path}:Net", base=path.parent))(torch.from_numpy(x)).numpy()


@pytest.mark.slow
def test_a_branch_that_no_sample_tells_apart_is_in_the_file(write_module, export, tmp_path):
    path = write_module(HEAD + BRANCH)
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=1:9:40")
    for size in (9, 40):
        np.testing.assert_array_equal(*_run(tmp_path, path, np.full((1, size), 1.23005, np.float32)))


@pytest.mark.slow
def test_rounds_by_size_are_a_loop_of_the_file(write_module, export, tmp_path):
    path = write_module(HEAD + ROUNDS)
    export(f"{path}:Net", ["x:float32[N,T,T]=0:1"], "N=1:1:2 T=1:5:20")
    chain = np.eye(20, k=1, dtype=np.float32)[None]
    np.testing.assert_array_equal(*_run(tmp_path, path, chain))


def test_what_the_file_keeps_is_noted_with_its_line(write_module, export):
    path = write_module(HEAD + KEPT)
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=1:9:40", exporter="torchscript")
    (note,) = (n for n in result.notes if n.startswith("the module decides by the size"))
    assert "`for _ in range(x.shape[1].bit_length()):` at net.py" in note
    assert "keeps the way at N=" in note


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_a_write_into_the_tensor_is_seen_in_an_earlier_part_of_it(write_module, export, tmp_path, name, exporter):
    body = ("y = x.clone()", WRITTEN[name], "y.clamp_(max=0.5)", "return w * 2")
    path = write_module(HEAD + "".join(f"        {line}\n" for line in body))
    export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:1:2 T=4:6:9", exporter=exporter)
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    np.testing.assert_array_equal(*_run(tmp_path, path, x))


def test_a_number_of_the_size_is_padded_with(write_module, export, tmp_path):
    path = write_module(f"{HEAD}        return F.pad(x, (1, 2), value=float(x.shape[1] + 1))\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:6:9", exporter="torchscript")
    np.testing.assert_array_equal(*_run(tmp_path, path, np.ones((1, 5), np.float32)))


AT_ONE = {
    "an example": "if x.shape[0] == 1:\n            x = x.clamp(max=2.5)\n        return x * 2",
    "a step": "return x.clamp(max=20.0 if x.shape[1] > 1 else 5000.0)",
    "a number": "return x.clamp(max=30.0 * (1 + (x.shape[1] == 1)))",
    "a step or an example": "x = F.hardtanh(x, -3.0, 3.0) if x.shape[0] == 1 or x.shape[1] == 1 else x; return x * 2",
    "what is no number": "if len(x) == 1:\n            x = x.nan_to_num(0.0)\n        return x * 2",
    "a view of a turned tensor": "y = x + 1; z = y.T.reshape(-1); z[z > 60000.0] = 0; return y",
    "a sum of one row": "y = x + 1; z = y.sum_to_size(1, x.shape[1]); z.clamp_(max=60000.0); return y",
    "a view of a part": "y = x + 1; z = y[:, ::2].contiguous(); z.clamp_(max=60000.0); return y",
}
BY_SIZE = {
    "a dictionary": ("{16: 2.5}.get(x.shape[1], 3.5)", 16),
    "a list": ("([20.0] * 16 + [50.0] * 5)[x.shape[1]]", 16),
    "a bisection": ("(20.0, 30.0, 50.0)[bisect.bisect([8, 15], x.shape[1])]", 16),
    "a sorted list": ("10.0 * sorted([x.shape[1], 8])[0]", 2),
    "a count": ("10.0 * len(range(0, x.shape[1], 8))", 3),
    "a shape": ("2.5 if x.shape == (1, 16) else 3.5", 16),
    "a text": ("{'len16': 5e4}.get(f'len{x.shape[1]}', 7e4)", 16),
    "the end of a text": ("5e4 if str(x.shape[1]).endswith('6') else 7e4", 6),
}
LOOKED_UP = {
    "a set": "if x.shape[1] in {3, 16}:\n            x = x.clamp(max=2.5)\n        return x * 2",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", AT_ONE)
def test_what_a_size_of_one_does_is_in_the_file(write_module, export, tmp_path, name):
    path = write_module(f"{HEAD}        {AT_ONE[name]}\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    for shape in ((1, 1), (1, 3), (2, 1), (3, 4)):
        for value in (3.0, 7e4, np.nan):
            np.testing.assert_array_equal(*_run(tmp_path, path, np.full(shape, value, np.float32)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BY_SIZE)
def test_what_python_looks_up_by_a_size_is_in_the_file(write_module, export, tmp_path, name):
    number, size = BY_SIZE[name]
    path = write_module(f"import bisect\n\n\n{HEAD}        return x.clamp(max={number})\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=1:9:20")
    for length in (1, 9, size, 20):
        for value in (99.0, 6e4):
            np.testing.assert_array_equal(*_run(tmp_path, path, np.full((1, length), value, np.float32)))


@pytest.mark.parametrize("name", LOOKED_UP)
def test_what_no_file_holds_is_refused(write_module, export, name):
    path = write_module(f"{HEAD}        {LOOKED_UP[name]}\n")
    with pytest.raises(AccuracyError):
        export(f"{path}:Net", ["x:float32[N,T]"], "N=0:2:3 T=1:9:20")


def test_ways_that_compute_alike_need_no_if(write_module, export):
    path = write_module(f"{HEAD}        if x.shape[0] == 1:\n            print('one')\n        return x * 2\n")
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    assert not [n for n in onnx.load(result.model).graph.node if n.op_type == "If"]
    assert not [n for n in result.notes if "decides by the size" in n]


NONE_AT_ALL = {
    "a guard": (
        "if y.shape[1] == 0:\n            return x * 0 - 1\n        return x + (x[:, :, None] - y[:, None]).amax(2)"
    ),
    "elements": "return x + y.amax(1, keepdim=True) if y.numel() else x - 1",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NONE_AT_ALL)
def test_what_no_rows_do_is_in_the_file(write_module, export, tmp_path, name):
    source = f"class Net(nn.Module):\n    def forward(self, x, y):\n        {NONE_AT_ALL[name]}\n"
    path = write_module(source)
    export(f"{path}:Net", ["x:float32[N,T]", "y:float32[N,S]"], "N=1:2:3 T=2:5:9 S=0:4:9")
    run, own = OnnxRuntimeRunner(tmp_path / "out" / "model.onnx"), load_module(ModuleSource(f"{path}:Net"))
    for rows, length, others in itertools.product((1, 3), (2, 9), (0, 1, 5)):
        x, y = torch.randn(rows, length), torch.randn(rows, others)
        (output,) = run({"x": x.numpy(), "y": y.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(output), own(x, y))


def test_what_of_nothing_is_another_in_a_file_is_named(write_module, export):
    forward = "def forward(self, x, y):\n        return x + torch.var_mean(y, 1, keepdim=True)[1]\n"
    source = f"class Net(nn.Module):\n    {forward}"
    path = write_module(source)
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:Net", ["x:float32[N,T]", "y:float32[N,S]"], "N=1:2:3 T=2:5:9 S=0:4:9")
    assert "a size is 0 there" in caught.value.hint


def test_the_file_itself_is_the_recording_at_its_sizes(write_module, export, monkeypatch):
    recorded = []

    class Listing(Recordings):
        def _recorded(self, sizes):
            recorded.append(sizes)
            return super()._recorded(sizes)

    monkeypatch.setattr(choice, "Recordings", Listing)
    path = write_module(f"{HEAD}        return x * x.shape[1]\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=3:9:40", exporter="torchscript")
    assert recorded
    assert {"N": 3, "T": 11} not in recorded


@pytest.mark.parametrize("base", [{"N": 3, "T": 11}, {"N": 2, "T": 40}])
def test_both_ends_of_every_dim_are_recorded_first(base):
    space = parse_space(["N=1:2:3 T=3:9:40"])
    first, second = itertools.islice(_spread(space, base), 2)
    for name, size in base.items():
        assert {first[name], second[name]} >= {space[name].min, space[name].max} - {size}


def test_a_check_of_torch_makes_no_number():
    def checked(x):
        torch._check_tensor_all(torch.as_tensor(x.shape[1]) > 0)
        return x * 2

    def read(x):
        return x * torch.as_tensor(x.shape[1]).item()

    lines = []
    for function in (checked, read):
        with plain_numbers() as numbers:
            torch.jit.trace(function, torch.ones(2, 3))
        lines.append([number for _, number in numbers.items()])
    assert lines == [[], [3.0]]
