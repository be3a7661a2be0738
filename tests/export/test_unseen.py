"""What no ordinary sample point shows: single sizes, sizes of several dims together, values that random ones miss."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export import export_model
from trtconv.export.sizes.float_sizes import computes_sizes_in_floats

IMAGE = ("x:float32[N,4,H,W]",)
WITH_LENGTHS = (*IMAGE, "lengths:int64[N]=1:5")
LINE_AND_MASK = ("x:float32[N,T,4]", "mask:bool[N,T]")


class CeilOfTenths(nn.Module):
    """50 * 1.1 is 55.00000000000001 in Python and 55 in FP32; no other width up to 60 differs."""

    def forward(self, x):
        return F.interpolate(x, size=(x.shape[2], math.ceil(x.shape[3] * 1.1)), mode="bilinear")


class WholeNumbers(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(x.shape[2], x.shape[3] * 11 // 10), mode="bilinear")


class TwoDims(nn.Module):
    """TorchScript records it, since a length from the values is not a size that torch.export takes."""

    def forward(self, x, lengths):
        y = x[:, :, : int(lengths.max())]
        if x.shape[2] % 8 == 0 and x.shape[3] % 8 == 0:
            y = y + 1.0
        return y.sum((2, 3))


class OneResidue(nn.Module):
    """A wide range that begins odd: every second size is odd."""

    def forward(self, x, lengths):
        y = x[:, :, : int(lengths.max())]
        if x.shape[2] % 8 == 0:
            y = y + 1.0
        return y.sum((2, 3))


class AllTrue(nn.Module):
    """A fast path for a mask without a hole, which gives another result."""

    def forward(self, x, mask):
        if mask.all():
            return x.mean(1)
        return (x * mask[..., None]).sum(1)


class AllFull(nn.Module):
    def forward(self, x, lengths):
        if (lengths == x.shape[1]).all():
            return x.mean(1)
        return (x * (torch.arange(x.shape[1])[None] < lengths[:, None])[..., None]).sum(1)


class BytesOrUnits(nn.Module):
    """Guesses from the values whether the image is in bytes; of an image of zeros both ways give the same."""

    def forward(self, x):
        if x.max() > 2.0:
            x = x / 255.0
        return x * 2.0


class GuardsNan(nn.Module):
    """Only NaN goes the other way."""

    def forward(self, x):
        if torch.isnan(x).any():
            x = torch.nan_to_num(x)
        return x.softmax(-1)


class OneArea(nn.Module):
    """torch.export leaves a condition on two dims to run time; only 20 x 20 and its like go the other way."""

    def forward(self, x):
        return x * 2.0 if x.shape[2] * x.shape[3] == 400 else x * 3.0


class NearlySquare(nn.Module):
    def forward(self, x):
        return x * 2.0 if abs(x.shape[2] - x.shape[3]) < 2 else x * 3.0


class SmallAsItIs(nn.Module):
    """One side of the branch is the input itself."""

    def forward(self, x):
        return x if x.shape[2] * x.shape[3] <= 900 else x - x.mean((2, 3), keepdim=True)


class TransposedIfSquare(nn.Module):
    """The sum only has a shape where both sizes are equal, so that no If can hold it for the whole space."""

    def forward(self, x):
        return x + x.transpose(2, 3) if x.shape[2] == x.shape[3] else x


MODULES = {
    c.__name__: c
    for c in (
        CeilOfTenths, WholeNumbers, TwoDims, OneResidue, AllTrue, AllFull, BytesOrUnits, GuardsNan, OneArea,
        NearlySquare, SmallAsItIs, TransposedIfSquare,
    )
}  # fmt: skip


def make(name):
    return MODULES[name]()


def exported(tmp_path, name, inputs, space, **options):
    source = ModuleSource("tests.export.test_unseen:make", (("name", name),), base=Path(__file__).parents[2])
    specs = tuple(parse_tensor(i) for i in inputs)
    request = ExportRequest(source, specs, parse_space([space]), tmp_path / "model.onnx", **options)
    return export_model(request, SilentProgress())


REFUSED = [
    ("TwoDims", WITH_LENGTHS, "N=1:2:3 H=9:19:60 W=9:21:60", r"shape\[2\] % 8 == 0 and"),
    ("OneResidue", WITH_LENGTHS, "N=1:2:3 H=9:19:121 W=9:21:60", r"shape\[2\] % 8 == 0"),
    ("AllTrue", LINE_AND_MASK, "N=2:2:4 T=12:16:40", "if mask.all"),
    ("AllFull", ("x:float32[N,T,4]", "lengths:int64[N]=1:40"), "N=2:2:4 T=12:16:40", "if .lengths == x.shape"),
    ("BytesOrUnits", ("x:float32[N,4]=0:255",), "N=2:2:4", "if x.max"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "inputs", "space", "said"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_differs_at_one_size_or_one_value_is_refused(tmp_path, name, inputs, space, said):
    with pytest.raises(AccuracyError, match=said):
        exported(tmp_path, name, inputs, space)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_size_in_floats_is_to_be_written_in_whole_numbers(tmp_path):
    """A recorded run has the product in FP32, and nothing says what it was in Python."""
    space = "N=1:2:3 H=6:7:9 W=11:30:60"
    with pytest.raises(AccuracyError) as caught:
        exported(tmp_path, "CeilOfTenths", IMAGE, space, exporter="torchscript")
    assert any("W=50" in line for line in caught.value.details)
    assert "compute it in whole numbers" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    result = exported(tmp_path, "WholeNumbers", IMAGE, space)
    assert not computes_sizes_in_floats(onnx.load(result.model).graph)


def test_a_size_in_floats_is_exact_at_every_size(tmp_path):
    result = exported(tmp_path, "CeilOfTenths", IMAGE, "N=1:2:3 H=6:7:9 W=11:30:60", exporter="dynamo")
    run = OnnxRuntimeRunner(result.model)
    for w in range(11, 61):
        assert run({"x": np.zeros((1, 4, 6, w), np.float32)})["output"].shape[3] == math.ceil(w * 1.1), w


@pytest.mark.slow
def test_a_branch_by_value_that_no_point_takes_is_noted(tmp_path):
    result = exported(tmp_path, "GuardsNan", ("x:float32[N,T,4]",), "N=1:2:3 T=5:7:9")
    note = next(n for n in result.notes if "decides by values" in n)
    assert "`if torch.isnan(x).any():` at tests/export/test_unseen.py:" in note


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("OneArea", [(20, 20), (16, 25), (19, 20), (40, 11)]),
        ("NearlySquare", [(20, 20), (20, 21), (33, 32), (20, 22), (11, 40)]),
        pytest.param("SmallAsItIs", [(30, 30), (29, 31), (30, 31), (41, 41), (10, 11)], marks=pytest.mark.slow),
        ("TransposedIfSquare", [(20, 20), (20, 21), (41, 41), (11, 11), (10, 11), (41, 40)]),
    ],
)
def test_a_condition_on_two_dims_is_not_taken_for_true(tmp_path, name, sizes):
    result = exported(tmp_path, name, IMAGE, "N=1:2:3 H=10:20:41 W=11:23:41")
    run, module = OnnxRuntimeRunner(result.model), make(name)
    for h, w in sizes:
        x = torch.randn(2, 4, h, w)
        torch.testing.assert_close(torch.from_numpy(run({"x": x.numpy()})["output"]), module(x), msg=f"{h}x{w}")


FLOAT_SIZES = """
agraph (float[N,C,H,W] x) => (float[a,b,c,d] y) <float tenth = {0.7}, int64 one = {2}, int64[1] flat = {-1}> {
  shape = Shape(x)
  side = Gather(shape, one)
  wide = Cast<to=1>(side)
  part = Mul(wide, tenth)
  last = %s
  ends = Reshape(last, flat)
  y = Expand(x, ends)
}"""


@pytest.mark.parametrize(("node", "in_floats"), [("Cast<to=7>(part)", True), ("Gather(shape, one)", False)])
def test_sizes_in_floats_are_found(node, in_floats):
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    assert computes_sizes_in_floats(onnx.parser.parse_model(header + FLOAT_SIZES % node).graph) is in_floats


@pytest.mark.parametrize(("scale", "in_floats"), [(2.0, False), (0.25, False), (1.7, True)])
def test_a_scale_that_rounds_is_a_size_in_floats(scale, in_floats):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    agraph (float[N,C,H,W] x) => (float[a,b,c,d] y) <float[4] scales = {{1.0, 1.0, {scale}, 1.0}}> {{
      y = Resize<mode="linear">(x, , scales)
    }}"""
    assert computes_sizes_in_floats(onnx.parser.parse_model(text).graph) is in_floats
