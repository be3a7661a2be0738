"""Activations and losses whose slope, limit or scale is made of a size: exporters write such a number as an attribute.

The formulas are those of ATen's native/Activation.cpp and native/Loss.cpp, NaN included.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from trtconv.export.symbolic.arithmetic.losses import reduced
from trtconv.export.symbolic.arithmetic.numerics import expm1, log1p
from trtconv.export.symbolic.sizes import is_symbolic

Handler = Callable[..., Any]


def _by_size(handler: Handler) -> Handler:
    """The handler for a call with a number that is made of a size; else the function is taken as it is."""

    @wraps(handler)
    def handle(func: Any, *args: Any, **named: Any) -> Any:
        import torch

        numbers = [v for v in (*args[1:], *named.values()) if not isinstance(v, torch.Tensor) or v.dim() == 0]
        return handler(func, *args, **named) if any(is_symbolic(v) for v in numbers) else NotImplemented

    return handle


def _activation(handler: Handler) -> Handler:
    """`_by_size`; with `inplace` of torch.nn.functional, what is computed is written into the input."""
    signature = inspect.signature(handler)

    @_by_size
    @wraps(handler)
    def handle(*args: Any, **named: Any) -> Any:
        result = handler(*args, **named)
        arguments = signature.bind(*args, **named).arguments
        return arguments["input"].copy_(result) if arguments.get("inplace") else result

    return handle


@_activation
def leaky_relu(func: Any, input: Any, negative_slope: Any = 0.01, inplace: bool = False) -> Any:
    """x where it is positive, else x times the slope; any shape."""
    import torch

    return torch.where(input > 0, input, input * negative_slope)


@_activation
def elu(func: Any, input: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    """x where it is positive, else alpha (exp(x) - 1); any shape."""
    return _exponential(func, input, alpha, 1.0)


@_activation
def celu(func: Any, input: Any, alpha: Any = 1.0, inplace: bool = False) -> Any:
    """x where it is positive, else alpha (exp(x / alpha) - 1); any shape."""
    return _exponential(func, input, alpha, 1.0 / alpha)


def _exponential(func: Any, input: Any, alpha: Any, scale: Any) -> Any:
    import torch

    # What is not chosen must not overflow.
    negative = expm1(func, torch.where(input > 0, torch.zeros_like(input), input) * scale)
    return torch.where(input > 0, input, negative * alpha)


@_activation
def hardtanh(func: Any, input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:
    """x between two limits; any shape."""
    return input.clamp(min=min_val).clamp(max=max_val)


@_activation
def threshold(func: Any, input: Any, threshold: Any, value: Any, inplace: bool = False) -> Any:
    """x where it is not at most the threshold, else the value; any shape."""
    import torch

    return torch.where(input <= threshold, value, input)


@_by_size
def softplus(func: Any, input: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    """log(1 + exp(x beta)) / beta, and x where x beta is above the threshold; any shape."""
    import torch

    scaled = input * beta
    linear = scaled > threshold
    smooth = log1p(func, torch.where(linear, torch.zeros_like(scaled), scaled).exp()) / beta
    return torch.where(linear, input, smooth)


@_by_size
def huber_loss(
    func: Any, input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0, weight: Any = None
) -> Any:
    """z^2 / 2 for distances z up to delta, else delta (z - delta / 2); any shape, or a number where it is reduced."""
    import torch

    if weight is not None:
        return NotImplemented
    distance = (input - target).abs()
    far = delta * (distance - 0.5 * delta)
    return reduced(torch.where(distance <= delta, 0.5 * distance * distance, far), reduction)


@_by_size
def smooth_l1_loss(
    func: Any,
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: Any = 1.0,
) -> Any:
    """z^2 / (2 beta) for distances z under beta, else z - beta / 2; any shape, or a number where it is reduced."""
    import torch

    if size_average is not None or reduce is not None:
        return NotImplemented
    distance = (input - target).abs()
    near = 0.5 * distance * distance / beta
    return reduced(torch.where(distance < beta, near, distance - 0.5 * beta), reduction)


HANDLERS: dict[str, Handler] = {
    "leaky_relu": leaky_relu, "elu": elu, "celu": celu, "hardtanh": hardtanh, "threshold": threshold,
    "softplus": softplus, "huber_loss": huber_loss, "smooth_l1_loss": smooth_l1_loss,
}  # fmt: skip
