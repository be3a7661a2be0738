"""Modules that are TorchScript as a whole convert like the ones that they were made of."""

import io

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import trtconv


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, images, scale: float = 2.0):
        features = torch.relu(self.norm(self.conv(images))) * scale
        return self.head(features.mean((2, 3)))


def script(module):
    return torch.jit.script(module)


def trace(module):
    return torch.jit.trace(module, torch.rand(1, 3, 24, 24))


def load(module):
    file = io.BytesIO()
    torch.jit.save(script(module), file)
    file.seek(0)
    return torch.jit.load(file)


def freeze(module):
    return torch.jit.freeze(script(module))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [script, trace, load, freeze])
def test_a_whole_script_converts(make, tmp_path):
    torch.manual_seed(0)
    module = Detector().eval()
    result = trtconv.convert(
        make(module),
        inputs={"images": "float32[N,3,H,24]"},
        dynamic={"N": "1:1:4", "H": "16:24:40"},
        output=tmp_path,
        target="tensorrt==8.6",
    )
    assert result.verdict
    images = np.random.default_rng(1).standard_normal((3, 3, 33, 24)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(result.rewritten), providers=["CPUExecutionProvider"])
    [output] = session.run(None, {"images": images})
    expected = module(torch.from_numpy(images)).detach().numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


def test_an_input_that_the_script_does_not_take(tmp_path):
    with pytest.raises(trtconv.InvalidRequestError, match="'pixels'") as raised:
        trtconv.convert(
            script(Detector().eval()), inputs={"images": "float32[1,3,24,24]", "pixels": "float32[1]"}, output=tmp_path
        )
    assert "images" in str(raised.value) + raised.value.hint
