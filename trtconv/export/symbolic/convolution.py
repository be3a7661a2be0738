"""Convolutions whose parameters follow a shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from trtconv.export.symbolic.sizes import any_symbolic, is_symbolic, per_axis


def conv_transpose(rank: int) -> Callable[..., Any]:
    """The handler of conv_transpose: an output padding that follows a shape becomes a fixed one and a slice."""

    def handle(
        func: Any,
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        extra = per_axis(output_padding, rank)
        if not any_symbolic(extra):
            return NotImplemented
        strides, pads, dilations = (per_axis(v, rank) for v in (stride, padding, dilation))
        full = func(x, weight, bias, stride, padding, [s - 1 for s in strides], groups, dilation)
        for i in range(rank):
            kernel = dilations[i] * (weight.shape[i - rank] - 1) + 1
            length = (x.shape[i - rank] - 1) * strides[i] - 2 * pads[i] + kernel + extra[i]
            full = full.narrow(i - rank, 0, length)
        return full

    return handle


def convolution(rank: int) -> Callable[..., Any]:
    """The handler of conv1d or conv2d: groups that move (a kernel for each sample, or channel) become a product."""

    def handle(
        func: Any,
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        if not is_symbolic(groups) or isinstance(padding, str) or x.dim() != rank + 2:
            return NotImplemented
        strides, pads, dilations = (per_axis(v, rank) for v in (stride, padding, dilation))
        if rank == 2:
            return _in_groups(x, weight, bias, strides, pads, dilations, groups)
        # Rows of height 1.
        x, weight, strides, pads, dilations = (
            x.unsqueeze(2),
            weight.unsqueeze(2),
            [1, *strides],
            [0, *pads],
            [1, *dilations],
        )
        return _in_groups(x, weight, bias, strides, pads, dilations, groups).squeeze(2)

    return handle


def _in_groups(
    x: Any, weight: Any, bias: Any, strides: list[Any], pads: list[Any], dilations: list[Any], groups: Any
) -> Any:
    """A convolution of images, [N, C, H, W], by unfolding them."""
    import torch
    from torch.nn import functional

    channels, kh, kw = weight.shape[1], weight.shape[2], weight.shape[3]
    samples = x.reshape(x.shape[0] * groups, channels, x.shape[2], x.shape[3])
    taps = functional.unfold(samples, (kh, kw), dilations, pads, strides)
    kernels = weight.reshape(groups, -1, channels * kh * kw)
    result = torch.matmul(kernels, taps.reshape(x.shape[0], groups, channels * kh * kw, taps.shape[-1]))
    out = [
        (x.shape[2 + i] + 2 * pads[i] - dilations[i] * (k - 1) - 1) // strides[i] + 1 for i, k in enumerate((kh, kw))
    ]
    result = result.reshape(x.shape[0], weight.shape[0], out[0], out[1])
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)


@contextmanager
def unchecked_output_size() -> Iterator[None]:
    """Let nn.ConvTranspose compute its output padding from `output_size` without comparing sizes."""
    from torch.nn.modules.conv import _ConvTransposeNd

    original = _ConvTransposeNd._output_padding

    def output_padding(
        self: Any,
        x: Any,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        rank: int,
        dilation: Any = None,
    ) -> Any:
        target_sizes = list(output_size)[-rank:] if output_size is not None else []
        if not any_symbolic([*target_sizes, *x.shape[-rank:]]) or not target_sizes:
            return original(self, x, output_size, stride, padding, kernel_size, rank, dilation)
        dilations = dilation if dilation is not None else [1] * rank
        return [
            target_sizes[i]
            - ((x.shape[i - rank] - 1) * stride[i] - 2 * padding[i] + dilations[i] * (kernel_size[i] - 1) + 1)
            for i in range(rank)
        ]

    with mock.patch.object(_ConvTransposeNd, "_output_padding", output_padding):
        yield


def channel_shuffle(func: Any, x: Any, groups: int) -> Any:
    """The channels of [N, C, ...] in turns, one of each group."""
    count, *rest = x.shape[1:]
    if is_symbolic(count):
        return NotImplemented
    return x.reshape([x.shape[0], groups, count // groups, *rest]).transpose(1, 2).reshape([x.shape[0], count, *rest])
