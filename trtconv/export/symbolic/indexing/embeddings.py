"""Rows of an embedding whose norm is bounded: torch writes the shortened rows into the table before it reads them.

Neither exporter has that write (the recording one leaves it out, without a word), and a file has no table to write to.
"""

from __future__ import annotations

import math
from typing import Any

# torch's own, in embedding_renorm_ (aten/src/ATen/native/Embedding.cpp).
ADDED_TO_NORM = 1e-7


def embedding(
    func: Any,
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The handler of torch.nn.functional.embedding with `max_norm`: the rows [..., D] of the ids, none longer."""
    import torch

    if func is not torch.nn.functional.embedding or max_norm is None:
        return NotImplemented
    return rows_of(input, weight, max_norm, norm_type)


def rows_of(ids: Any, weight: Any, max_norm: float | None, norm_type: float) -> Any:
    """The rows of the ids, and with `max_norm` those over it scaled to it, as torch does before it reads them."""
    import torch

    rows = torch.nn.functional.embedding(ids, weight)
    if max_norm is None:
        return rows
    norm = _norm(rows, float(norm_type))
    return torch.where(norm > max_norm, rows * (max_norm / (norm + ADDED_TO_NORM)), rows)


def _norm(rows: Any, order: float) -> Any:
    if order == 2.0:
        return (rows * rows).sum(-1, keepdim=True).sqrt()
    magnitudes = rows.abs()
    if math.isinf(order):
        return magnitudes.amax(-1, keepdim=True)
    if order == 1.0:
        return magnitudes.sum(-1, keepdim=True)
    return magnitudes.pow(order).sum(-1, keepdim=True).pow(1 / order)
