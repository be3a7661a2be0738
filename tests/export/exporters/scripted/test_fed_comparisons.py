"""Numbers of a loop that the file has otherwise show where the module compares with them, at every step."""

from __future__ import annotations

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.export.exporters.scripted.fed_comparisons import Compared, boundary_feeds

NET = """
import math


class Net(nn.Module):
    def forward(self, x):
        n, h = torch.zeros_like(x[:, 0]), 1
        for t in range(x.shape[1]):
            {before}
            n = n + ({compared})
        return n
"""
SPACE, SHORT = "N=1:1:2 T=1:9:24", "N=1:1:2 T=1:5:9"
BEYOND = {
    "a number that grows": ("h = h * 31 + t", "x[:, t] == h % 97 + 1000.0"),
    "a power": ("pass", "x[:, t] == 10 ** t % 7 + 1000.0"),
    "a factorial": ("h = h * max(t, 1)", "x[:, t] > math.log(h) + 1"),
}
CUT = {
    "half of a counter": ("x[:, t] == int(t * 0.5) + 1000.0", lambda t: int(t * 0.5) + 1000.0),
    "a third": ("x[:, t] > int(t / 3) + 30.5", lambda t: int(t / 3) + 30.75),
    "below zero": ("x[:, t] == int((t - 5) * 0.5) + 1000.0", lambda t: int((t - 5) * 0.5) + 1000.0),
    "of a size": ("x[:, t] == int((x.shape[1] - 1) * 0.5) + 100.0", lambda t: 104.0),
    "an index": ("x[:, int(t / 2)] >= 3.0", lambda t: float(t % 7)),
}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("before", "compared"), BEYOND.values(), ids=BEYOND)
def test_whole_numbers_beyond_64_bits_are_seen(write_module, export, before, compared):
    path = write_module(NET.format(before=before, compared=compared))
    with pytest.raises(AccuracyError, match="a number that it compares with is another one in the file"):
        export(f"{path}:Net", ["x:float32[N,T]"], SPACE, exporter="torchscript")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("compared", "fed"), CUT.values(), ids=CUT)
def test_int_cuts_a_number_of_the_loop(write_module, export, load, compared, fed):
    import torch

    path = write_module(NET.format(before="pass", compared=compared))
    result = export(f"{path}:Net", ["x:float32[N,T]"], SHORT, exporter="torchscript")
    x = np.array([[fed(t) for t in range(9)]], np.float32)
    expected = load(path).Net()(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(OnnxRuntimeRunner(result.model)({"x": x})["output"], expected)
    assert expected[0] > 0 or "==" not in compared


@pytest.mark.slow
def test_int_cuts_a_number_in_a_script_of_the_users_own(write_module, export, load):
    import torch

    compared, fed = CUT["half of a counter"]
    make = "\n\ndef make():\n    return torch.jit.script(Net())\n"
    path = write_module(NET.format(before="pass", compared=compared) + make)
    result = export(f"{path}:make", ["x:float32[N,T]"], SHORT, exporter="torchscript")
    x = np.array([[fed(t) for t in range(9)]], np.float32)
    np.testing.assert_array_equal(OnnxRuntimeRunner(result.model)({"x": x})["output"], [9.0])
    assert float(load(path).make()(torch.from_numpy(x))) == 9


def test_each_element_is_on_its_boundary_under_it_and_over_it():
    base = {"x": np.zeros((2, 3), np.float32), "n": np.zeros(2, np.int64), "y": np.zeros(1, np.float32)}
    compared = [
        Compared("x", np.array([0, 3]), np.array([5.0, 5.0])), Compared("x", np.array([0]), np.array([-7.0])),
        Compared("n", np.array([0, 1]), np.array([2.5, 4.0])), Compared("x", np.array([1]), np.array([0.1])),
        Compared("x", np.array([5]), np.array([np.inf])),
    ]  # fmt: skip
    feeds = list(boundary_feeds(base, compared, {"n": (0.0, 4.0)}))
    assert len(feeds) == 6
    first = [f["x"][0, 0] for f, _ in feeds[:3]]
    assert 5.0 in first
    assert sorted(np.sign(np.array(first) - 5.0)) == [-1, 0, 1]
    assert all(abs(f["x"][0, 0] + 7.0) < 1e-3 for f, _ in feeds[3:])
    # 0.1 is no number of FP32.
    assert all(f["x"][0, 1] != np.float32(0.1) and abs(f["x"][0, 1] - 0.1) < 1e-4 for f, _ in feeds[:3])
    assert {int(f["n"][0]) for f, _ in feeds[:3]} == {2, 3}
    assert {int(f["n"][1]) for f, _ in feeds[:3]} == {4, 3, 0}
    for feed, pinned in feeds:
        assert set(pinned) <= {"x", "n"}
        assert not feed["x"][~pinned["x"]].any()
        assert feed["x"][1, 2] == 0
