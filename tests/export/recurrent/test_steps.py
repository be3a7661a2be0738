"""Recurrent layers: one operator under a dispatch mode, shapes alone for the paths by size."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.export.recurrent.steps import empty_result, is_recurrent
from trtconv.export.sizes.work import watching_mode

LAYERS = [
    nn.GRU(4, 5, batch_first=True, bidirectional=True, num_layers=2),
    nn.LSTM(4, 5),
    nn.LSTM(4, 6, proj_size=3, bidirectional=True),
    nn.RNN(4, 5, nonlinearity="relu", bias=False),
]


def calls_of(layer: nn.Module, *inputs: torch.Tensor) -> list[tuple[Any, Any]]:
    """The arguments and the result of the function behind a layer, as torch.nn calls it."""
    calls: list[tuple[Any, Any]] = []
    name = {"GRU": "gru", "LSTM": "lstm", "RNN": "rnn_relu"}[type(layer).__name__]
    function = getattr(torch._C._VariableFunctions, name)

    def noting(*args: Any) -> Any:
        assert is_recurrent(function, args) is (len(inputs) == 1)
        calls.append((args, function(*args)))
        return calls[-1][1]

    with mock.patch.object(torch._VF, name, noting, create=True):
        layer(*inputs)
    return calls


@pytest.mark.parametrize("layer", LAYERS, ids=lambda m: repr(m)[:24])
@pytest.mark.parametrize("shape", [(3, 7, 4), (7, 4)])
def test_the_shapes_are_those_of_the_layer(layer: nn.Module, shape: tuple[int, ...]) -> None:
    [(args, result)] = calls_of(layer, torch.randn(shape))
    assert [t.shape for t in empty_result(args)] == [t.shape for t in result]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda m: repr(m)[:24])
def test_one_operator_under_a_mode(layer: nn.Module) -> None:
    names = []

    class Names(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            names.append(func.overloadpacket.__name__)
            return func(*args, **kwargs)

    x = torch.randn(3, 7, 4)
    with torch.no_grad():
        expected = layer(x)[0]
        with Names():
            result = layer(x)[0]
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    assert sum(n in ("gru", "lstm", "rnn_relu") for n in names) == 1
    assert len(names) < 6


def test_a_packed_sequence_is_left_to_torch() -> None:
    layer = nn.LSTM(4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(7, 3, 4), [7, 5, 2])
    runner = ModuleRunner(Packed(layer))
    outputs, work = runner.counted({"x": packed.data.numpy(), "sizes": packed.batch_sizes.numpy()})
    np.testing.assert_allclose(next(iter(outputs.values())), layer(packed)[0].data.detach().numpy(), rtol=1e-6)
    assert work > 0


class Packed(nn.Module):
    """A layer over a packed sequence."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return self.layer(nn.utils.rnn.PackedSequence(x, sizes))[0].data


def test_a_thread_that_outlives_a_block_leaves_the_functions_as_they_were():
    import threading

    from trtconv.export.recurrent.calls import layer_calls

    inside, over, names = threading.Event(), threading.Event(), []
    layer, x = nn.LSTM(3, 4), torch.rand(5, 3)
    plain = torch._VF.lstm

    def handle(name, function, args, named):
        names.append((threading.current_thread().name, name))
        return function(*args, **named)

    def live_on():
        with layer_calls(handle):
            inside.set()
            over.wait()
            layer(x)

    thread = threading.Thread(target=live_on, name="other")
    with layer_calls(handle), layer_calls(handle):
        thread.start()
        inside.wait()
        layer(x)
    layer(x)  # in this thread nobody looks any more
    over.set()
    thread.join()
    assert names == [("MainThread", "lstm")] * 2 + [("other", "lstm")]
    assert torch._VF.lstm is plain
