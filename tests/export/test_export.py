"""The room as a whole: the files it writes, what it refuses, and what it never does."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import trtconv
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError
from trtconv.core.model.file import signature
from trtconv.core.model.provenance import origin_of
from trtconv.proof.reference import read_reference_info, read_samples

NET = """
class Block(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2 + 1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2, 1)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, images):
        x = self.conv(images)
        for block in self.blocks:
            x = block(x)
        return {"features": x, "mean": x.mean((2, 3))}

def make():
    return Net()
"""
SPACE = "N=1:2:4 H=16:24:40 W=16:32:48%16"
IMAGES = ["images:float32[N,3,H,W]"]


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_files_and_names(export, write_module, exporter):
    path = write_module(NET)
    result = export("net.py:make", IMAGES, SPACE, exporter=exporter)
    model = onnx.load(result.model)
    tensors = signature(model)
    assert [str(s) for s in tensors.inputs] == IMAGES
    assert [s.name for s in tensors.outputs] == ["features", "mean"]
    assert str(tensors.space) == SPACE
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["N", 3, "H", "W"]
    assert {t.name for t in model.graph.initializer} >= {"conv.weight", "conv.bias"}

    lines = path.read_text().splitlines()
    relu = next(n for n in model.graph.node if n.op_type == "Relu")
    assert origin_of(relu).module == "blocks.0"
    assert origin_of(relu).source == f"net.py:{lines.index('        return torch.relu(x * 2 + 1)') + 1}"
    conv = next(n for n in model.graph.node if n.op_type == "Conv")
    assert str(origin_of(conv)) == f"conv (net.py:{lines.index('        x = self.conv(images)') + 1})"
    assert all(origin_of(n) for n in model.graph.node)

    manifest = json.loads(result.manifest.read_text())
    assert manifest["exporter"] == exporter == result.exporter
    assert manifest["space"] == SPACE
    assert all(c["passed"] for c in manifest["comparisons"])
    assert sorted(p.name for p in result.model.parent.iterdir()) == [
        "model.onnx",
        "model.onnx.json",
        "model.reference.safetensors",
    ]


def test_reference_has_all_points_and_they_are_what_the_module_computes(export, write_module):
    write_module(NET)
    result = export("net.py:make", IMAGES, SPACE)
    info = read_reference_info(result.reference)
    assert {"traced", "opt", "min", "max", "interior-1", "interior-2", "zeros", "large"} <= {
        p.label for p in info.points
    }
    assert max(p.sizes["N"] for p in info.points) == 4
    runner = OnnxRuntimeRunner(result.model)
    for sample in read_samples(result.reference):
        if not sample.point.advisory and sample.point.values == "random":
            np.testing.assert_allclose(runner(sample.inputs)["mean"], sample.outputs["mean"], atol=1e-4, rtol=1e-4)


def test_traced_sizes_are_odd_distinct_and_no_batch_of_one(export, write_module):
    write_module(NET)
    result = export("net.py:make", IMAGES, "N=1:2:4 H=16:24:40 W=16:32:48")
    sizes = result.points[0].sizes
    assert sizes["N"] >= 2
    assert sizes["H"] % 2 == 1
    assert sizes["W"] % 2 == 1
    assert len({*sizes.values(), 3}) == 4


BRANCH = """
class Net(nn.Module):
    def forward(self, x):
        if x.shape[2] > x.shape[3]:
            return x * 2
        return x + 1

def make():
    return Net()
