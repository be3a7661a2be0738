"""Recurrent layers in FP64 whose gates are as inexact as others compute them.

A gate is a sigmoid, and a layer's kernel takes it from a tanh or a ratio of polynomials plus one half: its error is a
unit in the last place of 1 (2^-23) wherever it lies, and at 4e-6 that is a thirtieth of it. A layer whose gates are
nearly closed (inputs of 0..255 where it was trained with -1..1) puts out little else. torch computes small sigmoids
with all their digits, so that neither FP32 nor FP64 shows it (measured: LSTM of ONNX Runtime 1.31 on the CPU).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trtconv.export.recurrent.calls import layer_calls
from trtconv.export.recurrent.steps import by_time, is_padded
from trtconv.export.sizes.work import watching_mode

if TYPE_CHECKING:
    import numpy as np

    from trtconv.proof.original import Run

    Array = np.ndarray[Any, np.dtype[Any]]

GATE_ERROR = 2.0**-23


class InexactGates:
    """A module in FP64 with the gates of its LSTM and GRU layers off by a rounding, to either side in turn."""

    def __init__(self, exact: Run) -> None:
        self._exact = exact

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        with _inexact_gates():
            return self._exact(inputs)


class InexactLogistics:
    """A module in FP64 whose sigmoids and tanhs are as inexact as others compute them, to either side in turn.

    Both come from ratios of polynomials elsewhere, off by a unit in the last place of 1 (a sigmoid) or by two in their
    own (a tanh; ONNX Runtime 1.31, MLAS). A recurrence with a gain over 1 amplifies that as it does its own rounding.
    """

    def __init__(self, exact: Run) -> None:
        self._exact = exact

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        with _inexact_logistics():
            return self._exact(inputs)


def _inexact_logistics() -> Any:
    class Inexact(watching_mode()):  # type: ignore[misc]
        sign = 1.0

        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            name = func.overloadpacket.__name__
            if name not in ("sigmoid", "sigmoid_", "tanh", "tanh_") or not result.is_floating_point():
                return result
            self.sign = -self.sign
            if name.startswith("tanh"):
                moved = result * (1.0 + self.sign * GATE_ERROR * 2.0)
            else:
                moved = result + self.sign * GATE_ERROR
            return result.copy_(moved) if name.endswith("_") else moved

    return Inexact()


@contextmanager
def _inexact_gates() -> Iterator[None]:
    """Layers of torch.nn compute so in the block."""

    def inexact(name: str, function: Callable[..., Any], args: Any, named: Any) -> Any:
        if name not in ("lstm", "gru") or named or not is_padded(args):
            return function(*args, **named)
        x, state, weights, biases, layers = args[:5]

        def run(x: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
            return _layers(name, x, states, weights, biases, layers, both_ways=args[7])

        return by_time(run, x, state, args[8])

    with layer_calls(inexact):
        yield


def _layers(
    name: str, x: Any, states: tuple[Any, ...], weights: Sequence[Any], biases: bool, layers: int, *, both_ways: bool
) -> tuple[Any, ...]:
    """All layers and directions, as torch's functions define them (torch.nn.LSTM and torch.nn.GRU); x is [T, N, C]."""
    import torch

    ways = 2 if both_ways else 1
    parts = len(weights) // (layers * ways)
    last: list[list[Any]] = [[] for _ in states]
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            index = layer * ways + way
            own = weights[index * parts : (index + 1) * parts]
            y, ends = _direction(name, x.flip(0) if way else x, [s[index] for s in states], own, biases)
            outputs.append(y.flip(0) if way else y)
            for collected, end in zip(last, ends, strict=True):
                collected.append(end)
        x = torch.cat(outputs, -1)
    return (x, *(torch.stack(s) for s in last))


def _direction(name: str, x: Any, states: list[Any], weights: Sequence[Any], biases: bool) -> tuple[Any, list[Any]]:
    """One layer in one direction; x is [T, N, C]."""
    import torch

    kernel, recurrent = weights[:2]
    first, second = weights[2:4] if biases else (0.0, 0.0)
    projection = weights[-1] if name == "lstm" and len(weights) == (5 if biases else 3) else None
    inputs = x @ kernel.t() + first
    outputs = []
    for step, row in enumerate(inputs):
        hidden = states[0] @ recurrent.t() + second
        sign = GATE_ERROR if step % 2 else -GATE_ERROR
        if name == "gru":
            (reset, update, new), (h_reset, h_update, h_new) = row.chunk(3, -1), hidden.chunk(3, -1)
            carried = torch.sigmoid(update + h_update) + sign
            candidate = torch.tanh(new + (torch.sigmoid(reset + h_reset) + sign) * h_new)
            states = [(1 - carried) * candidate + carried * states[0]]
        else:
            enter, forget, cell, leave = (row + hidden).chunk(4, -1)
            memory = (torch.sigmoid(forget) + sign) * states[1]
            memory = memory + (torch.sigmoid(enter) + sign) * torch.tanh(cell)
            y = (torch.sigmoid(leave) + sign) * torch.tanh(memory)
            states = [y if projection is None else y @ projection.t(), memory]
        outputs.append(states[0])
    return torch.stack(outputs), states
