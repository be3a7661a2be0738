"""The plugin kernels called on torch tensors through checks/kernel_api.cu, without TensorRT."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_I64, _INT, _PTR, _FLOAT = ctypes.c_int64, ctypes.c_int, ctypes.c_void_p, ctypes.c_float


class Kernels:
    """The functions of the library at `path`; each raises RuntimeError when CUDA reports an error."""

    def __init__(self, path: Path) -> None:
        self.library: Any = ctypes.CDLL(str(path))
        self.library.trtconv_instance_norm_workspace.restype = _I64

    def _check(self, status: int, name: str) -> None:
        if status != 0:
            raise RuntimeError(f"{name}: CUDA error {status}")

    def l2norm(
        self, x: torch.Tensor, scale: torch.Tensor, y: torch.Tensor, epsilon: float, mode: int, route: int = 0,
        lanes: int = 0, cluster: int = 0, threads: int = 0,
    ) -> None:  # fmt: skip
        outer, channels, inner = x.shape[0], x.shape[1], math.prod(x.shape[2:])
        status = self.library.trtconv_l2norm(
            TYPES[x.dtype], TYPES[scale.dtype], _PTR(x.data_ptr()), _PTR(scale.data_ptr()), _PTR(y.data_ptr()),
            _I64(outer), _I64(channels), _I64(inner), _FLOAT(epsilon), mode, route, lanes, cluster,
            threads, _stream(),
        )  # fmt: skip
        self._check(status, "l2norm")

    def workspace(self, x: torch.Tensor) -> torch.Tensor:
        size = self.library.trtconv_instance_norm_workspace(
            TYPES[x.dtype], _I64(x.shape[0] * x.shape[1]), _I64(math.prod(x.shape[2:]))
        )
        return torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")

    def instance_norm(
        self, x: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, workspace: torch.Tensor,
        epsilon: float, relu: bool = False, route: int = 0, cluster: int = 0,
    ) -> None:  # fmt: skip
        status = self.library.trtconv_instance_norm(
            TYPES[x.dtype], TYPES[scale.dtype], _PTR(x.data_ptr()), _PTR(scale.data_ptr()), _PTR(bias.data_ptr()),
            _PTR(y.data_ptr()), _PTR(workspace.data_ptr()), _I64(x.shape[0] * x.shape[1]), _I64(x.shape[1]),
            _I64(math.prod(x.shape[2:])), _FLOAT(epsilon), int(relu), route, cluster, _stream(),
        )  # fmt: skip
        self._check(status, "instance_norm")

    def reflection_pad(self, x: torch.Tensor, y: torch.Tensor, pads: tuple[int, int, int, int], route: int = 0) -> None:
        """`pads` is top, left, bottom, right."""
        planes, height, width = math.prod(x.shape[:-2]), x.shape[-2], x.shape[-1]
        status = self.library.trtconv_reflection_pad(
            TYPES[x.dtype], _PTR(x.data_ptr()), _PTR(y.data_ptr()), _I64(planes), _I64(height), _I64(width), *pads,
            route, _stream(),
        )  # fmt: skip
        self._check(status, "reflection_pad")

    def adaptive_pool(self, x: torch.Tensor, y: torch.Tensor, maximum: bool) -> None:
        planes = math.prod(x.shape[:-2])
        status = self.library.trtconv_adaptive_pool(
            TYPES[x.dtype], _PTR(x.data_ptr()), _PTR(y.data_ptr()), _I64(planes), _I64(x.shape[-2]),
            _I64(x.shape[-1]), y.shape[-2], y.shape[-1], int(maximum), _stream(),
        )  # fmt: skip
        self._check(status, "adaptive_pool")

    def depthwise_conv_layer_norm(
        self, x: torch.Tensor, parameters: Sequence[torch.Tensor], y: torch.Tensor, epsilon: float, tile: int = 0,
        groups: int = 0,
    ) -> None:  # fmt: skip
        """`parameters` are weight [K, K, C], bias, scale and shift, of the type of x [N, H, W, C]."""
        status = self.library.trtconv_depthwise_conv_layer_norm(
            TYPES[x.dtype], _PTR(x.data_ptr()), *(_PTR(p.data_ptr()) for p in parameters), _PTR(y.data_ptr()),
            *(_I64(d) for d in x.shape), parameters[0].shape[0], _FLOAT(epsilon), tile, groups, _stream(),
        )  # fmt: skip
        self._check(status, "depthwise_conv_layer_norm")

    def depthwise_conv(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, width: int
    ) -> None:
        """`x` [N, height * width, C], `weight` [3, 3, C]; with GELU."""
        batch, length, channels = x.shape
        status = self.library.trtconv_depthwise_conv(
            TYPES[x.dtype], _PTR(x.data_ptr()), _PTR(weight.data_ptr()), _PTR(bias.data_ptr()), _PTR(y.data_ptr()),
            _I64(batch), _I64(length // width), _I64(width), _I64(channels), _stream(),
        )  # fmt: skip
        self._check(status, "depthwise_conv")

    def attention(self, x: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, heads: int, size: int) -> None:
        """`x` [B, L, 3 * heads * size]; `bias` [G, heads, L, L], or one zero for none."""
        groups = bias.shape[0] if bias.numel() > 1 else 0
        status = self.library.trtconv_attention(
            TYPES[x.dtype], _PTR(x.data_ptr()), _PTR(bias.data_ptr()), _PTR(y.data_ptr()), _I64(x.shape[0]),
            _I64(x.shape[1]), heads, size, _FLOAT(size**-0.5), _I64(groups), _stream(),
        )  # fmt: skip
        self._check(status, "attention")


def _stream() -> ctypes.c_void_p:
    return _PTR(torch.cuda.current_stream().cuda_stream)