"""


def test_a_wrong_model_is_not_written_and_the_line_is_named(export, write_module, tmp_path):
    write_module(BRANCH)
    with pytest.raises(AccuracyError) as caught:
        export("net.py:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=16:24:40 W=16:24:40", exporter="torchscript")
    assert caught.value.where == "net.py:8"
    assert "`if x.shape[2] > x.shape[3]:`" in caught.value.message
    assert caught.value.exit_code == 3
    assert not (tmp_path / "out").exists()


def test_a_failed_export_leaves_the_old_file(export, write_module, tmp_path):
    write_module(NET)
    result = export("net.py:make", IMAGES, SPACE)
    before = result.model.read_bytes()
    write_module(BRANCH, "branch.py")
    with pytest.raises(AccuracyError):
        export("branch.py:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=16:24:40 W=16:24:40", exporter="torchscript")
    assert result.model.read_bytes() == before
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_a_branch_that_the_range_excludes_is_no_obstacle(export, write_module):
    write_module(BRANCH)
    assert export("net.py:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=31:35:40 W=16:24:30").exporter == "dynamo"


SIZED = BRANCH.replace("x.shape[2] > x.shape[3]", "x.shape[2] {}")


def test_a_branch_on_one_size_becomes_an_if(export, write_module):
    write_module(SIZED.format("> 30"))
    result = export("net.py:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=16:24:40 W=16:24:40")
    runner = OnnxRuntimeRunner(result.model)
    for height in (16, 30, 31, 40):
        x = np.random.default_rng(0).standard_normal((1, 3, height, 16)).astype(np.float32)
        np.testing.assert_allclose(runner({"x": x})["output"], x * 2 if height > 30 else x + 1, rtol=1e-6)
    assert any("one graph for H up to 30 and one above" in n for n in result.notes)


@pytest.mark.slow
def test_a_branch_that_one_size_alone_takes_is_seen(export, write_module):
    write_module(SIZED.format("== 37"))
    request = ("net.py:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=16:24:60 W=16:24:40")
    with pytest.raises(AccuracyError) as caught:
        export(*request, exporter="torchscript")
    assert caught.value.where == "net.py:8"
    runner = OnnxRuntimeRunner(export(*request).model)
    for height in (36, 37, 38):
        actual = runner({"x": np.ones((1, 3, height, 16), np.float32)})["output"]
        assert actual.shape == (1, 3, height, 16)
        assert (actual == 2).all()
        actual = runner({"x": np.full((1, 3, height, 16), 3, np.float32)})["output"]
        assert (actual == (6 if height == 37 else 4)).all()


@pytest.mark.parametrize(
    ("inputs", "space", "options", "words"),
    [
        ([*IMAGES, "image:float32[N,3,H,W]"], SPACE, {}, "takes no input 'image'. Did you mean 'images'?"),
        (["images:float32[N,3,H,W]"], "N=1:2:4 H=16:24:40", {}, "dim 'W' without a range"),
        (["images:float32[N,3,H,W]"], SPACE + " K=1:2:3", {}, "no input has a dim called 'K'"),
        ([], "", {}, "no inputs are given"),
        (IMAGES, SPACE, {"exporter": "onnx"}, "unknown exporter 'onnx'"),
        (IMAGES, SPACE, {"opset": 9}, "opset 9 is not supported"),
        (IMAGES, SPACE, {"opset": 17, "exporter": "dynamo"}, "writes opset 18 and newer"),
    ],
)
def test_requests_that_do_not_fit(export, write_module, tmp_path, inputs, space, options, words):
    write_module(NET)
    with pytest.raises(InvalidRequestError) as caught:
        export("net.py:make", inputs, space, **options)
    assert words in caught.value.message
    assert not (tmp_path / "out" / "model.onnx").exists()


def test_a_module_that_raises_at_some_size_says_which_and_where(export, write_module):
    line = "        return x[:, :, 20:].amax(2)"
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n{line}\n\ndef make():\n    return Net()\n")
    with pytest.raises(TrtconvError) as caught:
        export("net.py:make", ["x:float32[N,3,H]"], "N=1:2:3 H=16:24:40")
    assert caught.value.where == f"net.py:{path.read_text().splitlines().index(line) + 1}"
    assert "for x [" in caught.value.message


def test_output_that_cannot_be_written(export, write_module, tmp_path):
    write_module(NET)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequestError, match="cannot be written"):
        export("net.py:make", IMAGES, SPACE, output=tmp_path / "file" / "model.onnx")


def test_sample_function(export, write_module):
    write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.e = nn.Embedding(5, 4)\n"
        "    def forward(self, ids, lengths):\n        return self.e(ids).sum(1) / lengths[:, None]\n\n"
        "def make():\n    return Net()\n\n"
        "def sample(dims, generator):\n"
        "    ids = torch.randint(0, 5, (dims['N'], dims['T']), generator=generator)\n"
        "    return ids, torch.full((dims['N'],), dims['T'])\n\n"
        "def short(dims, generator):\n    return torch.zeros(1, 1)\n"
    )
    inputs = ["ids:int64[N,T]", "lengths:int64[N]"]
    result = export("net.py:make", inputs, "N=1:2:4 T=3:8:20", sample="net.py:sample")
    first = next(iter(read_samples(result.reference)))
    assert set(first.inputs["lengths"]) == {first.point.sizes["T"]}
    assert {p.values for p in result.points} == {"random"}
    with pytest.raises(InvalidRequestError, match="returned 1 tensors for 2 inputs"):
        export("net.py:make", inputs, "N=1:2:4 T=3:8:20", sample="net.py:short")


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_nested_inputs_and_outputs(export, write_module, exporter):
    write_module(
        "from dataclasses import dataclass\n\n@dataclass\nclass Batch:\n    image: torch.Tensor\n"
        "    ids: torch.Tensor\n\n"
        "class Net(nn.Module):\n    def forward(self, batch: Batch, levels: list, *, flag):\n"
        "        a = torch.where(flag, batch.image, -batch.image)\n"
        "        return [a + levels[0], {'ids': batch.ids.float() * 2, 'deep': (levels[1].double(), None)}]\n\n"
        "def make():\n    return Net()\n"
    )
    inputs = [
        "batch.image:float16[N,4]", "batch.ids:int32[N,T]", "levels.0:float16[N,1]", "levels.1:uint8[N]",
        "flag:bool[N,4]",
    ]  # fmt: skip
    result = export("net.py:make", inputs, "N=1:2:4 T=3:8:20", exporter=exporter)
    tensors = signature(onnx.load(result.model))
    assert [str(s) for s in tensors.inputs] == inputs
    assert [(s.name, s.dtype.name) for s in tensors.outputs] == [
        ("output_0", "float16"),
        ("output_1.ids", "float32"),
        ("output_1.deep_0", "float64"),
    ]


def test_training_mode_is_left_with_a_note(export, write_module):
    write_module(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(4)\n"
        "    def forward(self, x):\n        return self.norm(self.drop(x))\n\ndef make():\n    return Net().train()\n"
    )
    result = export("net.py:make", ["x:float32[N,4]"], "N=1:2:4")
    assert any("training mode" in n for n in result.notes)
    assert not {n.op_type for n in onnx.load(result.model).graph.node} & {"Dropout"}


def test_unused_input_stays_an_input(export, write_module):
    net = "class Net(nn.Module):\n    def forward(self, x, y):\n        return x * 2\n\n"
    write_module(f"{net}def make():\n    return Net()\n")
    for exporter in ("dynamo", "torchscript"):
        result = export("net.py:make", ["x:float32[N,4]", "y:float32[N,T]"], "N=1:2:4 T=3:8:20", exporter=exporter)
        assert [v.name for v in onnx.load(result.model).graph.input] == ["x", "y"]


def test_exported_program(export, write_module, tmp_path):
    import torch

    from trtconv.core.requests import ModuleSource
    from trtconv.export.module.source import load_module

    path = write_module(NET)
    module = load_module(ModuleSource("net.py:make", base=path.parent)).eval()
    dim = torch.export.Dim
    size = {0: dim("n", min=1, max=4), 2: dim("h", min=16, max=64), 3: dim("w", min=16, max=64)}
    program = torch.export.export(module, (torch.zeros(2, 3, 20, 24),), dynamic_shapes=(size,))
    torch.export.save(program, tmp_path / "net.pt2")
    result = export("net.pt2", IMAGES, "N=1:2:4 H=16:24:40 W=16:32:48")
    assert [s.name for s in signature(onnx.load(result.model)).outputs] == ["features", "mean"]
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    with pytest.raises(InvalidRequestError, match="is not an exported program"):
        export("bad.pt2", IMAGES, SPACE)


def test_helpers_of_forward_are_the_lines_that_are_named(export, write_module):
    path = write_module(
        "def double(x):\n    return torch.sin(x)\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        return double(x) + 1\n\ndef make():\n    return Net()\n"
    )
    line = path.read_text().splitlines().index("    return torch.sin(x)") + 1
    for exporter in ("dynamo", "torchscript"):
        model = onnx.load(export("net.py:make", ["x:float32[N,4]"], "N=1:2:4", exporter=exporter).model)
        assert f"net.py:{line}" in {origin_of(n).source for n in model.graph.node}


def test_uncertainty_at_special_values_is_measured_and_noted(export, write_module):
    """Which elements a top-k takes of equal ones is an accident; the file is not refused for it, and a note says so."""
    write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n        return x.topk(3, dim=1, largest=False)[1]\n\n"
        "def make():\n    return Net()\n"
    )
    result = export("net.py:make", ["x:float32[N,T]"], "N=1:2:4 T=8:12:20")
    assert all(c.passed for c in result.comparisons)
    if any(c.max_abs for c in result.comparisons):
        assert any("ill conditioned" in n or "own noise" in n for n in result.notes)


def test_a_value_range_is_kept(export, write_module):
    net = "class Net(nn.Module):\n    def forward(self, x):\n        return x.sqrt()\n\n"
    write_module(f"{net}def make():\n    return Net()\n")
    result = export("net.py:make", ["x:float32[N,4]=0:9"], "N=1:2:4")
    assert all(np.nanmin(s.inputs["x"]) >= 0 for s in read_samples(result.reference))


def test_a_range_of_one_and_two_stays_dynamic(export, write_module):
    """torch.export itself would make the constant 2 of it."""
    write_module(NET)
    assert export("net.py:make", IMAGES, "N=1:1:2 H=16:24:40 W=16:32:48%16", exporter="dynamo").exporter == "dynamo"


def test_what_torch_export_puts_in_is_nobodys_line(export, write_module):
    text = (
        "class Grid(nn.Module):\n    def forward(self, x):\n        h = x.shape[2]\n        y = torch.arange(h) / h\n"
    )
    text += "        return x + y[:, None] + x.shape[3]\n"
    model = onnx.load(export(f"{write_module(text)}:Grid", ["x:float32[N,2,H,W]"], "N=1:1:3 H=8:9:14 W=8:11:15").model)
    assert (model.producer_name, model.producer_version) == ("trtconv", trtconv.__version__)
    origins = {(n.op_type, origin_of(n).module, origin_of(n).source) for n in model.graph.node}
    assert ("Shape", "", "") in origins, "torch.export reads the sizes before the first line of forward"
    assert {source.split(":")[0] for _, _, source in origins} == {"", "net.py"}
    assert {module for _, module, _ in origins} == {""}


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_an_output_that_has_the_name_of_an_input(export, write_module, exporter):
    write_module("""
class Net(nn.Module):
    def forward(self, sample):
        return {"sample": sample * 2}
""")
    result = export("net.py:Net", ["sample:float32[N,3]"], "N=1:2:4", exporter=exporter)
    assert [o.name for o in signature(onnx.load(result.model)).outputs] == ["sample_out"]
    assert "the output 'sample' is called 'sample_out': an input has its name" in result.notes


def test_output_names_that_an_input_has(export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        return x * 2
""")
    with pytest.raises(InvalidRequestError, match="--output-names gives 'x', which is an input"):
        export("net.py:Net", ["x:float32[N,3]"], "N=1:2:4", output_names=("x",))
