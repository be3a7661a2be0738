"""The operators of recurrent layers as ONNX has them: GRU, LSTM and RNN, one node for each layer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from trtconv.export.recurrent.operators import KINDS, whole_operators

OPERATORS = {"gru": "GRU", "lstm": "LSTM", "rnn_relu": "RNN", "rnn_tanh": "RNN"}
# Which of torch's gates stands where ONNX has its own: torch has r z n and i f g o, ONNX z r h and i o f c.
GATES = {"gru": (1, 0, 2), "lstm": (0, 3, 1, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}
INT32 = 6  # of onnx.TensorProto, as sequence_lens has to be
PUT_TOGETHER = ("Concat", "MatMul", "Slice", "Transpose", "Unsqueeze")


def translations() -> dict[Any, Callable[..., Any]]:
    """By operator, the function that torch.onnx.export takes for it (`custom_translation_table`)."""
    operators = whole_operators()
    table: dict[Any, Callable[..., Any]] = {operators[kind]._opoverload: _of_one_state(kind) for kind in KINDS}
    table[operators["lstm"]._opoverload] = _lstm
    return table


def _of_one_state(kind: str) -> Callable[..., Any]:
    def translate(
        x: Any, h: Any, lengths: Any, weights: Sequence[Any], biases: bool, layers: int, both_ways: bool
    ) -> Any:
        return _layers(kind, x, (h,), lengths, weights, biases, layers, both_ways)

    return translate


def _lstm(
    x: Any, h: Any, c: Any, lengths: Any, weights: Sequence[Any], biases: bool, layers: int, both_ways: bool
) -> Any:
    return _layers("lstm", x, (h, c), lengths, weights, biases, layers, both_ways)


def _layers(
    kind: str,
    x: Any,
    states: Sequence[Any],
    lengths: Any,
    weights: Sequence[Any],
    biases: bool,
    layers: int,
    both_ways: bool,
) -> tuple[Any, ...]:
    """One node for each layer; ONNX gives y as [T, ways, N, H]."""
    op = _opset()
    ways, hidden = 2 if both_ways else 1, weights[1].shape[1]
    parts, order = 4 if biases else 2, GATES[kind]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if both_ways else "forward"}
    if kind == "gru":
        attributes["linear_before_reset"] = 1
    elif kind != "lstm":
        attributes["activations"] = [kind.removeprefix("rnn_").title()] * ways
    last: list[list[Any]] = [[] for _ in states]
    lengths = lengths if lengths is None else op.Cast(lengths, to=INT32)
    for layer in range(layers):
        rows = [weights[i * parts : (i + 1) * parts] for i in range(layer * ways, (layer + 1) * ways)]
        kernel, recurrent = (_joined([_gates(row[k], hidden, order) for row in rows]) for k in (0, 1))
        bias = None
        if biases:
            bias = _joined([op.Concat(*(_gates(row[k], hidden, order) for k in (2, 3)), axis=0) for row in rows])
        first = [_slice(s, layer * ways, (layer + 1) * ways) if layers > 1 else s for s in states]
        y, *ends = getattr(op, OPERATORS[kind])(x, kernel, recurrent, bias, lengths, *first, **attributes)
        for collected, end in zip(last, ends, strict=False):
            collected.append(end)
        if both_ways:
            x = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), _ints(0, 0, ways * hidden))
        else:
            x = op.Squeeze(y, _ints(1))
    return (x, *(op.Concat(*s, axis=0) if len(s) > 1 else s[0] for s in last))


def _gates(weight: Any, hidden: int, order: Sequence[int]) -> Any:
    """The rows of a weight or bias, [gates * H, ...], with the gates in ONNX's order."""
    if len(order) == 1:
        return weight
    return _opset().Concat(*(_slice(weight, k * hidden, (k + 1) * hidden) for k in order), axis=0)


def _slice(value: Any, start: int, end: int) -> Any:
    return _opset().Slice(value, _ints(start), _ints(end), _ints(0))


def _joined(values: Sequence[Any]) -> Any:
    """The values of each direction along a new first axis."""
    op = _opset()
    single = [op.Unsqueeze(v, _ints(0)) for v in values]
    return op.Concat(*single, axis=0) if len(single) > 1 else single[0]


def _ints(*values: int) -> Any:
    return _opset().Constant(value_ints=list(values))


def _opset() -> Any:
    from onnxscript import opset18

    return opset18


def fold_weights(model: Any) -> None:
    """Make one initializer of each weight that is put together for a recurrent node, in place on an ir.Model."""
    from onnxscript.optimizer import fold_constants

    nodes = _weight_nodes(model)
    if nodes:
        fold_constants(model, onnx_shape_inference=False, output_size_limit=sys.maxsize, should_fold=nodes.__contains__)


def _weight_nodes(model: Any) -> set[Any]:
    waiting = [v for n in model.graph.all_nodes() if n.op_type in OPERATORS.values() for v in n.inputs[1:4]]
    nodes: set[Any] = set()
    while waiting:
        value = waiting.pop()
        node = value.producer() if value is not None else None
        if node is not None and node.op_type in PUT_TOGETHER and node not in nodes:
            nodes.add(node)
            waiting += node.inputs
    return nodes
