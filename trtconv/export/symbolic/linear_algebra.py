"""Small inverses, solutions, factors and determinants, and products by blocks, which neither exporter has."""

from __future__ import annotations

import functools
from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic, same_size

LARGEST = 32


def inverse(func: Any, x: Any, **_: Any) -> Any:
    """The inverse of [..., n, n] for a fixed n up to LARGEST, by Gauss-Jordan elimination with row pivots.

    A step of Newton's method takes back what the elimination lost by rounding (Higham, "Accuracy and Stability of
    Numerical Algorithms", 14.3), unless the elimination found no inverse.
    """
    import torch

    size = x.shape[-1]
    if is_symbolic(size) or size > LARGEST:
        return NotImplemented
    unit = torch.eye(size, dtype=x.dtype, device=x.device).expand(x.shape)
    first = _eliminate(torch.cat([x, unit], -1), size)[0][..., size:]
    step = _product(first, unit - _product(x, first))
    return torch.where(step == step, first + step, first)


def _product(a: Any, b: Any) -> Any:
    """a @ b of [..., n, n], summed up element by element: TF32 would shorten what the step is to take back."""
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def solve(func: Any, a: Any, b: Any, *, left: bool = True) -> Any:
    """The solution of a @ x = b for a fixed size, b [..., n, k] or [..., n]."""
    import torch

    size = a.shape[-1]
    if is_symbolic(size) or size > LARGEST or not left or a.dim() - b.dim() not in (0, 1):
        return NotImplemented
    # torch takes b for a batch of vectors where its shape is that of a without the last axis, and for matrices else.
    if b.dim() < a.dim() and all(same_size(s, t) for s, t in zip(b.shape, a.shape[:-1], strict=True)):
        return solve(func, a, b.unsqueeze(-1)).squeeze(-1)
    if b.dim() < a.dim() or not all(_may_be_equal(s, t) for s, t in zip(b.shape[:-2], a.shape[:-2], strict=True)):
        if any(is_symbolic(s) for s in b.shape[:-2]):
            return NotImplemented
        b = b.expand(*a.shape[:-2], *b.shape[-2:])
    return _eliminate(torch.cat([a, b], -1), size)[0][..., size:]


def _may_be_equal(first: Any, second: Any) -> bool:
    """True for equal sizes; two that move and are equal where they are traced have to be for `cat`, which says so."""
    import torch

    if same_size(first, second):
        return True
    moving = isinstance(first, torch.SymInt) and isinstance(second, torch.SymInt)
    return moving and first.node.hint is not None and bool(first.node.hint == second.node.hint)


def cholesky(func: Any, x: Any, *, upper: bool = False) -> Any:
    """The factor L of [..., n, n] = L @ L^T for a fixed n up to LARGEST, column by column.

    Of a matrix that is not positive definite torch has no factor, and raises; here its columns are NaN.
    """
    import torch

    size = x.shape[-1]
    if is_symbolic(size) or size > LARGEST:
        return NotImplemented
    rows, columns = torch.arange(size, device=x.device), []
    for k in range(size):
        column = torch.where(rows >= k, x[..., :, k] / x[..., k : k + 1, k].sqrt(), 0.0)
        columns.append(column)
        x = x - column.unsqueeze(-1) * column.unsqueeze(-2)
    return torch.stack(columns, -2 if upper else -1)


def cholesky_solve(func: Any, b: Any, factor: Any, upper: bool = False) -> Any:
    """The solution of a @ x = b for the factor of a, [..., n, n], for a fixed n up to LARGEST, by two substitutions."""
    if is_symbolic(factor.shape[-1]) or factor.shape[-1] > LARGEST or b.dim() != factor.dim():
        return NotImplemented
    low = factor.transpose(-1, -2) if upper else factor
    return _substitute(low.transpose(-1, -2), _substitute(low, b, upwards=False), upwards=True)


def _substitute(factor: Any, b: Any, *, upwards: bool) -> Any:
    """The solution of factor @ x = b for a triangular factor, row by row."""
    import torch

    size = factor.shape[-1]
    rows: dict[int, Any] = {}
    for k in reversed(range(size)) if upwards else range(size):
        rest = b[..., k, :]
        for j, row in rows.items():
            rest = rest - factor[..., k, j, None] * row
        rows[k] = rest / factor[..., k, k, None]
    return torch.stack([rows[k] for k in range(size)], -2)


