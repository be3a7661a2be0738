"""Numbers that Python computes from sizes in FP64, as constants of FP32 that a file looks up by the size.

`0.3 * x.shape[1]` is 30 at 100 in Python. A file has FP32, in which 0.3 is 0.30000001 and the product 30.000002, and a
comparison with a value of 30 goes the other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from trtconv.export.sizes.evaluate import UnreadableError, evaluate_symbolic

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.exporters.trace import Trace

    Array = np.ndarray[Any, np.dtype[Any]]

# What gives the tensor on a device.
Form = Callable[[Any], Any]
# A table of FP32 of so many joint sizes has 256 KiB.
MOST_ENTRIES = 65_536
# As many sizes as are looked at where a fraction stands for a decimal.
MOST_CHECKED = 4_000_000
LARGEST_DIVISOR = 10_000
BOUNDING = ("clamp", "clip", "clamp_", "clip_")
# Functions of tensors that take a tensor where they take a number, with the same result.
TAKING = frozenset(
    f"{before}{name}{after}"
    for name in (
        "add", "sub", "mul", "div", "true_divide", "truediv", "ge", "gt", "le", "lt", "eq", "ne", "floor_divide",
        "floordiv", "remainder", "mod", "fmod", "rsub", "rmul", "radd", "rtruediv", "rdiv", "greater",
        "greater_equal", "less", "less_equal", "not_equal", "clamp", "clip", "clamp_min", "clamp_max", "masked_fill",
        "where",
    )
    for before, after in (("", ""), ("__", "__"), ("", "_"), ("__i", "__"))
)  # fmt: skip


_NO_RANGES: Mapping[int, tuple[int, int]] = MappingProxyType({})
_HINTED: ContextVar[Mapping[int, tuple[int, int]]] = ContextVar("hinted", default=_NO_RANGES)
_inexact: dict[str, None] = {}
# What was worked out in one trace, by expression and type: None for a number that FP32 gives anyway.
_FORMS: WeakKeyDictionary[Any, dict[Any, Form | None]] = WeakKeyDictionary()


def with_exact_floats(name: str, args: Any, named: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The arguments of a function of `TAKING`; numbers that FP32 gives otherwise from sizes become tensors []."""
    import torch

    if name not in TAKING:
        return args, named
    values = (*args, *named.values())
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    if not tensors or any(t.dtype.is_complex for t in tensors):
        return args, named
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
    if not any(isinstance(v, torch.SymFloat) and _form_of(v, dtype) is not None for v in values):
        return args, named
    device = tensors[0].device

    def as_tensor(value: Any) -> Any:
        if isinstance(value, torch.SymFloat) and _form_of(value, dtype) is not None:
            return exact_float(value, device, dtype)
        # Bounds are all tensors or all numbers.
        bound = name in BOUNDING and isinstance(value, (int, float, torch.SymInt, torch.SymFloat))
        return torch.full((), value, dtype=dtype, device=device) if bound else value

    return tuple(as_tensor(a) for a in args), {key: as_tensor(value) for key, value in named.items()}


def exact_float(number: Any, device: Any, dtype: Any) -> Any:
    """A tensor [] of FP32 or FP64 with the number, a SymFloat, rounded once from FP64."""
    import torch

    form = _form_of(number, dtype)
    return torch.full((), number, dtype=dtype, device=device) if form is None else form(device)


@contextmanager
def inexact_numbers() -> Iterator[dict[str, None]]:
    """The formulas, met in the block, that FP32 gets otherwise somewhere and that have no exact form."""
    _inexact.clear()
    yield _inexact


def _form_of(number: Any, dtype: Any) -> Form | None:
    """What gives the number exactly; None where it is no formula of sizes, or FP32 gives it anyway."""
    import torch

    forms = _FORMS.setdefault(number.node.shape_env, {})
    key = (number.node.expr, dtype)
    if key not in forms:
        forms[key] = _form(number, "float64" if dtype == torch.float64 else "float32")
    return forms[key]


