"""However a value leaves torch, the user's line is noted; a value that Python decides by is tried on both sides."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.export.branches.value_exits import exits_in_words, value_exits
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.source import load_module
from trtconv.export.refusal import reading_line
from trtconv.proof.points import SamplePoint
from trtconv.proof.proving import ProofVerdict
from trtconv.proof.reference import ReferenceSample

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
# The line of `forward` that lets a value out is line 7 of the file.
LEAVING = {
    "item": "v = x.max().item()", "float": "v = float(x.max())", "int": "v = int(x.max())",
    "index": "v = [1, 2, 3, 4][x.argmax() % 4]", "tolist": "v = x[0, 0].tolist()", "numpy": "v = x.numpy().max()",
    "array": "import numpy as np; v = np.asarray(x).max()", "format": "v = f'{x.max():.1f}'",
    "equal": "v = torch.equal(x, -x)", "allclose": "v = torch.allclose(x, -x)", "bool": "v = bool(x.max() > 1)",
    "length": "v = len(x.nonzero())", "shape": "v = x[x > 1].shape[0]", "contains": "v = 3.0 in x",
    "entries": "v = x.to_sparse()._nnz()", "sparse values": "v = x.to_sparse().values().numel()",
    "columns": "v = x.to_sparse_csr().col_indices().shape[0]", "indices": "v = (x > 1).to_sparse().indices().shape[1]",
    "repeated": "v = torch.repeat_interleave(torch.arange(3), x[0].long().clamp(0, 2)).shape[0]",
    "scale": "v = torch.quantize_per_tensor_dynamic(x, torch.quint8, False).q_scale()",
    "computed": "v = (x[x > 1] * 2).shape[0]", "joined": "v = torch.cat([x[0], x[x > 1]]).numel()",
    "flat": "v = x.nonzero().flatten().shape[0]", "bins": "v = len(torch.bincount(x[0].long()))",
    "thread": "import threading; t = threading.Thread(target=lambda: x.max().item()); t.start(); t.join()",
    "pool": "from concurrent import futures as f; f.ThreadPoolExecutor(1).submit(lambda: bool(x.max() > 1)).result()",
    "text": "v = str(x.max())", "repr": "v = repr(x)", "address": "v = x.data_ptr()",
}  # fmt: skip


def runner_of(path: Path) -> ModuleRunner:
    return ModuleRunner(load_module(ModuleSource(f"{path}:Net", base=path.parent)), None, path.parent)


@pytest.mark.parametrize("way", LEAVING)
def test_a_value_that_leaves_is_seen(write_module, way):
    path = write_module(HEAD + f"        {LEAVING[way]}\n        return x * 2\n")
    feeds = [{"x": np.full((2, 3), v, np.float32)} for v in (0.5, 200.0)]
    exits = value_exits(runner_of(path), feeds)
    assert [line for _, line in exits] == [7]
    notes = exits_in_words(exits, path.parent)
    assert len(notes) == 1
    assert f"`{LEAVING[way]}` at net.py:7" in notes[0]
    if way in ("item", "float"):
        assert "0.5 to 200 at the points compared" in notes[0]


@pytest.mark.parametrize(
    "line",
    [
        "n = len(x) + x.shape[1] + x.numel()",
        "n = x.dim() + x.stride(0) + x.element_size() + x.is_contiguous() + x.is_floating_point()",
        "n = x[x > 1].sum(); n = n.reshape(1).shape[0]",
        "y = x.clone(); y[x > 1] = 0; n = y.shape[0]",
        "i = x.argsort(-1); n = x[torch.arange(2)[:, None], i].shape[1]",
        "n = torch.where(x > 1, x, 0).shape[1] + x.to_sparse().to_dense().shape[1]",
    ],
)
def test_a_module_that_keeps_its_values_has_no_exits(write_module, line):
    path = write_module(HEAD + f"        {line}\n        return x * n\n")
    assert value_exits(runner_of(path), [{"x": np.ones((2, 3), np.float32)}]) == {}


@pytest.mark.parametrize(
    "line",
    [
        "x = (x - .5) / .5 if 0 <= float(x.min()) and float(x.max()) <= 1 else x",
        "x = x / (255 if 6 < x.max().item() < 1000 else 1)",
        "x = x / [1, 255][int(x.max() > 100)]",
        "x = x / (255 if x.numpy().max() > 20 and x.numpy().max() < 1000 else 1)",
    ],
)
def test_a_decision_by_a_range_that_users_feed_is_refused(write_module, export, tmp_path, line):
    path = write_module(HEAD + f"        {line}\n        return x * 2\n")
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:Net", ["x:float32[N,3,H]"], "N=1:2:3 H=5:8:11", exporter="torchscript")
    assert caught.value.where == "net.py:7"


def test_a_value_read_without_effect_at_any_point_is_noted(write_module, export):
    path = write_module(
        HEAD + "        if str(x.max().item()) == '1.234e+30':\n            x = x * 0\n        return x\n"
    )
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], "N=1:2:3 H=5:8:11", exporter="torchscript")
    (note,) = [n for n in result.notes if "reads values" in n]
    assert "net.py:7 (" in note
    assert "what the module does for other values is not shown" in note


FLOATS = ("x:float32[N,3,H]", "N=1:2:3 H=5:8:11")
IDS = ("x:int64[N,T]=0:900", "N=1:2:3 T=1:5:9")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("line", "inputs"),
    [
        ("x = x * (0 if 4e7 < x.max().item() < 5e7 else 1)", FLOATS),
        ("x = x * (3 if x[0, 0, 0].item() == 1.5 else 1)", FLOATS),
        ("x = x * {-2: 5.0, 3: 2.0}.get(round(float(x.mean())), 1.0)", FLOATS),
        pytest.param("x = x * (2 if (x == 777).to_sparse()._nnz() else 1)", IDS, marks=pytest.mark.slow),
        pytest.param("x = x * (2 if len(torch.where(x == 777)[0]) else 1)", IDS, marks=pytest.mark.slow),
        ("x = x * (2 if torch.repeat_interleave(x.flatten()).numel() == 777 else 1)", IDS),
    ],
)
def test_the_numbers_in_the_code_are_fed(write_module, export, line, inputs):
    path = write_module(HEAD + f"        {line}\n        return x * 2\n")
    tensor, dims = inputs
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:Net", [tensor], dims, exporter="torchscript")
    assert caught.value.where == "net.py:7"


def test_a_line_that_reads_the_same_numbers_at_both_points_is_not_blamed(write_module):
    body = (
        "        y = [x.new_full((2,), s) for s in torch.tensor([8.0, 16.0])]\n"
        "        return x * y[0].sum() * float(x.max())\n"
    )
    path = write_module(HEAD + body)
    runner = runner_of(path)
    points = [SamplePoint(label, (), seed=v) for label, v in (("a", 1), ("b", 2), ("c", 1))]
    items = [ReferenceSample(p, {"x": np.full((2, 3), p.seed, np.float32)}, {}) for p in points]
    job = SimpleNamespace(runner=runner, samples=SimpleNamespace(items=items), request=SimpleNamespace())
    job.request.source = ModuleSource(f"{path}:Net", base=path.parent)
    verdicts = [ProofVerdict((), None, p, 0.0) for p in points[1:]]
    assert [reading_line(job, v) for v in verdicts] == ["net.py:8", None]


SHARED = """
import array
import numpy as np

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.array = self.count.numpy()
        self.bytes = bytearray(8)
        self.other = torch.frombuffer(self.bytes, dtype=torch.int64)

    def forward(self, x):
        self.{where}.copy_((x == 777).sum().view(1))
        return x.float() * (2 if self.{read}[0] > 0 else 1)
