"""What moves complex numbers about is done to their parts: the exporters have these operations for real tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.export.symbolic.arithmetic.numerics import hypot

Handler = Callable[..., Any]
# Functions whose axis stands first, and last, behind the tensor.
FIRST = ("unsqueeze", "squeeze", "index_select", "narrow", "select", "flip")
LAST = ("roll",)


def along(otherwise: Handler | None = None) -> Handler:
    """The handler of a function of a tensor and axes, which are named `dim` or `dims` or stand where it has them.

    Axes that are counted from the end count one more, for the parts lie on an axis behind. `otherwise` handles real
    tensors, the parts among them.
    """

    of_real = otherwise or _left

    def handle(func: Any, x: Any, *args: Any, **named: Any) -> Any:
        import torch

        if not is_complex(x):
            return of_real(func, x, *args, **named)
        axis = next((n for n in ("dim", "dims") if n in named), None)
        if axis is not None:
            named = {**named, axis: _before_parts(named[axis])}
        elif args and isinstance(args[-1], (int, tuple, list)) and func.__name__ in LAST:
            args = (*args[:-1], _before_parts(args[-1]))
        elif args and isinstance(args[0], (int, tuple, list)) and func.__name__ in FIRST:
            args = (_before_parts(args[0]), *args[1:])
        else:
            return NotImplemented
        parts = torch.view_as_real(x)
        moved = of_real(func, parts, *args, **named)
        return torch.view_as_complex((func(parts, *args, **named) if moved is NotImplemented else moved).contiguous())

    return handle


def _left(func: Any, *args: Any, **named: Any) -> Any:
    return NotImplemented


def diagonal(otherwise: Handler) -> Handler:
    """The diagonal of complex tensors by that of their parts; `otherwise` handles real ones, the parts among them."""

    def handle(func: Any, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x, offset, dim1, dim2)
        arguments = torch.view_as_real(x), offset, _before_parts(dim1), _before_parts(dim2)
        of_parts = otherwise(func, *arguments)
        of_parts = func(*arguments) if of_parts is NotImplemented else of_parts
        return torch.view_as_complex(of_parts.movedim(-2, -1).contiguous())

    return handle


def concatenate(func: Any, tensors: Any, dim: int = 0) -> Any:
    """`torch.cat` of complex tensors."""
    import torch

    if not all(is_complex(t) for t in tensors):
        return NotImplemented
    return torch.view_as_complex(func([torch.view_as_real(t) for t in tensors], _before_parts(dim)).contiguous())


def get_item(otherwise: Handler) -> Handler:
    """`x[index]` of a complex tensor; of real ones it is done `otherwise`."""

    def handle(func: Any, x: Any, index: Any) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x, index)
        return torch.view_as_complex(func(torch.view_as_real(x), _with_parts(index)).contiguous())

    return handle


def set_item(otherwise: Handler) -> Handler:
    """`x[index] = value` with complex numbers; of real tensors it is done `otherwise`."""

    def handle(func: Any, x: Any, index: Any, value: Any) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x, index, value)
        if isinstance(value, (int, float, complex)):
            number = complex(value)
            parts = torch.tensor([number.real, number.imag], device=x.device)
        elif is_complex(value):
            parts = torch.view_as_real(value)
        else:
            return NotImplemented
        return func(torch.view_as_real(x), _with_parts(index), parts)

    return handle


def einsum(otherwise: Handler) -> Handler:
    """`torch.einsum` of two operands, one complex, by four products of parts, or two; of others it is `otherwise`."""

    def handle(func: Any, equation: Any, *operands: Any) -> Any:
        import torch

        if len(operands) != 2 or not any(is_complex(o) for o in operands):
            return otherwise(func, equation, *operands)
        (a, b), (c, d) = (torch.view_as_real(o).unbind(-1) if is_complex(o) else (o, None) for o in operands)

        def product(x: Any, y: Any) -> Any:
            return None if x is None or y is None else func(equation, x, y)

        def total(x: Any, y: Any) -> Any:
            return y if x is None else x if y is None else x + y

        crossed = product(b, d)
        real = total(product(a, c), None if crossed is None else -crossed)
        return torch.complex(real, total(product(a, d), product(b, c)))

    return handle


def magnitude(func: Any, x: Any) -> Any:
    """`torch.abs` of complex numbers as torch has it: the root of the sum of squares overflows from 1.8e19 on."""
    import torch

    return hypot(func, *torch.view_as_real(x).unbind(-1)) if is_complex(x) else NotImplemented


def equal(differ: bool) -> Handler:
    """The handler of `==`, or of `!=`, where one side is complex."""

    def handle(func: Any, x: Any, other: Any) -> Any:
        import torch

        if not (is_complex(x) or is_complex(other)):
            return NotImplemented
        (a, b), (c, d) = parts_of(x), parts_of(other)
        imaginary = [torch.as_tensor(0.0 if part is None else part) for part in (b, d)]
        same = torch.logical_and(torch.as_tensor(a) == c, imaginary[0] == imaginary[1])
        return torch.logical_not(same) if differ else same

    return handle


def by_parts(otherwise: Handler) -> Handler:
    """The handler of a function that is that of both parts, as a mean; of real tensors `otherwise`."""

    def handle(func: Any, x: Any, *args: Any, **named: Any) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x, *args, **named)
        parts = torch.view_as_real(x).unbind(-1)
        return torch.complex(*(func(part, *args, **named) for part in parts))

    return handle


def pad(otherwise: Handler) -> Handler:
    """`F.pad` of a complex tensor; by a number, which the imaginary part has not. Of real tensors `otherwise`."""

    def handle(func: Any, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x, pad, mode, value)
        real, imaginary = torch.view_as_real(x).unbind(-1)
        return torch.complex(func(real, pad, mode, value), func(imaginary, pad, mode, None if value is None else 0.0))

    return handle


def direction(otherwise: Handler) -> Handler:
    """`torch.sgn`: x / |x|, and 0 of 0; of real tensors `otherwise`."""

    def handle(func: Any, x: Any) -> Any:
        import torch

        if not is_complex(x):
            return otherwise(func, x)
        size = magnitude(torch.abs, x)
        return _quotient(x, torch.where(size == 0.0, 1.0, size))

    return handle


def divide(otherwise: Handler) -> Handler:
    """`torch.div` of complex numbers without squares of a size that they do not have; of real ones `otherwise`."""

    def handle(func: Any, x: Any, other: Any, **named: Any) -> Any:
        if not (is_complex(x) or is_complex(other) or isinstance(other, complex)) or named:
            return otherwise(func, x, other, **named)
        return _quotient(x, other)

    return handle


def divide_reversed(func: Any, x: Any, other: Any) -> Any:
    """`other / x` of a complex tensor x."""
    return _quotient(other, x) if is_complex(x) or isinstance(other, complex) else NotImplemented


def reciprocal(func: Any, x: Any) -> Any:
    """`1 / x` of a complex tensor."""
    return _quotient(1.0, x) if is_complex(x) else NotImplemented


def _quotient(x: Any, y: Any) -> Any:
    """x / y: by a real y the parts, by a complex one after R. L. Smith (CACM 5, 1962), scaled by its larger part."""
    import torch

    if isinstance(y, complex):
        return x * (1 / y)
    (a, b), (c, d) = parts_of(x), parts_of(y)
    if d is None:
        # torch divides by a complex zero, which has no sign.
        c = torch.where(c == 0.0, 0.0, c) if isinstance(c, torch.Tensor) else c
        return torch.complex(a / c, b / c)
    larger = torch.maximum(c.abs(), d.abs())
    scale = torch.where(larger == 0.0, 1.0, larger)
    c, d = c / scale, d / scale
    weight = c * c + d * d
    if b is None:
        real, imaginary = a * c / weight / scale, -a * d / weight / scale
    else:
        real, imaginary = (a * c + b * d) / weight / scale, (b * c - a * d) / weight / scale
    none = larger == 0.0
    b = torch.zeros_like(c) if b is None else b
    return torch.complex(torch.where(none, a / larger, real), torch.where(none, b / larger, imaginary))


def parts_of(x: Any) -> tuple[Any, Any]:
    """The real and imaginary part of a tensor or a number; None for that of a real one."""
    import torch

    if isinstance(x, complex):
        return x.real, x.imag
    return tuple(torch.view_as_real(x).unbind(-1)) if is_complex(x) else (x, None)


def conjugate(func: Any, x: Any) -> Any:
    """`torch.conj` at once: torch only marks a tensor, and a marked one has no parts to look at."""
    import torch

    if not is_complex(x):
        return NotImplemented
    real, imaginary = torch.view_as_real(x).unbind(-1)
    return torch.complex(real, -imaginary)


def real(func: Any, x: Any) -> Any:
    """The real part of a real tensor is the tensor itself; the exporters have a form for complex ones alone."""
    return NotImplemented if is_complex(x) else x


def filled(value: float) -> Handler:
    """The handler of `torch.zeros` or `torch.ones` of a complex type: the exporters forget the parts of a constant."""

    def handle(func: Any, *size: Any, dtype: Any = None, device: Any = None) -> Any:
        import torch

        if dtype is not torch.complex64:
            return NotImplemented
        sizes = list(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else list(size)
        real = torch.full(sizes, value, dtype=torch.float32, device=device)
        return torch.complex(real, torch.zeros(sizes, dtype=torch.float32, device=device))

    return handle


def zeros_like(func: Any, x: Any) -> Any:
    """`torch.zeros_like` of a complex tensor."""
    import torch

    return torch.view_as_complex(func(torch.view_as_real(x)).contiguous()) if is_complex(x) else NotImplemented


def is_complex(x: Any) -> bool:
    """True for a complex tensor."""
    import torch

    return isinstance(x, torch.Tensor) and x.dtype.is_complex


def _before_parts(axis: Any) -> Any:
    if isinstance(axis, (tuple, list)):
        return [_before_parts(a) for a in axis]
    return axis - 1 if axis < 0 else axis


def _with_parts(index: Any) -> Any:
    """The index of the parts: an Ellipsis stands for the axes before theirs."""
    parts = index if isinstance(index, tuple) else (index,)
    return (*parts, slice(None)) if any(p is Ellipsis for p in parts) else parts
