"""Recurrent cells and resizes in a form of which a script can be exported: torch's own ask for ranks."""

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trtconv.export.exporters.scripted.forms.resizes import OPERATORS


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


class _Resize(nn.Module):  # type: ignore[misc]
    """torch.nn.Upsample by one scale: [N, C, ...] -> [N, C, ...]."""

    scales: Final[list[float]]
    corners: Final[bool]

    def __init__(self, scales: list[float], corners: bool) -> None:
        super().__init__()
        self.scales, self.corners = scales, corners


class NearestResize(_Resize):
    """Of images, the nearest pixel."""

    def forward(self, input):  # type: ignore[no-untyped-def]
        """Images [N, C, H, W] at another size."""
        return torch._C._nn.upsample_nearest2d(input, None, self.scales)


class LinearResize(_Resize):
    """Of rows, between two steps."""

    def forward(self, input):  # type: ignore[no-untyped-def]
        """Rows [N, C, T] at another length."""
        return torch._C._nn.upsample_linear1d(input, None, self.corners, self.scales)


class BilinearResize(_Resize):
    """Of images, between four pixels."""

    def forward(self, input):  # type: ignore[no-untyped-def]
        """Images [N, C, H, W] at another size."""
        return torch._C._nn.upsample_bilinear2d(input, None, self.corners, self.scales)


class BicubicResize(_Resize):
    """Of images, by cubics through sixteen pixels."""

    def forward(self, input):  # type: ignore[no-untyped-def]
        """Images [N, C, H, W] at another size."""
        return torch._C._nn.upsample_bicubic2d(input, None, self.corners, self.scales)


class TrilinearResize(_Resize):
    """Of volumes, between eight voxels."""

    def forward(self, input):  # type: ignore[no-untyped-def]
        """Volumes [N, C, D, H, W] at another size."""
        return torch._C._nn.upsample_trilinear3d(input, None, self.corners, self.scales)


RESIZES = {
    "nearest": NearestResize, "linear": LinearResize, "bilinear": BilinearResize, "bicubic": BicubicResize,
    "trilinear": TrilinearResize,
}  # fmt: skip


def plain_cell(part: nn.Module) -> nn.Module:
    """A GRUCell or RNNCell as a cell of the same weights for batches alone, an Upsample by one scale as its operator;
    any other part as it is.
    """
    if type(part) is nn.GRUCell:
        return _with_weights(PlainGruCell, part)
    if type(part) is nn.RNNCell and part.nonlinearity == "tanh":
        return _with_weights(PlainRnnCell, part)
    if type(part) is nn.Upsample and isinstance(part.scale_factor, float) and not part.recompute_scale_factor:
        operator = OPERATORS.get(part.mode)
        if operator is not None:
            return RESIZES[part.mode]([part.scale_factor] * operator[1], bool(part.align_corners))
    return part


def _with_weights(kind: Any, cell: nn.Module) -> nn.Module:
    other: nn.Module = kind.__new__(kind)
    other.__dict__ = dict(cell.__dict__)
    return other
