"""Sizes while tracing: plain ints, SymInts under torch.export, 0-d tensors under TorchScript."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from typing import Any

from trtconv.export.sizes.exact.floats import exact_float, range_of
from trtconv.export.symbolic.arithmetic import size_steps

# Joint sizes at which the formula of a size is computed.
MOST_SIZES = 400


def stays(value: Any) -> bool:
    """True for a number that has to stay a symbol: of a size, or a recorded or remembered tensor []."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and (bool(torch.jit.is_tracing()) or size_steps.is_remembered(value))
    return is_symbolic(value)


def is_symbolic(value: Any) -> bool:
    """True for a size that stands for a range: a SymInt, a SymFloat, or a traced 0-d tensor."""
    import torch

    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.Tensor)) and not _is_constant(value)


def _is_constant(value: Any) -> bool:
    import torch

    if isinstance(value, torch.Tensor):
        return False
    return bool(value.node.is_constant() or value.node.expr.is_number)


def is_selection(size: Any) -> bool:
    """True for a number of elements that a mask takes, of which torch.export does not know that there is one."""
    import torch

    return isinstance(size, torch.SymInt) and size.node.hint is None


def may_be_empty(size: Any) -> bool:
    """True for 0, for what a mask takes, and for the size of a slice that is 0 somewhere (`x[:, n:]`)."""
    import torch

    if not isinstance(size, torch.SymInt) or _is_constant(size):
        return not isinstance(size, torch.Tensor) and int(size) == 0
    if is_selection(size):
        return True
    from sympy import Integer  # type: ignore[import-untyped]

    expression, env = size.node.expr, size.node.shape_env
    symbols = sorted(expression.free_symbols, key=str)
    ranges = [range_of(env, symbol) for symbol in symbols]
    if expression.is_Symbol or None in ranges:
        return False
    # The smallest sizes and the largest: an interval would call T - T % 8 empty where T is 8 at least.
    values = [[*range(max(r[0], 1), min(r[0] + 9, r[1])), r[1]] for r in ranges if r is not None]
    at_sizes = islice(product(*values), MOST_SIZES)
    return any(expression.xreplace(dict(zip(symbols, map(Integer, at), strict=True))) <= 0 for at in at_sizes)


def any_symbolic(values: Sequence[Any]) -> bool:
    """True when one of the values is symbolic."""
    return any(is_symbolic(v) for v in values)


def same_size(a: Any, b: Any) -> bool:
    """True when two sizes are equal at every size (torch.export), or in this trace (TorchScript)."""
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        # A coincidence at the traced size is caught when the file is compared with the module.
        return is_symbolic(a) and is_symbolic(b) and int(a) == int(b)
    return bool(statically_known_true(a == b))


def per_axis(value: Any, count: int) -> list[Any]:
    """A parameter of a pool or convolution as one value per axis."""
    import torch

    if isinstance(value, (list, tuple)):
        return list(value) * count if len(value) == 1 else list(value)
    if isinstance(value, torch.Tensor) and value.dim() == 1:
        return list(value.unbind(0))
    return [value] * count


def arange(stop: Any, like: Any) -> Any:
    """0 to stop - 1 as int64 on the device of `like`."""
    import torch

    return torch.arange(stop, dtype=torch.int64, device=like.device)


def floor_ratio(numerator: Any, denominator: Any) -> Any:
    """`numerator // denominator` for integers that are not negative, as tensors or sizes.

    For tensors the truncating division is used: it is equal here, and it becomes one Div.
    """
    import torch

    if isinstance(numerator, torch.Tensor):
        return torch.div(numerator, denominator, rounding_mode="trunc")
    if isinstance(denominator, torch.Tensor):
        return torch.div(torch.tensor(numerator), denominator, rounding_mode="trunc")
    return numerator // denominator


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two sizes without a guard."""
    import torch

    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.minimum(torch.as_tensor(a), torch.as_tensor(b))
    return torch.sym_min(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two sizes without a guard."""
    import torch

    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return torch.maximum(torch.as_tensor(a), torch.as_tensor(b))
    return torch.sym_max(a, b)


