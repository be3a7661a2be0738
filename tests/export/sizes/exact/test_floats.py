"""Numbers that Python computes from sizes in FP64 are the same in the file at every size."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module

HEAD = "class Net(nn.Module):\n    def forward(self, x, l):\n        n, t = x.shape\n"
# Each is wrong at some size of 10 to 500 where the number is computed in FP32.
LINES = {
    "compared": "return l >= 0.3 * t, x",
    "compared the other way": "return 0.3 * t > l, x",
    "of two sizes": "return l >= 0.15 * t * n, x",
    "divisor": "return (l / (t * 0.1)).floor(), x",
    "product cut": "return (l * (t * 0.1)).floor(), x",
    "floor division": "return l // (t * 0.1), x",
    "bounds": "return l.float().clamp(0.1 * t, 0.6 * t) >= 0.6 * t, x",
    "choice": "return torch.where(l > 3, 0.3 * t, 1.0) <= l, x",
    "tensor of it": "return torch.tensor([0.3 * t, 0.6 * t]) <= l[:1], x",
    "root and logarithm": "return (l > math.sqrt(t)) & (l > math.log2(t)), x",
    "one tensor of it": "return l.float() >= torch.tensor(0.3 * t), x",
    "rounded to a digit": "return l >= round(0.35 * t, 1), x",
    "in FP64": "return l.double() >= 0.3 * t, x",
    "filled": "return torch.full((3,), 0.3 * t) <= l[:1], x",
}


def wrong_sizes(write_module, export, tmp_path, line, dims="N=1:2:4 T=10:100:500"):
    path = write_module("import math\n" + HEAD + f"        {line}\n")
    export(f"{path}:Net", ["x:float32[N,T]", "l:int64[N]=0:500"], dims, exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    wrong = []
    for size in range(10, 501):
        edges = np.array([size * 0.3, size**0.5, size * 0.6, size * 0.15 * 4])
        lengths = np.rint(edges).astype(np.int64)
        feed = {"x": np.ones((4, size), np.float32), "l": lengths}
        expected = module(*map(torch.from_numpy, feed.values()))[0].numpy()
        if not np.array_equal(expected, session.run(None, feed)[0]):
            wrong.append(size)
    return wrong


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LINES)
def test_a_number_from_a_size_is_python_s_at_every_size(write_module, export, tmp_path, name):
    assert wrong_sizes(write_module, export, tmp_path, LINES[name]) == []


def test_of_a_long_range_a_decimal_is_a_fraction(write_module, export, tmp_path):
    line = "return l >= 0.3 * t, x[:, :1]"
    assert wrong_sizes(write_module, export, tmp_path, line, "N=1:2:4 T=10:100:100000") == []
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    lengths = np.array([2999, 3000, 29999, 30000], np.int64)
    for size in (10_000, 100_000):
        (kept, _) = session.run(None, {"x": np.ones((4, size), np.float32), "l": lengths})
        np.testing.assert_array_equal(kept, lengths >= 0.3 * size)


def test_what_fp32_gives_anyway_stays_a_formula(write_module, export, tmp_path):
    path = write_module(HEAD + "        return x * (1.0 / t), l * (t * 0.5)\n")
    export(f"{path}:Net", ["x:float32[N,T]", "l:int64[N]=0:500"], "N=1:2:4 T=10:100:500", exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    assert (tmp_path / "out" / "model.onnx").stat().st_size < 4000
    assert len(session.get_inputs()) == 2


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_whole_numbers_are_divided_by_a_size_as_whole_numbers(write_module, export, tmp_path, mode):
    path = write_module(HEAD + f"        return torch.div(l, t, rounding_mode='{mode}'), x\n")
    dims = "N=1:2:4 T=900:1000:1100"
    export(f"{path}:Net", ["x:float32[N,T]", "l:int64[N]=-40000000:40000000"], dims, exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    lengths = np.array([18_135_999, 18_136_000, -18_135_999, 39_999_999], np.int64)
    (quotient, _) = session.run(None, {"x": np.ones((4, 1000), np.float32), "l": lengths})
    expected = torch.div(torch.from_numpy(lengths), 1000, rounding_mode=mode).numpy()
    np.testing.assert_array_equal(quotient, expected)


@pytest.mark.slow
def test_a_number_that_a_recording_keeps_follows_the_size(write_module, export, load):
    path = write_module("import math\n" + HEAD + "        return l >= 4 * math.hypot(t, 1.0), x\n")
    export(f"{path}:Net", ["x:float32[N,T]", "l:int64[N]=0:500"], "N=1:1:2 T=10:30:60", exporter="torchscript")
    session = OnnxRuntimeRunner(path.parent / "out" / "model.onnx")
    for t in (10, 11, 37, 60):
        inputs = {"x": np.zeros((2, t), np.float32), "l": np.array([4 * t, 4 * t + 1])}
        expected = load(path).Net()(*map(torch.from_numpy, inputs.values()))[0].numpy()
        np.testing.assert_array_equal(session(inputs)["output_0"], expected)
        assert expected.tolist() == [False, True]


@pytest.mark.slow
def test_a_recording_compares_values_with_floats_of_sizes_and_says_so(write_module, export):
    inputs, dims = ["x:float32[N,T]", "l:int64[N]=0:500"], "N=1:1:2 T=10:40:100"
    noted = {}
    for number in ("0.3 * t", "t / 4", "t // 3"):
        path = write_module(HEAD + f"        return l >= {number}, x\n")
        result = export(f"{path}:Net", inputs, dims, exporter="torchscript")
        noted[number] = any("in FP64; the file has FP32" in n for n in result.notes)
    assert noted == {"0.3 * t": True, "t / 4": False, "t // 3": False}


AREA = """
class Net(nn.Module):
    def forward(self, m, p):
        h, w = m.shape[-2:]
        return p >= SHARE, m[:, :1, :1]
"""


def test_a_share_of_an_area_is_a_fraction(write_module, export, tmp_path):
    path = write_module(AREA.replace("SHARE", "0.07 * h * w"))
    dims = "N=1:1:2 H=64:256:640 W=64:256:640"
    export(f"{path}:Net", ["m:float32[N,H,W]", "p:int64[N]=0:40000"], dims, exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    for h, w, p in ((328, 175, 4018), (127, 400, 3556), (136, 300, 2856), (620, 350, 15190), (64, 65, 291)):
        feed = {"m": np.zeros((1, h, w), np.float32), "p": np.array([p], np.int64)}
        (large, _) = session.run(None, feed)
        assert large[0] == (p >= np.float32(0.07 * h * w))


def test_a_number_without_an_exact_form_is_noted(write_module, export):
    path = write_module(AREA.replace("SHARE", "(0.07 * h + 0.3) * w"))
    dims = "N=1:1:2 H=64:256:640 W=64:256:640"
    result = export(f"{path}:Net", ["m:float32[N,H,W]", "p:int64[N]=0:40000"], dims, exporter="dynamo")
    assert any("in FP64; the file has FP32" in n for n in result.notes)
