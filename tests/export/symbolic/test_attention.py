"""Attention under masks in a recording, and rows of an embedding that are too long."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

HIDES = """
class Net(nn.Module):
    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[1]) < lengths[:, None])[:, None].expand(-1, x.shape[1], -1)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, scale=0.3)
"""


def test_a_hidden_row_is_zero_and_an_overflow_is_not(write_module, export):
    path = write_module(HIDES)
    specs = ["x:float32[N,T,4]", "lengths:int64[N]=0:9"]
    result = export(f"{path}:Net", specs, "N=1:2:4 T=3:9:20", exporter="torchscript")
    run = OnnxRuntimeRunner(result.model)
    chance = np.random.default_rng(0)
    lengths = np.array([0, 3, 9])
    for x in (chance.standard_normal((3, 9, 4)), np.full((3, 9, 4), 1e20)):
        x = x.astype(np.float32)
        mask = (torch.arange(9) < torch.from_numpy(lengths)[:, None])[:, None].expand(-1, 9, -1)
        tensor = torch.from_numpy(x)
        expected = F.scaled_dot_product_attention(tensor, tensor, tensor, attn_mask=mask, scale=0.3)
        [own] = run({"x": x, "lengths": lengths}).values()
        np.testing.assert_allclose(own, expected.numpy(), rtol=1e-5, atol=1e-6)


ROWS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.linspace(-3, 3, 40).reshape(10, 4))

    def forward(self, ids):
        function = torch.nn.functional
        return (
            function.embedding(ids, self.table, max_norm=3.0{order}),
            function.embedding_bag(ids, self.table, max_norm=3.0{order}, mode="sum"),
        )
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("order", ["", ", norm_type=1.0", ", norm_type=float('inf')", ", norm_type=3.0"])
def test_rows_are_no_longer_than_their_bound(write_module, export, exporter, order):
    path = write_module(ROWS.format(order=order))
    result = export(f"{path}:Net", ["ids:int64[N,T]=0:9"], "N=1:2:3 T=2:3:9", exporter=exporter)
    ids = np.arange(10).reshape(2, 5)
    space: dict = {"torch": torch, "nn": torch.nn}
    exec(ROWS.format(order=order), space)
    with torch.no_grad():
        expected = space["Net"]()(torch.from_numpy(ids))
    for own, value in zip(OnnxRuntimeRunner(result.model)({"ids": ids}).values(), expected, strict=True):
        np.testing.assert_allclose(own, value.numpy(), rtol=1e-5)


FLEXIBLE = """
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25]))

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = x.view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, t, t, device="cpu")
        return (
            flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (j - i) * self.slopes[h]),
            flex_attention(q, k[:, :1], v[:, :1], block_mask=causal, enable_gqa=True),
        )
"""


@pytest.mark.slow
def test_flexible_attention_by_a_function_of_scores_and_a_mask(write_module, export, load):
    path = write_module(FLEXIBLE)
    result = export(f"{path}:Net", ["x:float32[N,T,24]"], "N=1:2:3 T=3:9:20")
    run, net = OnnxRuntimeRunner(result.model), load(path).Net()
    for n, t in ((1, 3), (3, 20), (2, 7)):
        x = np.random.default_rng(t).standard_normal((n, t, 24)).astype(np.float32)
        for own, expected in zip(run({"x": x}).values(), net(torch.from_numpy(x)), strict=True):
            np.testing.assert_allclose(own, expected.numpy(), rtol=1e-4, atol=1e-5)