def reduced_axes(x: Any, dim: Any) -> list[int]:
    """The axes that a reduction is over: one, some, or all where none is named."""
    return [dim] if isinstance(dim, int) else list(dim or range(x.dim()))


def scalar(size: Any, like: Any) -> Any:
    """A size as a float32 scalar."""
    import torch

    if isinstance(size, torch.Tensor):
        return size.to(torch.float32)
    return torch.full((), size, dtype=torch.int64, device=like.device).to(torch.float32)


def without_axes(x: Any, axes: Sequence[int]) -> Any:
    """x without some axes of one element; a recorded `squeeze` of several needs their sizes."""
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = x.select(axis, 0)
    return x


def tensor_of(func: Any, data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`torch.as_tensor([[h, w], [h // 2, w // 2]])` number by number: torch takes those that it was traced with."""
    import torch

    numbers = _flat(data)
    # The logarithm of a size is a tensor without dims while it is traced.
    tensors = [n for n in numbers if isinstance(n, torch.Tensor)]
    if not isinstance(data, (list, tuple, torch.SymFloat)) or any(t.dim() or t.dtype != torch.float32 for t in tensors):
        return NotImplemented
    if not tensors and not any(is_symbolic(n) for n in numbers):
        return NotImplemented
    if dtype is None:
        fractions = bool(tensors) or any(isinstance(n, (float, torch.SymFloat)) for n in numbers)
        dtype = torch.get_default_dtype() if fractions else torch.int64
    return _stacked(data, dtype, device)


def new_tensor(func: Any, like: Any, data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`x.new_tensor([[w - 1, h - 1]])` likewise, in the type of x and on its device."""
    import torch

    kind, device = dtype or like.dtype, device or like.device
    if isinstance(data, (torch.SymInt, torch.SymFloat)) and is_symbolic(data):
        return _stacked(data, kind, device)
    return tensor_of(func, data, kind, device)


def full(func: Any, size: Any, fill_value: Any, **named: Any) -> Any:
    """`torch.full` of a flag, of which TorchScript has no form, and of a number that comes from sizes and is not what
    FP32 gives for it.
    """
    import torch

    if isinstance(fill_value, bool):
        return func(size, int(fill_value), **{**named, "dtype": named.get("dtype") or torch.bool})
    kind = named.get("dtype") or torch.get_default_dtype()
    if not isinstance(fill_value, torch.SymFloat) or kind not in (torch.float32, torch.float64) or "out" in named:
        return NotImplemented
    return exact_float(fill_value, named.get("device"), kind).expand(size)


def pad(func: Any, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """`F.pad` by a number of a size: torch takes a plain one, and a file would hold that of one size."""
    import torch

    if not is_symbolic(value):
        return NotImplemented
    inside = func(torch.ones_like(x), pad, "constant", 0.0)
    return torch.where(inside != 0, func(x, pad, "constant", 0.0), _stacked(value, x.dtype, x.device))


def squeeze(func: Any, x: Any, dim: Any) -> Any:
    """`x.squeeze(dim)` without the dims that are longer than 1: torch passes over them, ONNX's Squeeze does not."""
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    dims = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    if not x.dim() or not all(isinstance(d, int) for d in dims):
        return NotImplemented
    # A recorded run has tensors for sizes, and writes an If for them.
    sizes = [x.shape[d] for d in dims]
    if any(isinstance(s, torch.Tensor) for s in sizes):
        return NotImplemented
    rest = tuple(d for d, size in zip(dims, sizes, strict=True) if not statically_known_true(size != 1))
    if len(rest) == len(dims):
        return NotImplemented
    return func(x, rest) if rest else x


def _stacked(data: Any, dtype: Any, device: Any) -> Any:
    import torch

    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(part, dtype, device) for part in data])
    if isinstance(data, torch.SymFloat) and dtype in (torch.float32, torch.float64):
        return exact_float(data, device, dtype)
    if isinstance(data, torch.Tensor):
        return data.to(dtype=dtype, device=device)
    return torch.full((), data, dtype=dtype, device=device)


def _flat(data: Any) -> list[Any]:
    if isinstance(data, (list, tuple)):
        return [number for part in data for number in _flat(part)]
    return [data]
