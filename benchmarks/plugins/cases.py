"""What the plugin benchmark runs: for each case our kernel, the torch expression and a float64 reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as functional

from benchmarks.plugins.library import Kernels
from benchmarks.plugins.shapes import Case

Tensor = torch.Tensor


@dataclass(frozen=True)
class Work:
    """A case for one dtype: the output's shape, our launch, torch's expression, and the same of a float64 `x`."""

    out: tuple[int, ...]
    ours: Callable[[Tensor, Tensor], None]
    torch_op: Callable[[Tensor], Tensor]
    reference: Callable[[Tensor], Tensor]


def l2norm(x: Tensor, scale: Tensor) -> Tensor:
    """Sum in float32 or better, as the plugin does."""
    wide = x if x.dtype == torch.float64 else x.float()
    norm = wide.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10
    return (wide / norm * scale.to(wide.dtype).view(1, -1, 1, 1)).to(x.dtype)


def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, relu: bool) -> Tensor:
    y = functional.instance_norm(x, weight=scale.to(x.dtype), bias=bias.to(x.dtype), eps=1e-5)
    return functional.relu(y) if relu else y


def depthwise_conv_layer_norm(x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """As ConvNeXt writes it, with x channels last in memory."""
    weight, bias, scale, shift = (p.to(x.dtype) for p in parameters)
    kernels = weight.permute(2, 0, 1).unsqueeze(1)
    pad, channels = weight.shape[0] // 2, x.shape[3]
    convolved = functional.conv2d(x.permute(0, 3, 1, 2), kernels, bias, padding=pad, groups=channels)
    return functional.layer_norm(convolved.permute(0, 2, 3, 1), (channels,), scale, shift, 1e-6)


def depthwise_conv(x: Tensor, weight: Tensor, bias: Tensor, width: int) -> Tensor:
    """As PVTv2 writes it, with GELU behind it."""
    batch, length, channels = x.shape
    image = x.transpose(1, 2).reshape(batch, channels, length // width, width)
    kernels = weight.to(x.dtype).permute(2, 0, 1).unsqueeze(1)
    y = functional.conv2d(image, kernels, bias.to(x.dtype), padding=1, groups=channels)
    return functional.gelu(y.flatten(2).transpose(1, 2))


def attention(x: Tensor, bias: Tensor, heads: int, size: int) -> Tensor:
    """As timm writes it, for packed rows."""
    batch, length, _ = x.shape
    query, key, value = x.view(batch, length, 3, heads, size).permute(2, 0, 3, 1, 4).unbind(0)
    mask = None if bias.numel() == 1 else bias.to(x.dtype).repeat(batch // bias.shape[0], 1, 1, 1)
    y = functional.scaled_dot_product_attention(query, key, value, mask)
    return y.transpose(1, 2).reshape(batch, length, heads * size)


def work_of(case: Case, dtype: torch.dtype, kernels: Kernels, tuning: dict[str, int] | None = None) -> Work:
    """The case's functions; `tuning` goes to our kernel (lanes; route and cluster)."""
    tuned = tuning or {}
    shape, options = case.shape, case.options
    if case.op in ("l2norm", "instance_norm"):
        scale = torch.rand(shape[1], device="cuda", dtype=dtype) + 0.5
        bias = torch.randn(shape[1], device="cuda", dtype=dtype)
    if case.op == "l2norm":
        expression: Callable[[Tensor], Tensor] = partial(l2norm, scale=scale)
        return Work(shape, lambda x, y: kernels.l2norm(x, scale, y, 1e-10, 0, **tuned), expression, expression)
    if case.op == "instance_norm":
        workspace = kernels.workspace(torch.empty(shape, device="meta", dtype=dtype))
        relu = bool(options.get("relu", False))
        expression = partial(instance_norm, scale=scale, bias=bias, relu=relu)

        def ours(x: Tensor, y: Tensor) -> None:
            kernels.instance_norm(x, scale, bias, y, workspace, 1e-5, relu, **tuned)

        return Work(shape, ours, expression, expression)
    if case.op == "depthwise_conv_layer_norm":
        size, channels = options["size"], shape[3]
        shapes = ((size, size, channels), *((channels,),) * 3)
        drawn = [torch.randn(s, device="cuda", dtype=dtype) / (size if len(s) == 3 else 1) for s in shapes]
        expression = partial(depthwise_conv_layer_norm, parameters=drawn)
        return Work(
            shape, lambda x, y: kernels.depthwise_conv_layer_norm(x, drawn, y, 1e-6, **tuned), expression, expression
        )
    if case.op == "depthwise_conv":
        weight = torch.randn((3, 3, shape[2]), device="cuda", dtype=dtype) / 3
        terms, width = torch.randn(shape[2], device="cuda", dtype=dtype), options["width"]
        expression = partial(depthwise_conv, weight=weight, bias=terms, width=width)
        return Work(shape, lambda x, y: kernels.depthwise_conv(x, weight, terms, y, width), expression, expression)
    if case.op == "attention":
        heads, size, groups = options["heads"], options["size"], options["groups"]
        dims = (groups, heads, shape[1], shape[1]) if groups else (1, 1, 1, 1)
        added = torch.randn(dims, device="cuda", dtype=dtype) * (groups > 0)
        expression = partial(attention, bias=added, heads=heads, size=size)
        out = (*shape[:2], heads * size)
        return Work(out, lambda x, y: kernels.attention(x, added, y, heads, size), expression, expression)
    if case.op == "reflection_pad":
        top, left, bottom, right = options["pads"]
        out = (*shape[:2], shape[2] + top + bottom, shape[3] + left + right)
        expression = partial(functional.pad, pad=(left, right, top, bottom), mode="reflect")
        return Work(out, lambda x, y: kernels.reflection_pad(x, y, options["pads"], **tuned), expression, expression)
    pool = functional.adaptive_max_pool2d if options["maximum"] else functional.adaptive_avg_pool2d
    expression = partial(pool, output_size=options["size"])
    out = (*shape[:2], *options["size"])
    return Work(out, lambda x, y: kernels.adaptive_pool(x, y, options["maximum"]), expression, expression)


def relative_error(work: Work, x: Tensor) -> float:
    """Largest difference of our result from torch's in float64 over its largest value; inf for unwritten elements."""
    y = torch.full(work.out, float("nan"), device="cuda", dtype=x.dtype)
    work.ours(x, y)
    worst, largest = 0.0, 1e-30
    # A few items of the batch at a time, since the float64 copies are large.
    step = max(1, 2**26 // max(1, x[0].numel()))
    for i in range(0, x.shape[0], step):
        expected = work.reference(x[i : i + step].double())
        actual = y[i : i + step].double()
        if not torch.isfinite(actual).all():
            return float("inf")
        worst = max(worst, float((actual - expected).abs().max()))
        largest = max(largest, float(expected.abs().max()))
    return worst / largest
