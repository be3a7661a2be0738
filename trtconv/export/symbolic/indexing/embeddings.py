"""Rows of an embedding whose norm is bounded: torch writes the shortened rows into the table before it reads them.

Neither exporter has that write (the recording one leaves it out, without a word), and a file has no table to write to.
"""

from __future__ import annotations

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
    return bounded(torch.nn.functional.embedding(input, weight), max_norm, norm_type)


def bounded(rows: Any, max_norm: float, norm_type: float) -> Any:
    """The rows [..., D], those of a norm over `max_norm` scaled to it, as torch does before it reads them."""
    import torch

    norm = torch.linalg.vector_norm(rows, norm_type, -1, keepdim=True)
    return torch.where(norm > max_norm, rows * (max_norm / (norm + ADDED_TO_NORM)), rows)