"""


@pytest.mark.parametrize(("where", "read"), [("count", "array"), ("other", "bytes")])
def test_memory_that_python_holds_as_well_is_seen(write_module, where, read):
    path = write_module(SHARED.format(where=where, read=read))
    feeds = [{"x": np.full((2, 3), v, np.int64)} for v in (5, 777)]
    assert [line for _, line in value_exits(runner_of(path), feeds)] == [18]


def test_an_error_that_the_module_catches_decides(write_module):
    body = (
        "        try:\n            return x.reshape(-1)[x.reshape(-1) > 1e3].reshape(2) * 0\n"
        "        except RuntimeError:\n            return x[0, :2] * 2\n"
    )
    path = write_module(HEAD + body)
    exits = value_exits(runner_of(path), [{"x": np.full((2, 3), 0.5, np.float32)}])
    assert [line for _, line in exits] == [8]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "call",
    [
        "torch.linalg.inv(torch.diag_embed((x - 777).float()))",
        "nn.functional.embedding(x * (1 + 9 * (x == 777)), torch.ones(1001, 2))",
        "torch.repeat_interleave(x.flatten(), torch.where(x == 777, -1, 1).flatten())",
        "torch.normal(0.0, torch.where(x == 777, -1.0, 1.0))",
        "5 // (x - 777)",
    ],
)
@pytest.mark.parametrize("caught", ["try", pytest.param("suppress", marks=pytest.mark.slow)])
def test_an_error_that_rare_values_raise_is_seen_and_tried(write_module, export, call, caught):
    lines = (
        ("try:", f"    {call}", "except (RuntimeError, IndexError):", "    return x.float() * 2", "return x.float()")
        if caught == "try"
        else ("y = x * 2.0", "with contextlib.suppress(Exception):", f"    {call}", "    y = x * 1.0", "return y")
    )
    path = write_module("import contextlib\n" + HEAD + "".join(f"        {line}\n" for line in lines))
    exits = value_exits(runner_of(path), [{"x": np.full((2, 3), 5, np.int64)}])
    assert len(exits) == 1
    with pytest.raises(AccuracyError) as raised:
        export(f"{path}:Net", ["x:int64[N,T]=0:900"], "N=1:2:3 T=1:5:9")
    assert raised.value.where.startswith("net.py:")


@pytest.mark.parametrize(
    "call",
    [
        "torch.poisson(x)",
        "nn.functional.binary_cross_entropy(x / 776.0, torch.ones(x.shape))",
        "x.masked_scatter(x > 9, x[0, :1])",
        "x.long() % x.long()",
    ],
)
def test_any_operator_that_may_raise_by_values_is_noted_where_errors_are_caught(write_module, call):
    lines = ("try:", f"    return {call}", "except Exception:", "    return x")
    path = write_module(HEAD + "".join(f"        {line}\n" for line in lines))
    assert len(value_exits(runner_of(path), [{"x": np.ones((2, 3), np.float32)}])) == 1


SWALLOWING = """
import contextlib

