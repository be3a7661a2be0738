"""LSTM layers: as one operator, and with projections, which neither ONNX nor the exporters have, as layers without."""

from __future__ import annotations

from typing import Any

from trtconv.export.recurrent.operators import as_one_operator


def lstm(
    func: Any,
    x: Any,
    states: Any,
    weights: Any,
    biases: bool,
    layers: int,
    dropout: float,
    training: bool,
    both_ways: bool,
    batch_first: bool,
) -> Any:
    """Each layer as a plain LSTM and a product behind it. x is [T, N, C], or [N, T, C] with `batch_first`.

    With h = P g, where g is what a plain LSTM would give on, R h is (R P) g: an LSTM with the recurrent weights R P has
    the states g and c. The initial h belongs to no g, so it comes in by the input of the first step.
    """
    import torch

    call = (x, states, weights, biases, layers, dropout, training, both_ways, batch_first)
    if not isinstance(states, (list, tuple)):  # of a packed sequence, whose arguments stand elsewhere
        return as_one_operator(func, *call)
    ways = 2 if both_ways else 1
    parts = len(weights) // (layers * ways) if isinstance(weights, (list, tuple)) else 0
    if parts != (5 if biases else 3) or (training and dropout):
        return as_one_operator(func, *call)
    hidden_states, cell_states = [], []
    for layer in range(layers):
        first = layer * ways
        rows = [tuple(weights[(first + k) * parts : (first + k + 1) * parts]) for k in range(ways)]
        starts = states[0][first : first + ways]
        inputs, wide = (
            (x, [row[0] for row in rows]) if _is_zeros(states[0]) else _with_start(x, starts, rows, batch_first)
        )
        plain = [w for row, kernel in zip(rows, wide, strict=True) for w in (kernel, row[1] @ row[-1], *row[2:-1])]
        cells = states[1][first : first + ways]
        none = torch.zeros_like(cells)
        single = (inputs, (none, cells), plain, biases, 1, 0.0, False, both_ways, batch_first)
        whole = as_one_operator(func, *single)
        y, g, c = func(*single) if whole is NotImplemented else whole
        halves = y.split(rows[0][-1].shape[1], -1)
        x = torch.cat([part @ row[-1].t() for part, row in zip(halves, rows, strict=True)], -1)
        hidden_states += [g[k : k + 1] @ row[-1].t() for k, row in enumerate(rows)]
        cell_states.append(c)
    return x, torch.cat(hidden_states, 0), torch.cat(cell_states, 0)


def _is_zeros(states: Any) -> bool:
    """True for the zeros that nn.LSTM makes where it is called without states."""
    import torch

    if not torch.jit.is_tracing():
        return False
    return bool(torch._C._get_value_trace(states).node().kind() == "aten::zeros")


def _with_start(x: Any, starts: Any, rows: Any, batch_first: bool) -> tuple[Any, list[Any]]:
    """The input with the initial h of each direction beside its first step, and the weights that take it in."""
    import torch

    time = 1 if batch_first else 0
    length = x.shape[time]
    steps = torch.arange(length, device=x.device).reshape([-1 if k == time else 1 for k in range(3)])
    columns, wide = [x], []
    for k, row in enumerate(rows):
        here = steps == (length - 1 if k else 0)
        columns.append(torch.where(here, starts[k].unsqueeze(time), 0.0))
        others = [torch.zeros_like(row[1])] * (len(rows) - 1)
        wide.append(torch.cat([row[0], *others[:k], row[1], *others[k:]], 1))
    return torch.cat(columns, -1), wide
