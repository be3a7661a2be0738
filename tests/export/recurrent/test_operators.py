"""Recurrent layers as one operator of an exported program, and as ONNX has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.file import load_model
from trtconv.export.symbolic.mode import symbolic_functions

LAYERS = [
    "nn.GRU(4, 5, batch_first=True, bidirectional=True, num_layers=3)",
    "nn.GRU(4, 5)",
    "nn.LSTM(4, 5, num_layers=2)",
    "nn.LSTM(4, 5, bidirectional=True, bias=False, batch_first=True)",
    "nn.LSTM(4, 6, proj_size=3, bidirectional=True)",
    "nn.RNN(4, 5, nonlinearity='relu', bias=False)",
    "nn.RNN(4, 5, bidirectional=True)",
]
SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x{more}):
        y, state = self.layer(x{state})
        return (y, *(state if isinstance(state, tuple) else (state,)))
"""
KINDS = {"GRU": nn.GRU, "LSTM": nn.LSTM, "RNN": nn.RNN}


def exported(layer: nn.Module, x: torch.Tensor) -> Any:
    shapes = {"input": {0: torch.export.Dim("T", min=2, max=9)}}
    with symbolic_functions():
        return torch.export.export(layer.eval(), (x,), dynamic_shapes=shapes, strict=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_moving_length_is_one_operator_and_a_fixed_one_its_steps(kind):
    layer, x = KINDS[kind](4, 5).eval(), torch.randn(6, 3, 4)
    program = exported(layer, x)
    own = [n for n in program.graph.nodes if str(n.target).startswith("trtconv.")]
    assert len(own) == 1
    longer = torch.randn(9, 2, 4)[:, :2]
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x)[0], layer(x)[0], rtol=0, atol=0)
        assert layer(longer)[0].shape == (9, 2, 5)
    with symbolic_functions():
        fixed = torch.export.export(layer, (x,), strict=False)
    assert not [n for n in fixed.graph.nodes if str(n.target).startswith("trtconv.")]
    assert len(fixed.graph.nodes) > 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("plain", [False, True], ids=["batch", "plain"])
def test_the_file_gives_what_the_layer_gives_at_every_length(write_module, export, layer, plain):
    path = write_module(SOURCE.format(layer=layer, more="", state=""))
    spec, space = ("x:float32[T,4]", "T=1:4:9") if plain else ("x:float32[N,T,4]", "N=1:2:3 T=1:4:9")
    result = export(f"{path}:Net", [spec], space)
    assert result.exporter == "dynamo"
    [*nodes] = [n for n in load_model(result.model).graph.node if n.op_type in ("GRU", "LSTM", "RNN")]
    assert len(nodes) == int(layer.partition("num_layers=")[2][:1] or 1)
    initializers = {i.name for i in load_model(result.model).graph.initializer}
    assert all(set(n.input[1:4]) - {""} <= initializers for n in nodes)


def test_states_of_the_caller(write_module, export):
    source = SOURCE.format(layer="nn.LSTM(4, 5, num_layers=2)", more=", h, c", state=", (h, c)")
    path = write_module(source)
    result = export(f"{path}:Net", ["x:float32[T,N,4]", "h:float32[2,N,5]", "c:float32[2,N,5]"], "N=1:2:3 T=1:4:9")
    assert result.exporter == "dynamo"


def test_large_weights_are_stored_once(write_module, export):
    path = write_module(SOURCE.format(layer="nn.LSTM(160, 320, bidirectional=True)", more="", state=""))
    result = export(f"{path}:Net", ["x:float32[T,N,160]"], "N=1:1:2 T=2:3:4")
    weights = 2 * 4 * 320 * (160 + 320 + 2) * 4
    assert weights <= result.model.stat().st_size < weights * 1.01


SPECTRAL_MASK = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(17, 17, batch_first=True)
        self.register_buffer("window", torch.hann_window(32))

    def forward(self, x):
        spectrum = torch.stft(x, 32, 8, window=self.window, return_complex=True)
        mask = torch.sigmoid(self.gru(torch.log1p(spectrum.abs()).transpose(1, 2))[0]).transpose(1, 2)
        return torch.istft(spectrum * mask, 32, 8, window=self.window, length=x.shape[-1])
"""


@pytest.mark.slow
def test_a_mask_of_a_spectrum_from_a_recurrence(write_module, export):
    """What denoisers are made of, which no recording has: complex numbers beside a recurrence."""
    path = write_module(SPECTRAL_MASK)
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=64:72:96%8")
    x = np.random.default_rng(0).standard_normal((2, 88)).astype(np.float32)
    space: dict = {"nn": nn, "torch": torch}
    torch.manual_seed(0)
    exec(SPECTRAL_MASK, space)
    with torch.no_grad():
        expected = space["Net"]()(torch.from_numpy(x)).numpy()
    [own] = OnnxRuntimeRunner(result.model)({"x": x}).values()
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
