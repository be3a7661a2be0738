"""Recurrent layers as one operator of a program that torch.export writes, whatever the length of the sequence.

torch.export takes a layer apart into its steps, for one length. Here a call of a sequence whose length moves is one
operator of trtconv's, whose form in ONNX is `trtconv.export.recurrent.onnx_form`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from trtconv.export.recurrent.packed import packed_call
from trtconv.export.recurrent.steps import OneLengthError, by_time, is_recurrent

KINDS = ("gru", "rnn_relu", "rnn_tanh")


@cache
def whole_operators() -> dict[str, Any]:
    """The operators by the name of torch's function, defined once in a process.

    Each takes x [T, N, C], the states [layers * ways, N, H], the lengths int64 [N] in falling order or None, the
    weights as torch.nn has them, whether there are biases, the number of layers and whether they go both ways; gives y
    [T, N, ways * H], zero behind a length, and the last states.
    """
    return {**{kind: _define(kind, ("h",)) for kind in KINDS}, "lstm": _define("lstm", ("h", "c"))}


def _define(kind: str, states: tuple[str, ...]) -> Any:
    import torch

    many = len(states)

    def run(x: Any, *args: Any) -> Any:
        first = args[0] if many == 1 else args[:many]
        lengths, weights, biases, layers, both_ways = args[many:]
        layer = getattr(torch._VF, kind)
        if lengths is None:
            return tuple(layer(x, first, weights, biases, layers, 0.0, False, both_ways, False))
        rows, sizes = torch._VF._pack_padded_sequence(x, lengths, False)
        rows, *last = layer(rows, sizes, first, weights, biases, layers, 0.0, False, both_ways)
        return (torch._VF._pad_packed_sequence(rows, sizes, False, 0.0, x.shape[0])[0], *last)

    def shapes(x: Any, *args: Any) -> Any:
        width = args[0].shape[2] * (2 if args[-1] else 1)
        return (x.new_empty((x.shape[0], x.shape[1], width)), *(torch.empty_like(s) for s in args[:many]))

    tensors = ", ".join(f"Tensor {s}" for s in states)
    schema = f"(Tensor x, {tensors}, Tensor? lengths, Tensor[] weights, bool biases, int layers, bool both_ways) -> "
    schema += f"({', '.join(['Tensor'] * (1 + many))})"
    operator = torch.library.custom_op(f"trtconv::{kind}", run, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    return operator


def as_one_operator(func: Any, *args: Any) -> Any:
    """The call of a layer as one operator, where torch.export follows it and the length of the sequence moves.

    A packed sequence has moving lengths always. NotImplemented in other traces, and for a sequence of fixed length,
    whose steps are traced as they are. Raises OneLengthError for a moving one that ONNX has no layer for: with
    projections, or with dropout in training.
    """
    import torch

    call = packed_call(func, args)
    if call is not None:
        return call.result(_one_operator(func, call.args, call.lengths.values))
    if torch.jit.is_tracing() or not is_recurrent(func, args):
        return NotImplemented
    x, batch_first = args[0], args[8]
    length = x.shape[1 if batch_first and x.dim() == 3 else 0]
    if not isinstance(length, torch.SymInt) or length.node.is_constant():
        return NotImplemented
    return _one_operator(func, args, None)


def _one_operator(func: Any, args: Any, lengths: Any) -> tuple[Any, ...]:
    x, states, weights, biases, layers, dropout, training, both_ways, batch_first = args
    parts = len(weights) // (layers * (2 if both_ways else 1))
    if parts != (4 if biases else 2) or (training and dropout):
        raise OneLengthError(
            f"torch.export writes the steps of a recurrent layer ({func.__name__}) one by one, for one length"
        )

    def run(x: Any, states: tuple[Any, ...]) -> Any:
        return whole_operators()[func.__name__](x, *states, lengths, list(weights), biases, layers, both_ways)

    return by_time(run, x, states, batch_first)