def matrix_power(func: Any, x: Any, n: Any) -> Any:
    """The power 0 of a batch of matrices, which the exporters write for one matrix."""
    import torch

    if n != 0 or x.dim() < 3 or is_symbolic(x.shape[-1]):
        return NotImplemented
    return torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape) + torch.zeros_like(x)


def chained_product(func: Any, *tensors: Any) -> Any:
    """`multi_dot` and `chain_matmul` from the left to the right; torch asks the sizes which order is the shortest."""
    import torch

    matrices = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return functools.reduce(torch.matmul, matrices)


def determinant(func: Any, x: Any) -> Any:
    """The determinant of [..., n, n] for a fixed n up to LARGEST."""
    size = x.shape[-1]
    if is_symbolic(size) or size > LARGEST:
        return NotImplemented
    return _cofactors(x, size) if size <= 3 else _eliminate(x, size)[1]


def _cofactors(x: Any, size: int) -> Any:
    """The determinant of 3 by 3 and smaller without a division."""
    if size == 1:
        return x[..., 0, 0]
    if size == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    a, b, c = x[..., 0], x[..., 1], x[..., 2]
    minors = (b[..., i] * c[..., j] - b[..., j] * c[..., i] for i, j in ((1, 2), (2, 0), (0, 1)))
    return sum(a[..., k] * minor for k, minor in enumerate(minors))


def _eliminate(x: Any, size: int) -> tuple[Any, Any]:
    """Reduce the first `size` columns of [..., size, m] to the unit matrix; also their determinant."""
    import torch

    rows = torch.arange(size, device=x.device)
    product = None
    for k in range(size):
        column = x[..., :, k].abs()
        # Rows above the pivot are done; -1 keeps them out of the search.
        best = torch.where(rows >= k, column, -torch.ones_like(column)).argmax(-1, keepdim=True)
        chosen, here = (rows == best).unsqueeze(-1), (rows == k).unsqueeze(-1)
        pivot_row, row = torch.where(chosen, x, 0.0).sum(-2, keepdim=True), x[..., k : k + 1, :]
        # Rows are chosen and not computed: row + (new - row) loses the digits of `new` where the row is larger.
        x = torch.where(here, pivot_row, torch.where(chosen, row, x))
        pivot = pivot_row[..., k : k + 1]
        sign = torch.where(best == k, 1.0, -1.0).to(x.dtype)
        step = (pivot.squeeze(-1) * sign).squeeze(-1)
        product = step if product is None else product * step
        # A singular matrix has the determinant zero, not NaN; its inverse torch does not give either.
        scaled = pivot_row / torch.where(pivot == 0, torch.ones_like(pivot), pivot)
        x = torch.where(here, scaled, x - x[..., :, k : k + 1] * scaled)
    return x, product


def kronecker(func: Any, x: Any, other: Any) -> Any:
    """Every element of x times all of `other`, by blocks; the shorter shape gets axes of 1 in front."""
    rank = max(x.dim(), other.dim())
    left, right = (v.reshape([1] * (rank - v.dim()) + list(v.shape)) for v in (x, other))
    blocks = left.reshape([s for n in left.shape for s in (n, 1)]) * right.reshape(
        [s for n in right.shape for s in (1, n)]
    )
    return blocks.reshape([a * b for a, b in zip(left.shape, right.shape, strict=True)])


def block_diagonal(func: Any, *tensors: Any) -> Any:
    """Matrices along the diagonal of one; a vector is a row, a number a matrix of one element."""
    import torch

    dtype = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
    blocks = [t.to(dtype).reshape([1] * (2 - t.dim()) + list(t.shape)) for t in tensors]
    rows = []
    for k, block in enumerate(blocks):
        beside = [other.new_zeros(block.shape[0], other.shape[1]) for other in blocks]
        rows.append(torch.cat([*beside[:k], block, *beside[k + 1 :]], 1))
    return torch.cat(rows, 0)


def covariance(func: Any, x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance of the rows of [variables, observations]; torch's own asks whether a size is zero."""
    if fweights is not None or aweights is not None or x.dim() != 2:
        return NotImplemented
    centred = x - x.mean(1, keepdim=True)
    return centred @ centred.transpose(0, 1) / (x.shape[1] - correction)


def correlation(func: Any, x: Any) -> Any:
    """The correlation of the rows of [variables, observations]."""
    if x.dim() != 2:
        return NotImplemented
    centred = x - x.mean(1, keepdim=True)
    product = centred @ centred.transpose(0, 1)
    spread = (centred * centred).sum(1).sqrt()
    return (product / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1.0, 1.0)
