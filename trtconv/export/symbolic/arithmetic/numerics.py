"""Functions whose exported form overflows or loses digits where torch's own does not."""

from __future__ import annotations

import math
from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic

# Up to here `atanh` and `tanh` give log1p and expm1 to the last digits; beyond, nothing cancels in the plain forms.
SMALL = 0.5
# The ranges that torch's exporter writes as QuantizeLinear and DequantizeLinear.
QUANTIZE_LINEAR = ((0, 255), (-128, 127), (0, 127))


def log1p(func: Any, x: Any) -> Any:
    """log(1 + x), near 0 as 2 atanh(x / (2 + x)): of 1 + 1e-7 FP32 keeps one digit."""
    import torch

    if not x.dtype.is_floating_point:
        return NotImplemented
    return torch.where(x.abs() < SMALL, _log1p_of_small(x), torch.log(x + 1.0))


def expm1(func: Any, x: Any) -> Any:
    """exp(x) - 1, near 0 as 2 t / (1 - t) with t = tanh(x / 2)."""
    import torch

    if not x.dtype.is_floating_point:
        return NotImplemented
    half = torch.tanh(x * 0.5)
    return torch.where(x.abs() < SMALL, half * 2.0 / (1.0 - half), torch.exp(x) - 1.0)


def xlog1py(func: Any, x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where x is 0 whatever the logarithm; a NaN of y stays."""
    import torch

    if not all(isinstance(v, torch.Tensor) and v.dtype.is_floating_point for v in (x, y)):
        return NotImplemented
    product = x * log1p(func, y)
    return torch.where(torch.logical_and(x == 0.0, y == y), torch.zeros_like(product), product)


def _log1p_of_small(x: Any) -> Any:
    """log(1 + x) for x of -0.5 to 1; in FP64, in which ONNX Runtime has no atanh, by Kahan (HP-15C handbook, 1982)."""
    import torch

    if x.dtype == torch.float64:
        rounded = x + 1.0
        lost = rounded == 1.0
        return torch.where(lost, x, torch.log(rounded) * x / torch.where(lost, 1.0, rounded - 1.0))
    return torch.atanh(x / (x + 2.0)) * 2.0


def logsigmoid(func: Any, x: Any) -> Any:
    """log(sigmoid(x)) without the log of zero: min(x, 0) - log(1 + exp(-|x|))."""
    import torch

    return x.clamp(max=0.0) - _log1p_of_small(torch.exp(-x.abs()))


def cdist(func: Any, x: Any, y: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Distances between all pairs of rows, from differences; the product form cancels for rows that are near."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    if p == 2.0:
        return (difference * difference).sum(-1).sqrt()
    if p == 1.0:
        return difference.abs().sum(-1)
    if p == float("inf"):
        return difference.abs().amax(-1)
    return NotImplemented if p == 0.0 else difference.abs().pow(p).sum(-1).pow(1.0 / p)


def pairwise_distance(func: Any, x: Any, y: Any, p: float = 2.0, eps: Any = 1e-6, keepdim: bool = False) -> Any:
    """Distances between rows; the recorded form leaves `eps` out, which torch adds to each difference."""
    import torch

    return torch.linalg.vector_norm(x - y + eps, p, -1, keepdim)


def heaviside(func: Any, x: Any, values: Any) -> Any:
    """0 below zero and for NaN, 1 above, `values` at zero."""
    import torch

    return torch.where(x == 0, values, (x > 0).to(x.dtype))


def logaddexp(func: Any, x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), from the larger of both; the difference of two equal infinities is NaN."""
    import torch

    gap = torch.where(x == y, torch.zeros_like(x), -(x - y).abs())
    return torch.maximum(x, y) + _log1p_of_small(torch.exp(gap))


def logaddexp2(func: Any, x: Any, y: Any) -> Any:
    """log2(2^x + 2^y), from the larger of both as `logaddexp`."""
    import torch

    gap = torch.where(x == y, torch.zeros_like(x), -(x - y).abs())
    return torch.maximum(x, y) + _log1p_of_small(torch.exp2(gap)) / math.log(2.0)


def fmax(func: Any, x: Any, y: Any) -> Any:
    """The larger of both; where one is NaN, the other."""
    import torch

    return _number_of_two(x, y, torch.maximum)


def fmin(func: Any, x: Any, y: Any) -> Any:
    """The smaller of both; where one is NaN, the other."""
    import torch

    return _number_of_two(x, y, torch.minimum)


def _number_of_two(x: Any, y: Any, extreme: Any) -> Any:
    import torch

    if not (x.dtype.is_floating_point and y.dtype.is_floating_point):
        return extreme(x, y)
    return torch.where(x != x, y, torch.where(y != y, x, extreme(x, y)))


def extreme_of_all(func: Any, x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """amax and amin of all elements: the exporters want the axes named. No int16 and no booleans are reduced."""
    import torch

    if x.dtype in (torch.int16, torch.bool):
        return func(x.to(torch.int32), tuple(range(x.dim())) if dim in ((), None) else dim, keepdim).to(x.dtype)
    if (dim is not None and (isinstance(dim, int) or len(dim))) or x.dim() == 0:
        return NotImplemented
    return func(x, list(range(x.dim())), keepdim)


def sign(func: Any, x: Any) -> Any:
    """-1, 0 or 1, and 0 for a NaN, as torch has it; ONNX's Sign leaves a NaN."""
    if not x.dtype.is_floating_point:
        return NotImplemented
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def signbit(func: Any, x: Any) -> Any:
    """Whether a number is negative, a zero too; no NaN is."""
    import torch

    if not x.dtype.is_floating_point:
        return x < 0 if x.dtype.is_signed else torch.zeros_like(x, dtype=torch.bool)
    return torch.logical_or(x < 0, torch.logical_and(x == 0, torch.reciprocal(x) < 0))


def copysign(func: Any, x: Any, other: Any) -> Any:
    """The magnitude of x with the sign of the other, a zero's too; no NaN's."""
    import torch

    if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point:
        return NotImplemented
    negative = signbit(func, other) if isinstance(other, torch.Tensor) else math.copysign(1.0, other) < 0
    size = x.abs()
    return torch.where(negative, -size, size) if isinstance(negative, torch.Tensor) else -size if negative else size


def lerp(func: Any, start: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, as torch computes it: the other form has another NaN where an infinity comes in."""
    import torch

    if not isinstance(weight, torch.Tensor) or not start.dtype.is_floating_point:
        return NotImplemented
    gap = end - start
    return torch.where(weight.abs() < 0.5, start + weight * gap, end - gap * (1.0 - weight))


def rrelu(
    func: Any, x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """Outside of training the slope is the mean of its bounds."""
    from torch.nn import functional

    return NotImplemented if training or inplace else functional.leaky_relu(x, (lower + upper) / 2)


def atan2(func: Any, y: Any, x: Any) -> Any:
    """The angle of (x, y) by the sign of y, that of a zero too: the exporters give -pi for (-1, 0).

    Where both are zero the signs of both tell it: 0 or pi, with the sign of y.
    """
    import torch

    if not isinstance(y, torch.Tensor) or not isinstance(x, torch.Tensor):
        return NotImplemented
    dtype = torch.result_type(y, x)
    if not dtype.is_floating_point:
        return NotImplemented
    # Halves are computed in FP32 and rounded once; whole numbers beside them are rounded to halves first.
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    y, x = (value.to(dtype).to(wide) for value in (y, x))
    half_turn = torch.where(
        torch.logical_or(y < 0, torch.reciprocal(y) < 0),
        torch.tensor(-math.pi, dtype=wide),
        torch.tensor(math.pi, dtype=wide),
    )
    slope = torch.atan(y / x)
    whole = torch.where(x < 0, slope + half_turn, torch.where(x == 0, slope.abs() * half_turn.sign(), slope))
    at_zero = torch.where(torch.reciprocal(x) < 0, half_turn, y)
    return torch.where(torch.logical_and(x == 0, y == 0), at_zero, whole).to(dtype)


def angle(func: Any, x: Any) -> Any:
    """The angle of complex numbers."""
    import torch

    if not x.dtype.is_complex:
        return NotImplemented
    parts = torch.view_as_real(x)
    return atan2(func, parts[..., 1], parts[..., 0])


def multiply(func: Any, x: Any, other: Any) -> Any:
    """The product of booleans, of whole numbers with a fraction of sizes, and of real tensors with complex numbers."""
    import torch

    if isinstance(other, torch.SymFloat) and not (x.dtype.is_floating_point or x.dtype.is_complex):
        # The exporters cut the fraction to a whole number, or find no form of the product.
        real = x.to(torch.get_default_dtype())
        return real * torch.full((), other, dtype=real.dtype, device=x.device)
    if isinstance(other, torch.Tensor) and other.dim() == 0 and is_whole(x) and other.dtype.is_floating_point:
        return x.to(torch.result_type(x, other)) * other
    if isinstance(other, complex) and x.dtype in (torch.float32, torch.float64):
        return torch.complex(x * other.real, x * other.imag)
    return torch.logical_and(x, other) if _are_booleans(x, other) else NotImplemented


def add(func: Any, x: Any, other: Any) -> Any:
    """The sum of booleans, true where one of them is, and of real and complex tensors: ONNX adds neither."""
    import torch

    tensors = all(isinstance(v, torch.Tensor) for v in (x, other))
    if tensors and x.dtype.is_complex != other.dtype.is_complex:
        real, mixed = (other, x) if x.dtype.is_complex else (x, other)
        parts = torch.view_as_real(mixed)
        return torch.complex(parts[..., 0] + real, parts[..., 1] + torch.zeros_like(real))
    return torch.logical_or(x, other) if _are_booleans(x, other) else NotImplemented


def exponential(func: Any, x: Any) -> Any:
    """exp of complex numbers: exp(a) (cos(b) + i sin(b))."""
    import torch

    if not x.dtype.is_complex:
        return NotImplemented
    parts = torch.view_as_real(x)
    size = torch.exp(parts[..., 0])
    return torch.complex(size * torch.cos(parts[..., 1]), size * torch.sin(parts[..., 1]))


def where(func: Any, condition: Any, x: Any = None, other: Any = None) -> Any:
    """A choice between two masks, as a formula: ONNX Runtime has no Where of booleans."""
    import torch

    if not _are_booleans(x, other):
        return NotImplemented
    return torch.logical_or(torch.logical_and(condition, x), torch.logical_and(torch.logical_not(condition), other))


def is_whole(x: Any) -> bool:
    """True for a tensor of whole numbers; booleans are none."""
    import torch

    if not isinstance(x, torch.Tensor):
        return False
    return not (x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.bool)


def _are_booleans(x: Any, other: Any) -> bool:
    import torch

    return all(isinstance(v, torch.Tensor) and v.dtype == torch.bool for v in (x, other))


def instance_norm(
    func: Any,
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """With running statistics it is a batch norm, which TorchScript can export."""
    from torch.nn import functional

    if use_input_stats or running_mean is None:
        return NotImplemented
    return functional.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)


def hypot(func: Any, x: Any, y: Any) -> Any:
    """The root of x * x + y * y by the larger of the two, whose square may overflow."""
    import torch

    larger, smaller = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = smaller / torch.where(larger == 0.0, 1.0, larger)
    return torch.where(torch.isinf(larger), larger, larger * torch.sqrt(1.0 + ratio * ratio))


def negate(func: Any, x: Any) -> Any:
    """Of bytes 256 - x, which no Neg of ONNX takes."""
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype != torch.uint8:
        return NotImplemented
    return torch.where(x == 0, 0, 256 - x.to(torch.int32)).to(torch.uint8)


def clamp(func: Any, x: Any, min: Any = None, max: Any = None) -> Any:
    """A fraction as a bound, beside a whole number or of whole numbers: all as fractions."""
    import torch

    kinds = {type(b) for b in (min, max) if isinstance(b, (int, float)) and not isinstance(b, bool)}
    if float not in kinds or (kinds == {float} and x.dtype.is_floating_point) or x.dtype.is_complex:
        return NotImplemented
    if any(isinstance(b, torch.Tensor) or is_symbolic(b) for b in (min, max)):
        return NotImplemented
    wide = x if x.dtype.is_floating_point else x.to(torch.get_default_dtype())
    return func(wide, *(None if b is None else float(b) for b in (min, max)))


def fake_quantize(func: Any, x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """Rounded to steps of which QuantizeLinear has no such range (four bits); of eight bits the exporter's Q/DQ."""
    import torch

    if (quant_min, quant_max) in QUANTIZE_LINEAR or not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
        return NotImplemented
    steps = torch.round(x * (1.0 / scale)) + zero_point
    return (steps.clamp(quant_min, quant_max) - zero_point) * scale


def fake_quantize_by_channel(
    func: Any, x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    """The same with a step for each place of an axis, as weights of -127 to 127 have it."""
    if (quant_min, quant_max) in QUANTIZE_LINEAR:
        return NotImplemented
    along = [-1 if a == axis % x.dim() else 1 for a in range(x.dim())]
    return fake_quantize(func, x, scale.view(along), zero_point.view(along), quant_min, quant_max)
