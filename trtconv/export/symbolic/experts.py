"""Products of rows with the matrix of their group, and counts of groups: what a mixture of experts computes."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.recording.tracer import unrecorded_shape
from trtconv.export.symbolic.sizes import is_symbolic


def grouped_product(
    func: Any, rows: Any, matrices: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Each row of [S, K] by the matrix of its group of [G, K, N]; the group g ends before the row `offs[g]`.

    Every row is multiplied by every matrix and its own product is selected: how many rows a group has depends on
    values, and no engine has matrices of such a size. Rows behind the last group, which torch leaves undefined, are 0.
    """
    import torch

    rank_known = rows.dim() == 2 and matrices.dim() == 3 and isinstance(offs, torch.Tensor) and offs.dim() == 1
    count = unrecorded_shape(matrices)[0]
    if not rank_known or is_symbolic(count) or out_dtype not in (None, rows.dtype) or bias is not None:
        return NotImplemented
    places = torch.arange(rows.shape[0], device=rows.device).unsqueeze(-1)
    groups = (places >= offs.to(torch.int64)).sum(-1, keepdim=True)
    product = torch.zeros_like(rows[:, :1])
    for group in range(count):
        product = torch.where(groups == group, rows @ matrices[group], product)
    return product


def histogram(func: Any, x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements fall into each of the bins of equal width between `min` and `max`, as floats [bins].

    The place of an element is computed as ATen's `histogramdd_cpu_contiguous` does it; `max` is in the last bin.
    """
    import torch

    if not x.dtype.is_floating_point or any(isinstance(n, torch.SymInt | torch.SymFloat) for n in (bins, min, max)):
        return NotImplemented
    if min > max:
        return NotImplemented
    flat = x.reshape(-1, 1)
    if min == max:
        # Of equal ones torch takes the range of the values instead, and one more to both sides where they are equal.
        low, high = flat.amin(), flat.amax()
        beyond = (low == high).to(x.dtype)
        min, max = low - beyond, high + beyond
    places = ((flat - min) * bins / (max - min)).floor().clamp(max=bins - 1)
    inside = (flat >= min) & (flat <= max)
    counted = (places == torch.arange(bins, dtype=x.dtype, device=x.device)) & inside
    return counted.sum(0).to(x.dtype)
