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
