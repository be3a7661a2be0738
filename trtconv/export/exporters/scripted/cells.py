"""Recurrent cells in a form of which a script can be exported: torch's own ask for ranks in lists."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PlainGruCell(nn.RNNCellBase):  # type: ignore[misc]
    """h' = (1 - z) n + z h (torch.nn.GRUCell): input [N, I], hx [N, H] -> [N, H]."""

    def forward(self, input, hx: Tensor | None = None):  # type: ignore[no-untyped-def]
        """One step; without hx from zeros."""
        if hx is None:
            hx = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype)
        size = self.hidden_size
        fed = F.linear(input, self.weight_ih, self.bias_ih)
        held = F.linear(hx, self.weight_hh, self.bias_hh)
        reset = torch.sigmoid(fed[:, :size] + held[:, :size])
        update = torch.sigmoid(fed[:, size : 2 * size] + held[:, size : 2 * size])
        new = torch.tanh(fed[:, 2 * size :] + reset * held[:, 2 * size :])
        return (hx - new) * update + new


class PlainRnnCell(nn.RNNCellBase):  # type: ignore[misc]
    """h' = tanh(W x + U h) (torch.nn.RNNCell): input [N, I], hx [N, H] -> [N, H]."""

    def forward(self, input, hx: Tensor | None = None):  # type: ignore[no-untyped-def]
        """One step; without hx from zeros."""
        if hx is None:
            hx = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype)
        return torch.tanh(F.linear(input, self.weight_ih, self.bias_ih) + F.linear(hx, self.weight_hh, self.bias_hh))


def plain_cell(part: nn.Module) -> nn.Module:
    """A GRUCell or RNNCell as a cell of the same weights for batches alone; any other part as it is."""
    if type(part) is nn.GRUCell:
        return _with_weights(PlainGruCell, part)
    if type(part) is nn.RNNCell and part.nonlinearity == "tanh":
        return _with_weights(PlainRnnCell, part)
    return part


def _with_weights(kind: Any, cell: nn.Module) -> nn.Module:
    other: nn.Module = kind.__new__(kind)
    other.__dict__ = dict(cell.__dict__)
    return other
