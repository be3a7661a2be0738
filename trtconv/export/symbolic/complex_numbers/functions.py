"""Functions of complex numbers that the exporters have for real ones alone, by real and imaginary parts."""

from __future__ import annotations

import cmath
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trtconv.export.symbolic.arithmetic.numerics import atan2, hypot
from trtconv.export.symbolic.complex_numbers.parts import conjugate, is_complex, parts_of

# A function by its name, called as if the handler had not been: `call(name, *arguments)`.
Call = Callable[..., Any]
Function = Callable[..., Any]

# Functions that are those of each part: which of their positional arguments are numbers, and not indices or axes. By
# keyword such arguments have the names of `VALUES`.
PARTWISE: Mapping[str, Sequence[int]] = {
    **dict.fromkeys((
        "cumsum", "repeat", "tile", "gather", "take_along_dim", "split", "chunk", "tensor_split", "unbind", "triu",
        "tril", "trace", "diag", "diag_embed", "nan_to_num", "split_with_sizes", "expand", "expand_as",
        "broadcast_to", "repeat_interleave", "swapaxes", "moveaxis", "movedim", "take", "rot90",
    ), (0,)),
    "where": (1, 2), "masked_fill": (0, 2), "scatter": (0, 3), "scatter_add": (0, 3), "index_add": (0, 3),
    "index_copy": (0, 3), "index_fill": (0, 3), "masked_scatter": (0, 2), "select_scatter": (0, 1),
    "slice_scatter": (0, 1), "fill": (0, 1), "lerp": (0, 1), "full_like": (0, 1),
}  # fmt: skip
VALUES = frozenset(("input", "self", "value", "src", "source", "other", "end", "fill_value"))
CONVOLUTIONS = tuple(f"conv{way}{rank}d" for way in ("", "_transpose") for rank in (1, 2, 3))


def complex_call(func: Any, name: str, args: Sequence[Any], named: Mapping[str, Any], otherwise: Any) -> Any:
    """What a function gives for arguments of which one is complex, or NotImplemented where it is none of these.

    `otherwise(function, name, args, named)` calls one of real tensors.
    """
    import torch

    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if base not in PARTWISE and base not in FUNCTIONS:
        return NotImplemented
    values = (*args, *named.values())
    types = {a.dtype for a in values if is_complex(a)}
    if not (types or any(isinstance(a, complex) for a in values)) or types - {torch.complex64}:
        return NotImplemented
    if base != name:
        result = complex_call(_function(base), base, args, named, otherwise)
        if result is not NotImplemented:
            torch.view_as_real(args[0]).copy_(torch.view_as_real(result))
            return args[0]
        return result
    if name in PARTWISE:
        return _by_parts(name, args, named, lambda *a, **k: otherwise(func, name, a, k))
    function = FUNCTIONS[name]
    if not _takes(function, args, named):
        return NotImplemented
    return function(lambda other, *a, **k: otherwise(_function(other), other, a, k), *args, **named)


