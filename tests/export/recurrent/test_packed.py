"""Packed sequences: layers over the steps that count, as ONNX's nodes with the lengths beside a padded tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

SOURCE = """
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x, lengths):
        steps = x.shape[{time}]
        lengths = lengths.clamp(1, steps)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first={first}, enforce_sorted=False)
        {between}
        out, state = self.layer(packed)
        y, n = pad_packed_sequence(out, batch_first={first}{unpack})
        return (y, n, *(state if isinstance(state, tuple) else (state,)))
"""
FORMS = {
    "gru both ways": ("nn.GRU(4, 5, 2, batch_first=True, bidirectional=True)", True, "", ", total_length=steps"),
    "lstm to the longest": ("nn.LSTM(4, 5, batch_first=True)", True, "", ""),
    "rnn by time": ("nn.RNN(4, 5)", False, "", ", total_length=steps, padding_value=-1.5"),
    "rows written into": ("nn.GRU(4, 5, batch_first=True)", True, "packed.data.relu_()", ", total_length=steps"),
    "rows changed": (
        "nn.LSTM(4, 5, batch_first=True, bidirectional=True)",
        True,
        "packed = PackedSequence(packed.data.tanh(), *packed[1:])",
        ", padding_value=2.0",
    ),
}
LENGTHS = ([9, 1, 4], [2, 2, 2], [1, 1, 1], [3, 9, 9], [5])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", FORMS)
def test_the_file_equals_the_module_at_all_lengths(write_module, export, form):
    layer, first, between, unpack = FORMS[form]
    source = SOURCE.format(layer=layer, first=first, time=int(first), between=between or "pass", unpack=unpack)
    path = write_module(source)
    dims = "N,T,4" if first else "T,N,4"
    result = export(f"{path}:Net", [f"x:float32[{dims}]", "lengths:int64[N]=1:9"], "N=1:2:4 T=3:9:12")
    assert result.exporter == "dynamo"
    assert not [n for n in result.notes if "could not all be followed" in n]
    space: dict[str, Any] = {"nn": nn}
    torch.manual_seed(0)
    exec(source, space)
    module, runner = space["Net"](), OnnxRuntimeRunner(result.model)
    for lengths in LENGTHS:
        x = torch.randn(len(lengths), 9, 4) if first else torch.randn(9, len(lengths), 4)
        with torch.no_grad():
            expected = module(x, torch.tensor(lengths))
        outputs = runner({"x": x.numpy(), "lengths": np.array(lengths)})
        for value, reference in zip(outputs.values(), expected, strict=True):
            np.testing.assert_allclose(value, reference.numpy(), rtol=1e-5, atol=1e-6)
