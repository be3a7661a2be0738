"""Rows of attention that a mask hides altogether are 0, as in torch, and not the mean of all values."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

NET = """
class Net(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.causal = causal

    def forward(self, x, mask):
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        allowed = mask[:, None, None, :]
        if self.causal:
            at = torch.arange(x.shape[1])
            allowed = allowed & (at[None, :] <= at[:, None])
        return F.scaled_dot_product_attention(q, 2 * q, 3 * q, attn_mask=allowed).transpose(1, 2).flatten(2)

def make(causal: bool = False):
    return Net(causal)
"""
INPUTS = ["x:float32[N,T,8]", "mask:bool[N,T]"]


@pytest.mark.parametrize("causal", [False, True])
def test_hidden_rows_are_zero(export, write_module, causal):
    write_module(NET)
    result = export("net.py:make", INPUTS, "N=1:2:3 T=2:4:6", exporter="dynamo", args={"causal": causal})
    assert "IsNaN" not in {n.op_type for n in onnx.load(result.model).graph.node}
    x = np.random.default_rng(0).normal(size=(2, 4, 8)).astype(np.float32)
    mask = np.array([[False, False, True, True], [False] * 4])
    y = OnnxRuntimeRunner(result.model)({"x": x, "mask": mask})["output"]
    assert np.all(y[1] == 0)
    assert np.all(y[0, :2] == 0) == causal
    assert np.all(np.abs(y[0, 2:]).max(axis=-1) > 0.1)
    # So are rows in which all that the mask leaves scores minus infinity.
    x[0, 2, 0], mask[0] = -np.inf, [False, False, True, False]
    y = OnnxRuntimeRunner(result.model)({"x": x, "mask": mask})["output"]
    q = torch.from_numpy(x).unflatten(-1, (2, 4)).transpose(1, 2)
    allowed = torch.from_numpy(mask)[:, None, None, :].expand(2, 1, 4, 4)
    allowed = allowed.tril() if causal else allowed
    expected = F.scaled_dot_product_attention(q, 2 * q, 3 * q, attn_mask=allowed).transpose(1, 2).flatten(2).numpy()
    defined = ~np.isnan(expected)
    assert (expected[0][defined[0]] == 0).any()
    np.testing.assert_allclose(y[defined], expected[defined], atol=1e-5)
    # And a row with a NaN among its scores stays NaN, also beside -inf alone.
    x[1], x[1, 1, 0], x[1, 2, 0], mask[1] = 1.0, np.inf, -np.inf, [True, True, True, False]
    x[1, :, 1] = 0.0
    y = OnnxRuntimeRunner(result.model)({"x": x, "mask": mask})["output"]
    assert np.isnan(y[1]).any(axis=-1).sum() >= 2


CROSS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, memory, hidden):
        return self.attention(x, memory, memory, key_padding_mask={mask}, need_weights=False)[0]
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mask", ["hidden", "torch.zeros(hidden.shape).masked_fill(hidden, float('-inf'))"])
def test_padding_that_hides_all_keys_is_no_nan(export, write_module, mask):
    path = write_module(CROSS.format(mask=mask))
    inputs = ["x:float32[N,T,8]", "memory:float32[N,S,8]", "hidden:bool[N,S]"]
    result = export(f"{path}:Net", inputs, "N=1:2:3 T=2:4:6 S=2:5:7", exporter="dynamo")
    assert not [n for n in result.notes if "decisions probed" in n]
    chance = np.random.default_rng(0)
    x, memory = (chance.normal(size=(2, n, 8)).astype(np.float32) for n in (4, 3))
    hidden = np.array([[True, True, True], [False, True, True]])
    y = OnnxRuntimeRunner(result.model)({"x": x, "memory": memory, "hidden": hidden})["output"]
    assert np.all(y[0] == 0)
    assert np.all(np.abs(y[1]) > 0)


def test_a_mask_of_sizes_alone_is_left_as_it_is(export, write_module):
    source = """
class Net(nn.Module):
    def forward(self, x):
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return F.scaled_dot_product_attention(q, q, q, attn_mask=causal)
"""
    result = export(f"{write_module(source)}:Net", ["x:float32[N,T,8]"], "N=1:2:3 T=2:4:6", exporter="dynamo")
    assert "ReduceMax" not in {n.op_type for n in onnx.load(result.model).graph.node}