def _takes(function: Function, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(None, *args, **named)
    except TypeError:
        return False
    return True


def _function(name: str) -> Any:
    """torch's function of a name."""
    import torch

    owners = (torch, torch.nn.functional, torch.Tensor, torch._C._linalg)
    return next(f for owner in owners if (f := getattr(owner, name, None)) is not None)


def _by_parts(name: str, args: Sequence[Any], named: Mapping[str, Any], call: Call) -> Any:
    import torch

    results = []
    for index in range(2):
        own = [_part(a, index) if i in PARTWISE[name] else a for i, a in enumerate(args)]
        results.append(call(*own, **{k: _part(v, index) if k in VALUES else v for k, v in named.items()}))
    if isinstance(results[0], torch.Tensor):
        return torch.complex(*results)
    return type(results[0])(torch.complex(*pair) for pair in zip(*results, strict=True))


def _part(value: Any, index: int) -> Any:
    """The real (0) or imaginary (1) part of a tensor or number; others are handed on."""
    import torch

    if isinstance(value, torch.Tensor):
        return parts(value)[index]
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return complex(value).real if index == 0 else complex(value).imag
    return value


def parts(x: Any) -> tuple[Any, Any]:
    """The real and imaginary part of a tensor; zeros for that of a real one."""
    import torch

    real, imaginary = parts_of(x)
    if imaginary is not None:
        return real, imaginary
    real = real.to(torch.float32)
    return real, torch.zeros_like(real)


def _product(x: Any, y: Any) -> Any:
    import torch

    (a, b), (c, d) = parts(x), parts(y)
    return torch.complex(a * c - b * d, a * d + b * c)


def _polar(size: Any, angle: Any) -> Any:
    import torch

    return torch.complex(size * torch.cos(angle), size * torch.sin(angle))


def _size_and_angle(x: Any) -> tuple[Any, Any]:
    real, imaginary = parts(x)
    return hypot(None, real, imaginary), atan2(None, imaginary, real)


def square_root(call: Call, x: Any) -> Any:
    """The root with a real part that is not negative, after C's csqrt: no digits cancel."""
    import torch

    real, imaginary = parts(x)
    larger = torch.sqrt((hypot(None, real, imaginary) + real.abs()) * 0.5)
    smaller = torch.where(larger == 0.0, larger, imaginary.abs() / torch.where(larger == 0.0, 1.0, larger * 2.0))
    below = torch.logical_or(imaginary < 0.0, torch.reciprocal(imaginary) < 0.0)
    right = real >= 0.0
    size = torch.where(right, smaller, larger)
    return torch.complex(torch.where(right, larger, smaller), torch.where(below, -size, size))


def reciprocal_root(call: Call, x: Any) -> Any:
    """1 over the root."""
    return call("reciprocal", square_root(call, x))


def logarithm(scale: float = 1.0) -> Function:
    """The principal logarithm, times `scale`."""

    def apply(call: Call, x: Any) -> Any:
        import torch

        size, angle = _size_and_angle(x)
        return torch.complex(torch.log(size) * scale, angle * scale)

    return apply


def power(call: Call, x: Any, exponent: Any) -> Any:
    """x to a number, or a real tensor: small whole powers by products, as torch's kernel has them, others by the angle.

    (pow_tensor_scalar_optimized_kernel of aten's BinaryOpsKernel.cpp.)
    """
    import torch

    if isinstance(x, complex):
        return reversed_power(call, exponent, x)
    if isinstance(exponent, (int, float)):
        if exponent in (0.5, -0.5):
            return square_root(call, x) if exponent > 0 else reciprocal_root(call, x)
        if exponent in (1, 2, 3):
            product = x
            for _ in range(int(exponent) - 1):
                product = _product(product, x)
            return product
        if exponent in (-1, -2):
            return call("reciprocal", power(call, x, -exponent))
    if isinstance(exponent, complex) or is_complex(exponent) or not is_complex(x):
        return NotImplemented
    size, angle = _size_and_angle(x)
    if isinstance(exponent, torch.Tensor):
        exponent = exponent.to(torch.float32)
    return _polar(torch.pow(size, exponent), angle * exponent)


def reversed_power(call: Call, exponent: Any, base: Any) -> Any:
    """A number to the power of a tensor."""
    import torch

    if not isinstance(base, complex):
        return NotImplemented
    if is_complex(exponent):
        return torch.exp(exponent * complex(math.log(abs(base)), cmath.phase(base)))
    exponent = exponent.to(torch.float32)
    return _polar(torch.pow(abs(base), exponent), exponent * cmath.phase(base))


def square(call: Call, x: Any) -> Any:
    """x times x."""
    return _product(x, x)


def add_product(call: Call, x: Any, first: Any, second: Any, *, value: float = 1) -> Any:
    """torch.addcmul."""
    return call("add", x, _product(first, second) * value)


def magnitudes_norm(name: str) -> Function:
    """The norm of the magnitudes, for norms of vectors."""

    def apply(call: Call, x: Any, *args: Any, **named: Any) -> Any:
        order = named.get("p", named.get("ord", args[0] if args else 2))
        if name != "linalg_vector_norm" and order not in (None, "fro", 2):
            return NotImplemented
        return call(name, hypot(None, *parts(x)), *args, **named)

    return apply


def of_either(name: str, every: bool = False) -> Function:
    """A question that is asked of both parts: whether it holds of one, or of `every`."""

    def apply(call: Call, x: Any) -> Any:
        import torch

        real, imaginary = (call(name, part) for part in parts(x))
        return torch.logical_and(real, imaginary) if every else torch.logical_or(real, imaginary)

    return apply


def deviation(name: str) -> Function:
    """The variance, the sum of those of both parts, or its root."""

    def apply(call: Call, x: Any, *args: Any, **named: Any) -> Any:
        import torch

        real, imaginary = (call("var", part, *args, **named) for part in parts(x))
        return real + imaginary if name == "var" else torch.sqrt(real + imaginary)

    return apply


def bilinear(name: str) -> Function:
    """A product of matrices or a convolution, by four of real ones."""

    def apply(call: Call, x: Any, other: Any, *args: Any, **named: Any) -> Any:
        import torch

        (a, b), (c, d) = parts(x), parts(other)

        def product(first: Any, second: Any) -> Any:
            return call(name, first, second, *args, **named)

        return torch.complex(product(a, c) - product(b, d), product(a, d) + product(b, c))

    return apply


def biased(name: str) -> Function:
    """A linear layer or a convolution with a bias, which is added to its axis of channels."""
    convolves = name != "linear"
    rank = int(name[-2]) if convolves else 0

    def apply(call: Call, x: Any, weight: Any, bias: Any = None, *args: Any, **named: Any) -> Any:
        result = bilinear(name)(call, x, weight, None, *args, **named)
        if bias is None:
            return result
        return call("add", result, bias.reshape(-1, *(1,) * rank) if convolves else bias)

    return apply


def dot(conjugated: bool) -> Function:
    """The sum of products of two vectors, the first `conjugated` or not."""

    def apply(call: Call, x: Any, other: Any) -> Any:
        return _product(conjugate(None, x) if conjugated else x, other).sum()

    return apply


def ones_like(call: Call, x: Any) -> Any:
    """Ones in the shape of a complex tensor."""
    return _by_parts("full_like", (x, 1.0), {}, partial(call, "full_like"))


def full(call: Call, size: Sequence[Any], fill_value: complex, *, device: Any = None) -> Any:
    """torch.full of a complex number."""
    import torch

    parts_of_number = (fill_value.real, fill_value.imag)
    return torch.complex(*(torch.full(size, part, dtype=torch.float32, device=device) for part in parts_of_number))


def trigonometric(sine: bool) -> Function:
    """The sine of a + bi, sin(a) cosh(b) + cos(a) sinh(b) i, or the cosine."""

    def apply(call: Call, x: Any) -> Any:
        import torch

        a, b = parts(x)
        if sine:
            return torch.complex(torch.sin(a) * torch.cosh(b), torch.cos(a) * torch.sinh(b))
        return torch.complex(torch.cos(a) * torch.cosh(b), -torch.sin(a) * torch.sinh(b))

    return apply


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": square_root, "rsqrt": reciprocal_root, "pow": power, "__pow__": power, "square": square,
    "__rpow__": reversed_power, "log": logarithm(), "log2": logarithm(1.0 / math.log(2.0)),
    "log10": logarithm(1.0 / math.log(10.0)),
    "addcmul": add_product, "sin": trigonometric(True), "cos": trigonometric(False),
    "linalg_vector_norm": magnitudes_norm("linalg_vector_norm"), "norm": magnitudes_norm("norm"),
    "linalg_norm": magnitudes_norm("linalg_norm"), "isnan": of_either("isnan"), "isinf": of_either("isinf"),
    "isfinite": of_either("isfinite", every=True), "var": deviation("var"), "std": deviation("std"),
    "bmm": bilinear("bmm"), "linear": biased("linear"), "dot": dot(False), "vdot": dot(True),
    "ones_like": ones_like, "full": full, **{name: biased(name) for name in CONVOLUTIONS},
}  # fmt: skip
