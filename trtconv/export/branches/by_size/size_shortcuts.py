"""Operators whose result has a shape that is known without running them, for a run that looks at sizes alone.

torch takes many of them apart (`hardswish`, `layer_norm`, `linear`), and asks about the same sizes at each part; even a
plain sum costs milliseconds on tensors with symbolic sizes. None of those here decides anything by a size: where one
could, it is left to torch.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from trtconv.export.symbolic.resampling.resize import scaled_length
from trtconv.export.symbolic.sizes import per_axis

# Values alone, of floats, in the shape and type that they came in; each takes one tensor and numbers.
_KEEPING = frozenset(
    ("abs", "celu", "clamp", "cos", "dropout", "elu", "erf", "exp", "gelu", "group_norm", "hardsigmoid", "hardswish",
     "hardtanh", "layer_norm", "leaky_relu", "log_softmax", "mish", "neg", "relu", "relu6", "rsqrt", "selu", "sigmoid",
     "silu", "sin", "softmax", "softplus", "softsign", "sqrt", "square", "tanh", "tanhshrink")
)  # fmt: skip
# One step of a recurrent layer, which torch takes apart into twenty operations: most of the time of a loop.
_CELLS = frozenset(("gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"))
# Of two tensors, or of a tensor and a number.
_ELEMENTWISE = frozenset(("add", "sub", "mul", "div", "true_divide", "rsub"))
# These give a tensor another shape in place, which must not be that of others too.
RESHAPING = frozenset(
    ("squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "resize_", "resize_as_", "set_",
     "as_strided_")
)  # fmt: skip


class ReshapedInPlaceError(Exception):
    """A tensor that may stand for several was given another shape."""


def shortened(func: Any, args: tuple[Any, ...], keywords: dict[str, Any], shared: bool) -> Any:
    """A tensor of the shape and type of the result; NotImplemented for what torch has to be asked.

    `shared`: an argument may stand for the result. Otherwise the result is a tensor of its own. Raises
    ReshapedInPlaceError where arguments stand for results and one is given another shape.
    """
    import torch

    name = getattr(func, "__name__", "")
    if shared and (name in RESHAPING or (name == "__set__" and args and isinstance(args[0], torch.Tensor))):
        raise ReshapedInPlaceError
    if func is torch.nn.functional.interpolate:
        return resized(*args, **keywords)
    if func is torch.nn.functional.linear and not keywords:
        return projected(*args)
    if not args or not _without_values(args[0]):
        return NotImplemented
    if func is torch.nn.functional.batch_norm:
        return normalised(shared, *args, **keywords)
    if func is torch.nn.functional.scaled_dot_product_attention:
        return attended(*args, **keywords)
    if name in _CELLS and not keywords and _is_torchs(func, name):
        return stepped(*args)
    if keeps_shape(func, args, keywords) or is_elementwise(func, args, keywords):
        # A tensor like it has the strides of a result: those of what is dense, else none but its own.
        return args[0] if shared else torch.empty_like(args[0])
    return NotImplemented


def _without_values(tensor: Any) -> bool:
    """True for a tensor of sizes alone. A weight has values, and so has `torch.tensor(3.0)`, which `.item()` reads."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor) and tensor.constant is None


def normalised(
    shared: bool,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    **rest: Any,
) -> Any:
    """torch.nn.functional.batch_norm without its values: by running statistics it is a broadcast over the channels.

    torch takes it apart into ten operations, each of which asks about the same sizes again: more than half of the time
    of a run of a convolutional network.
    """
    import torch

    if training or running_mean is None or input.ndim < 2:
        function = torch.nn.functional.batch_norm
        return function(input, running_mean, running_var, weight, bias, training, **rest)
    if isinstance(input.shape[1], int) and input.shape[1] == running_mean.shape[0]:
        return input if shared else torch.empty_like(input)
    return input + running_mean.reshape(-1, *[1] * (input.ndim - 2))


def resized(input: Any, size: Any = None, scale_factor: Any = None, *args: Any, **rest: Any) -> Any:
    """torch.nn.functional.interpolate without its values: [N, C, *spatial].

    torch takes each apart into the taps of its positions: half of the time of a run of a U-Net++.
    """
    import torch

    factor = size if scale_factor is None else scale_factor
    if factor is None or input.ndim < 3 or isinstance(factor, torch.Tensor):
        return torch.nn.functional.interpolate(input, size, scale_factor, *args, **rest)
    axes = per_axis(factor, input.ndim - 2)
    if scale_factor is not None:
        axes = [scaled_length(n, f) for n, f in zip(input.shape[2:], axes, strict=True)]
    if not all(n > 0 for n in axes):
        return torch.nn.functional.interpolate(input, size, scale_factor, *args, **rest)
    return input.new_empty((*input.shape[:2], *axes))


