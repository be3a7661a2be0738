"""Sizes that a scale factor gives: torch multiplies in FP64, a Resize in FP32."""

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F

from trtconv.core.errors import TrtconvError
from trtconv.export.symbolic.resampling.scales import cut_alike, whole_ratio, written_scale

LENGTHS = np.arange(1, 4001)


@pytest.mark.parametrize("scale", [1.55, 0.35, 0.7, 22050 / 16000, 3.1, 2.85, 1.2, 1 / 3])
def test_a_written_scale_cuts_every_length_as_torch_does(scale):
    written = written_scale(LENGTHS, scale)
    if written is not None:
        assert written == np.float32(written) or cut_alike(LENGTHS, scale, scale)
        assert abs(written / scale - 1) < 1e-6
        expected = [F.interpolate(torch.zeros(1, 1, n), scale_factor=scale).shape[-1] for n in LENGTHS[3::7].tolist()]
        assert expected == np.floor(LENGTHS[3::7].astype(np.float32) * np.float32(written)).tolist()


def test_some_scales_have_to_be_moved():
    assert not cut_alike(LENGTHS, 1.55, 1.55)
    assert written_scale(LENGTHS, 1.55) not in (None, 1.55)
    assert written_scale(LENGTHS, 1.5) == 1.5


@pytest.mark.parametrize("scale", [1.55, 1.2, 22050 / 16000, 2 / 3])
def test_a_ratio_of_whole_numbers_gives_the_same_sizes(scale):
    above, below = whole_ratio(scale)
    assert all(int(n * scale) == n * above // below for n in range(100_000))


def test_fp64_cuts_some_products_that_no_ratio_cuts():
    assert int(180 * 0.35) == 62
    assert whole_ratio(0.35) is None


NET = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self, mode, scale, recorded=False):
        super().__init__()
        self.mode, self.scale = mode, scale
        self.gru = nn.GRU(2, 2, batch_first=True) if recorded else None

    def forward(self, x):
        if self.gru is not None:
            x = x + self.gru(x.flatten(2).transpose(1, 2))[0].mean() * 0.1
        return F.interpolate(x, scale_factor=self.scale, mode=self.mode)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("mode", "rank", "scale", "recorded"),
    [
        ("nearest", 1, 1.55, True),
        ("nearest", 1, 1.2, False),
        ("nearest", 3, 1.2, False),
        ("nearest", 2, (1.55, 0.5), False),
        ("bilinear", 2, 1.55, False),
        ("bilinear", 2, 1.2, False),
        ("bilinear", 2, 22050 / 16000, True),
        ("linear", 1, 1.55, False),
    ],
)
def test_files_have_torchs_size_at_every_length(export, write_module, mode, rank, scale, recorded):
    dims = ",".join(("T", "4", "3")[:rank])
    arguments = {"mode": mode, "scale": scale, "recorded": recorded}
    write_module(NET)
    result = export("net.py:Net", [f"x:float32[N,2,{dims}]"], "N=1:1:2 T=3:30:700", args=arguments)
    session = onnxruntime.InferenceSession(str(result.model), providers=["CPUExecutionProvider"])
    for length in (*range(3, 40), 180, 330, 340, 640, 650, 660, 680, 700):
        x = torch.randn((1, 2, length, 4, 3)[: rank + 2], generator=torch.Generator().manual_seed(length))
        if recorded:
            [output] = session.run(None, {"x": np.zeros(x.shape, np.float32)})
            assert output.shape == F.interpolate(x, scale_factor=scale, mode=mode).shape
            continue
        [output] = session.run(None, {"x": x.numpy()})
        expected = F.interpolate(x, scale_factor=scale, mode=mode)
        torch.testing.assert_close(torch.from_numpy(output), expected, rtol=2e-3, atol=2e-3)


def test_a_recorded_size_that_no_whole_numbers_give_is_refused(export, write_module):
    arguments = {"mode": "nearest", "scale": 0.35, "recorded": True}
    write_module(NET)
    with pytest.raises(TrtconvError, match=r"is cut in FP64"):
        export("net.py:Net", ["x:float32[N,2,T]"], "N=1:1:2 T=3:30:300", args=arguments, exporter="torchscript")