class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True

@contextlib.contextmanager
def quiet():
    try:
        yield
    except Exception:  # the module under test swallows whatever comes
        pass

class Rows:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        return self.x.index_select(0, torch.tensor([i]))

class Net(nn.Module):
    def forward(self, x):
        y = x * 1.0
{lines}
        return y
"""
WAYS = {
    "an __exit__": "with Quiet():\n    y = y.index_select(0, x[0].long())",
    "a generator": "with quiet():\n    y = y.index_select(0, x[0].long())",
    "a stack": "with contextlib.ExitStack() as s:\n    s.push(Quiet())\n    y = y.index_select(0, x[0].long())",
    "a finally": "for _ in (1,):\n    try:\n        y = y.index_select(0, x[0].long())\n    finally:\n        break",
    "an iteration": "for row in Rows(x):\n    y = y + row.sum()",
    "no source": "exec('try:\\n    x.index_select(0, x[0].long())\\nexcept Exception:\\n    pass')",
}


@pytest.mark.parametrize("lines", WAYS.values(), ids=WAYS)
def test_an_error_that_is_swallowed_in_another_way_is_noted(write_module, lines):
    path = write_module(SWALLOWING.format(lines=textwrap.indent(lines, " " * 8)))
    assert value_exits(runner_of(path), [{"x": np.zeros((2, 3), np.float32)}])


def test_what_torch_s_own_contexts_hold_is_no_decision(write_module):
    lines = "        with torch.no_grad():\n            return x.index_select(0, x[0].long())\n"
    assert value_exits(runner_of(write_module(HEAD + lines)), [{"x": np.zeros((2, 3), np.float32)}]) == {}


def test_operators_that_raise_for_shapes_alone_are_no_decision(write_module):
    lines = (
        "try:", "    y = nn.functional.layer_norm(x, x.shape[1:]) @ x.T + nn.functional.gelu(x).sum()",
        "    y = nn.functional.max_pool1d(y[None] // 0.1, 2).softmax(-1)", "except RuntimeError:", "    y = x",
        "return y",
    )  # fmt: skip
    path = write_module(HEAD + "".join(f"        {line}\n" for line in lines))
    assert value_exits(runner_of(path), [{"x": np.ones((2, 3), np.float32)}]) == {}


def test_a_lookup_that_nobody_catches_is_no_decision(write_module):
    body = "        try:\n            n = int('3')\n        except ValueError:\n            n = 1\n"
    path = write_module(HEAD + body + "        return nn.functional.embedding(x, torch.ones(9, n))\n")
    assert value_exits(runner_of(path), [{"x": np.ones((2, 3), np.int64)}]) == {}


def test_writes_into_an_input_and_a_cache_are_none(write_module):
    body = "        x.mul_(2)\n        y = torch.zeros(3)\n        y.add_(x[0])\n        return x + y\n"
    assert value_exits(runner_of(write_module(HEAD + body)), [{"x": np.ones((2, 3), np.float32)}]) == {}


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_text_that_decides_is_noted_although_torch_export_passes_over_it(write_module, export, exporter):
    path = write_module(HEAD + "        if 'nan' in repr(x):\n            x = x * 0\n        return x * 2\n")
    result = export(f"{path}:Net", ["x:float32[N,3,H]"], "N=1:2:3 H=5:8:11", exporter=exporter)
    (note,) = [n for n in result.notes if "reads values" in n]
    assert "`if 'nan' in repr(x):` at net.py:7" in note


def test_a_python_function_on_every_element_is_refused_by_its_line(write_module, export):
    path = write_module(HEAD + "        return x.clone().apply_(lambda v: v if v < 1.5 else 0.0)\n")
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:Net", ["x:float32[N,3,H]"], "N=1:2:3 H=5:8:11")
    assert caught.value.where == "net.py:7"