def projected(input: Any, weight: Any, bias: Any = None) -> Any:
    """torch.nn.functional.linear without its values: [..., in] by [out, in] gives [..., out].

    NotImplemented where a moving size has to be `in`, which is a condition on it.
    """
    sizes = input.shape
    if not sizes or weight.ndim != 2 or type(sizes[-1]) is not int or sizes[-1] != weight.shape[1]:
        return NotImplemented
    if input.dtype != weight.dtype:
        return NotImplemented
    return input.new_empty((*sizes[:-1], weight.shape[0]))


def stepped(input: Any, state: Any, of_input: Any, of_state: Any, *biases: Any) -> Any:
    """torch.gru_cell and its like without their values: [N, in] and a state [N, hidden], or two, give such a state.

    NotImplemented where the sizes are not equal as they are written, which is a condition on them.
    """
    states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    if input.ndim != 2 or not _agree(input.shape[1], of_input.shape[1]):
        return NotImplemented
    for each in states:
        if each.ndim != 2 or each.dtype != input.dtype or input.dtype != of_state.dtype:
            return NotImplemented
        if not _same(each.shape[0], input.shape[0]) or not _agree(each.shape[1], of_state.shape[1]):
            return NotImplemented
    results = tuple(input.new_empty(tuple(each.shape)) for each in states)
    return results if isinstance(state, (tuple, list)) else results[0]


def attended(query: Any, key: Any, value: Any, attn_mask: Any = None, *args: Any, **rest: Any) -> Any:
    """scaled_dot_product_attention without its values: [..., L, E], [..., S, E] and [..., S, V] give [..., L, V].

    NotImplemented where the sizes are not equal as they are written, which is a condition on them.
    """
    ranks = {query.ndim, key.ndim, value.ndim}
    if rest.get("enable_gqa") or len(args) > 2 or len(ranks) > 1 or query.ndim < 3:
        return NotImplemented
    if not query.is_floating_point() or query.dtype != key.dtype or key.dtype != value.dtype:
        return NotImplemented
    leading = zip(query.shape[:-2], key.shape[:-2], value.shape[:-2], strict=True)
    if not all(_same(q, k) and _same(k, v) for q, k, v in leading):
        return NotImplemented
    if not _same(key.shape[-2], value.shape[-2]) or not _agree(query.shape[-1], key.shape[-1]):
        return NotImplemented
    if attn_mask is not None and not _fits((*query.shape[:-1], key.shape[-2]), attn_mask.shape):
        return NotImplemented
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def keeps_shape(func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """True for an activation or normalisation of floats: a tensor like the first argument, a tensor, has its shape."""
    import torch

    name = getattr(func, "__name__", "")
    if name not in _KEEPING or not _is_torchs(func, name) or "dtype" in keywords or keywords.get("out") is not None:
        return False
    others = (*args[1:], *keywords.values())
    if not args[0].is_floating_point():
        return False
    if name in ("softmax", "log_softmax"):
        return not any(isinstance(v, torch.dtype) for v in others)
    if name == "group_norm":
        return args[0].ndim > 1 and type(args[0].shape[1]) is int and args[0].shape[1] % args[1] == 0
    if name != "layer_norm":
        return not any(isinstance(v, torch.Tensor) for v in others)
    lengths = tuple(args[1]) if len(args) > 1 else ()
    own = tuple(args[0].shape[-len(lengths) :]) if lengths else ()
    # A moving length that has to be the norm's is a condition on the size.
    return bool(own) and all(type(n) is int for n in (*lengths, *own)) and own == lengths


def is_elementwise(func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """True for a sum or product of floats whose result has the shape and type of the first argument, a tensor."""
    import torch

    name = getattr(func, "__name__", "")
    if name not in _ELEMENTWISE or not _is_torchs(func, name) or len(args) != 2 or keywords:
        return False
    one, other = args
    if not one.is_floating_point():
        return False
    if type(other) in (int, float):
        return True
    return isinstance(other, torch.Tensor) and other.dtype == one.dtype and _fits(one.shape, other.shape)


def _fits(sizes: Any, others: Any) -> bool:
    """True where a tensor of the `others` is spread over one of the `sizes`, as their expressions show."""
    if len(others) > len(sizes):
        return False
    own = sizes[len(sizes) - len(others) :]
    return all(_same(a, b) or (type(b) is int and b == 1) for a, b in zip(own, others, strict=True))


def _agree(one: Any, other: Any) -> bool:
    """True for two numbers that are one; a moving size that has to be another is a condition on it."""
    return type(one) is int and type(other) is int and one == other


def _same(one: Any, other: Any) -> bool:
    if type(one) is int or type(other) is int:
        return type(one) is type(other) and one == other
    return bool(one.node.expr == other.node.expr)


def _is_torchs(func: Any, name: str) -> bool:
    return func in _torchs(name)


@cache
def _torchs(name: str) -> tuple[Any, ...]:
    """torch's own functions and methods of a name."""
    import torch

    return tuple(getattr(h, name) for h in (torch.nn.functional, torch, torch.Tensor) if hasattr(h, name))
