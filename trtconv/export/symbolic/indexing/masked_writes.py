"""What goes one after the other to where a mask is set; the exporters write NonZero, whose size the values decide."""

from __future__ import annotations

from typing import Any


def masked_scatter(func: Any, x: Any, mask: Any, source: Any) -> Any:
    """x with the first elements of `source` where the mask is set, in order, as multimodal networks put images' tokens.

    Each place takes the element of the number of set places before it. A mask that is the same along the last axis
    (`mask.unsqueeze(-1).expand_as(x)`) takes whole rows, which are fewer to count. Beyond the end of the source, where
    torch raises, 0 is taken.
    """
    import torch

    if not all(isinstance(v, torch.Tensor) for v in (x, mask, source)) or x.dtype.is_complex:
        return NotImplemented
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    mask, before = mask.expand(shape), x.expand(shape)
    width = _common_width(mask, source)
    rows = mask.reshape(-1) if width is None else mask[..., 0].reshape(-1)
    source = source.reshape(-1, 1 if width is None else width)
    # A row behind the last one, so that no index leaves a source without rows.
    source = torch.cat((source, source.new_zeros(1, source.shape[1])))
    index = rows.to(torch.int64).cumsum(0) - 1
    index = torch.minimum(index.clamp(min=0), torch.full((), source.shape[0] - 1, dtype=torch.int64))
    return torch.where(mask, source[index].reshape(shape), before)


def _common_width(mask: Any, source: Any) -> int | None:
    """The length of the last axis, where the mask is the same all along it and the source has whole rows; else None."""
    if mask.dim() < 2 or source.dim() < 2 or mask.stride(-1) != 0:
        return None
    width = mask.shape[-1]
    same = isinstance(width, int) and isinstance(source.shape[-1], int) and source.shape[-1] == width
    return width if same else None