def _form(number: Any, kind: str) -> Form | None:
    import numpy as np

    env, expression = number.node.shape_env, number.node.expr
    symbols = sorted(expression.free_symbols, key=str)
    ranges = [r for r in (range_of(env, symbol) for symbol in symbols) if r is not None]
    if not symbols or len(ranges) < len(symbols):
        return None
    lengths = [high - low + 1 for low, high in ranges]
    if prod(lengths) > MOST_CHECKED:
        _inexact[str(expression)] = None
        return None
    grids = np.meshgrid(*(np.arange(low, high + 1) for low, high in ranges), indexing="ij", sparse=True)
    sizes = dict(zip(symbols, grids, strict=True))
    try:
        exact = np.broadcast_to(evaluate_symbolic(expression, sizes), lengths).astype(kind)
        direct = np.broadcast_to(evaluate_symbolic(expression, sizes, np.float32), lengths)
    except UnreadableError:
        return None
    # The exporters have no roots and logarithms of sizes, and no `round(number, digits)`.
    opaque = any(name in str(expression) for name in ("OpaqueUnaryFn", "RoundDecimal"))
    if np.array_equal(exact, direct, equal_nan=True) and not opaque:
        return None
    if prod(lengths) <= MOST_ENTRIES:
        return _table(env, symbols, ranges, exact)
    form = _fraction(env, expression, sizes, exact)
    if form is None:
        _inexact[str(expression)] = None
    return form


@contextmanager
def ranges_of_hints(trace: Trace) -> Iterator[None]:
    """In the block, sizes of which torch has no range yet have that of the dim whose traced size they have."""
    sizes = [size for _, size in trace.sizes]
    ranges = {size: trace.space[name] for name, size in trace.sizes if sizes.count(size) == 1 and name in trace.space}
    token = _HINTED.set({size: (r.min, r.max) for size, r in ranges.items()})
    try:
        yield
    finally:
        _HINTED.reset(token)


def range_of(env: Any, symbol: Any) -> tuple[int, int] | None:
    """The smallest and the largest value of a symbol of a trace; None where it has none."""
    bounds = env.var_to_range.get(symbol)
    # torch's own infinity of whole numbers says that it is finite.
    if bounds is None or not bounds.upper.is_Integer or not bounds.lower.is_Integer:
        hint = env.backed_var_to_val.get(symbol)
        return None if hint is None else _HINTED.get().get(int(hint))
    low = int(bounds.lower)
    # A trace leaves out 0 and 1 of a size that may be 1.
    return (0 if low <= 2 else low), int(bounds.upper)


def _size(env: Any, expression: Any) -> Any:
    """The expression as a size of the trace."""
    return env.create_symintnode(expression, hint=None)


def _table(env: Any, symbols: Any, ranges: Any, values: Array) -> Form:
    import torch

    def look_up(device: Any) -> Any:
        table, index = torch.from_numpy(values.reshape(-1).copy()).to(device), 0
        for symbol, (low, high) in zip(symbols, ranges, strict=True):
            index = index * (high - low + 1) + (_size(env, symbol) - low)
        position = torch.full((1,), index, dtype=torch.int64, device=device)
        return table.index_select(0, position).squeeze(0)

    return look_up


def _fraction(env: Any, expression: Any, sizes: Any, exact: Array) -> Form | None:
    """Sizes times a decimal as a product of whole numbers over one, which is divided with one rounding."""
    import numpy as np
    import torch

    factors = expression.args if expression.is_Mul else ()
    decimals = [f for f in factors if f.is_Float]
    counts = [f.args[0] for f in factors if type(f).__name__ == "ToFloat"]
    if len(decimals) != 1 or not counts or len(factors) != 1 + len(counts):
        return None
    ratio = Fraction(float(decimals[0])).limit_denominator(LARGEST_DIVISOR)
    whole = prod((np.asarray(evaluate_symbolic(c, sizes)) for c in counts), start=np.int64(ratio.numerator))
    quotient = np.asarray(whole).astype(exact.dtype) / exact.dtype.type(ratio.denominator)
    if not np.array_equal(np.broadcast_to(quotient, exact.shape), exact):
        return None

    def divide(device: Any) -> Any:
        product = prod((_size(env, c) for c in counts), start=ratio.numerator)
        number = torch.full((), product, dtype=torch.int64, device=device)
        return number.to(getattr(torch, exact.dtype.name)) / float(ratio.denominator)

    return divide
