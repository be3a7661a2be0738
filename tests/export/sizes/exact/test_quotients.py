"""What Python computes of two sizes in FP64 as whole numbers, for every joint size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

HEAD = (
    "import math\nimport torch.nn.functional as F\n"
    "class Net(nn.Module):\n    def forward(self, x):\n        h, w = x.shape[1:]\n"
)
RANGE = range(20, 81)


def scale(h, w):
    return min(32 / min(h, w), 64 / max(h, w))


CASES = {
    "in proportion": (
        "        s = min(32 / min(h, w), 64 / max(h, w))\n"
        "        return F.interpolate(x[None], scale_factor=s, recompute_scale_factor=True, mode='bilinear')[0]\n",
        lambda h, w: (1, math.floor(h * scale(h, w)), math.floor(w * scale(h, w))),
    ),
    "in proportion, rounded up to eights": (
        "        s = min(32 / min(h, w), 64 / max(h, w))\n"
        "        return x.new_zeros(math.ceil(int(h * s) / 8) * 8, round(w * s)).float()\n",
        lambda h, w: (math.ceil(int(h * scale(h, w)) / 8) * 8, round(w * scale(h, w))),
    ),
    "a share of the area": (
        "        return x[:, : int(h * w / 700) + 1, : math.ceil(min(h, w) * 0.7)]\n",
        lambda h, w: (1, min(h, int(h * w / 700) + 1), math.ceil(min(h, w) * 0.7)),
    ),
    "the ratio of both": (
        "        return x.new_zeros(1, math.ceil(w / h * 100), int((w / h + h / w) * 50))\n",
        lambda h, w: (1, math.ceil(w / h * 100), int((w / h + h / w) * 50)),
    ),
}  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_the_shape_is_python_s_at_every_joint_size(write_module, export, tmp_path, name):
    body, shape = CASES[name]
    path = write_module(HEAD + body)
    result = export(f"{path}:Net", ["x:float32[1,H,W]"], "H=20:40:80 W=20:50:80")
    # The file's own arithmetic was looked at for all of them.
    assert not any("cut to whole ones" in note for note in result.notes)
    run = OnnxRuntimeRunner(tmp_path / "out" / "model.onnx")
    wrong = [
        (h, w)
        for h in RANGE
        for w in RANGE
        if next(iter(run({"x": np.zeros((1, h, w), np.float32)}).values())).shape != shape(h, w)
    ]
    assert wrong == []


def test_fp32_would_differ():
    """The cases say nothing where FP32 computes the same."""
    h, w = np.meshgrid(RANGE, RANGE, indexing="ij")
    lengths = [
        np.trunc(h * np.minimum(k(32) / np.minimum(h, w).astype(k), k(64) / np.maximum(h, w).astype(k)))
        for k in (np.float32, np.float64)
    ]
    assert (lengths[0] != lengths[1]).any()
