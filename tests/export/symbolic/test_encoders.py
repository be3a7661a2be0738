"""nn.TransformerEncoder with padding: zeros where torch packs the tokens, the layers' values where it does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.symbolic.encoders import padded_encoders

SOURCE = """
class Net(nn.Module):
    def __init__(self, {options}):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8) if normed else None, mask_check=checked)
        if normed:
            self.encoder.norm.bias.data.fill_(0.3)

    def forward(self, x, hidden):
        return self.encoder(x, src_key_padding_mask=hidden)
"""
SUFFIXES = np.array([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
GAPS = np.array([[0, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0, 0, 0, 0, 0]], bool)


def module(normed=False, checked=True):
    space: dict = {"torch": torch, "nn": torch.nn}
    exec(SOURCE.format(options=f"normed={normed}, checked={checked}"), space)
    torch.manual_seed(0)
    return space["Net"]().eval()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("exporter", ["dynamo", pytest.param("torchscript", marks=pytest.mark.slow)])
@pytest.mark.parametrize("normed", [False, True], ids=["bare", "normed"])
def test_the_file_packs_where_torch_does(write_module, export, normed, exporter):
    path = write_module(SOURCE.format(options=f"normed={normed}, checked=True"))
    result = export(f"{path}:Net", ["x:float32[N,T,8]", "hidden:bool[N,T]"], "N=1:2:4 T=3:9:20", exporter=exporter)
    run, own = OnnxRuntimeRunner(result.model), module(normed)
    x = np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32)
    for hidden in (SUFFIXES, GAPS):
        with torch.no_grad():
            expected = own(torch.from_numpy(x), torch.from_numpy(hidden)).numpy()
        [actual] = run({"x": x, "hidden": hidden}).values()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
        if not normed:
            assert (expected[hidden] == 0).all() == (hidden is SUFFIXES)


@pytest.mark.parametrize("floats", [False, True], ids=["booleans", "floats"])
@pytest.mark.parametrize("checked", [False, True], ids=["unchecked", "checked"])
def test_torch_itself_gives_the_same(floats, checked):
    own, x = module(checked=checked), torch.randn(3, 5, 8)
    for hidden in (SUFFIXES,) if not checked else (SUFFIXES, GAPS):
        mask = torch.from_numpy(hidden)
        mask = torch.zeros(mask.shape).masked_fill(mask, float("-inf")) if floats else mask
        with torch.no_grad():
            expected = own(x, mask)
            with padded_encoders():
                torch.testing.assert_close(own(x, mask), expected, rtol=1e-4, atol=1e-5)


def test_a_mask_of_scores_as_well_is_left_to_torch():
    own, x = module(), torch.randn(3, 5, 8)
    mask, hidden = torch.zeros(5, 5), torch.from_numpy(SUFFIXES).float() * -1e9
    with torch.no_grad():
        expected = own.encoder(x, mask, hidden)
        with padded_encoders():
            torch.testing.assert_close(own.encoder(x, mask, hidden), expected, rtol=0, atol=0)
    assert (expected[SUFFIXES] != 0).any()
