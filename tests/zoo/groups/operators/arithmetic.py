"""Activations, statistics, complex-looking arithmetic, other dtypes."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, STEPS, Case, module, of

ACTIVATIONS = {
    "relu6": F.relu6, "leaky_relu": F.leaky_relu, "elu": F.elu, "selu": F.selu, "celu": F.celu, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish, "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "softplus": F.softplus, "softsign": F.softsign,
    "logsigmoid": F.logsigmoid, "tanhshrink": F.tanhshrink, "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, -0.5), "glu": lambda x: F.glu(x, 1),
}  # fmt: skip


class Frelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, self.norm(self.conv(x)))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(16, 16), nn.Linear(16, 16)
        self.outer.weight = self.inner.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(F.relu(self.inner(x)))


class Normalised(nn.Module):
    """Pixels come as bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([120.0, 115.0, 100.0]).view(1, 3, 1, 1))
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv((x.float() - self.mean) / 58.0)


CASES: tuple[Case, ...] = (
    *(of(name, function) for name, function in ACTIVATIONS.items()),
    module("prelu", lambda: nn.PReLU(8)),
    module("frelu", Frelu),
    module("tied_weights", Tied, LINE, STEPS),
    of("clamp_mixed", lambda x: x.clamp(0.1, 4)),
    of("clamp_tensor", lambda x: torch.clamp(x, min=x.mean(1, keepdim=True))),
    of("softmax_channels", lambda x: x.softmax(1)),
    of("log_softmax", lambda x: x.log_softmax(1)),
    of("gumbel_like", lambda x: F.softmax(x / 0.5 - torch.log(-torch.log(torch.sigmoid(x) * 0.9 + 0.05)), 1)),
    of("std_var", lambda x: torch.cat([x.std((2, 3)), x.var((2, 3), unbiased=False)], 1)),
    of("std_mean", lambda x: torch.std_mean(x, dim=(2, 3))),
    of("logsumexp", lambda x: x.logsumexp((2, 3))),
    of("norm_fro", lambda x: torch.linalg.norm(x, dim=(2, 3))),
    of("vector_norm_inf", lambda x: torch.linalg.vector_norm(x, ord=float("inf"), dim=1)),
    of("amax_amin", lambda x: x.amax((2, 3)) - x.amin((2, 3))),
    of("prod", lambda x: (x * 0.1 + 1.0).prod(1)),
    of("any_all", lambda x: torch.stack([(x > 2.5).any(1), (x > -2.0).all(1)], 1)),
    of("minimum_maximum", lambda x: torch.minimum(torch.maximum(x, x.flip(3)), x.flip(2) + 1)),
    of("pow_tensor", lambda x: (x.abs() + 0.1) ** x.clamp(-2, 2)),
    of("log1p_expm1_small", lambda x: torch.cat([torch.log1p(x.abs() * 1e-4), torch.expm1(x * 1e-4)], 1)),
    of("exp_log1p", lambda x: torch.log1p(torch.exp(-x.abs())) + torch.expm1(x.clamp(max=1))),
    of("trigonometry", lambda x: torch.atan2(torch.sin(x), torch.cos(x) + 2) + torch.asin(torch.tanh(x) * 0.9)),
    of("erf", lambda x: torch.erf(x) + torch.sign(x) * torch.rsqrt(x.abs() + 1)),
    of("round_ceil", lambda x: x.round() + x.ceil() - x.trunc() + torch.frac(x)),
    of("addcmul_lerp", lambda x: torch.lerp(x, torch.addcmul(x, x, x, value=0.5), 0.3)),
    of("lerp_tensor", lambda x: torch.lerp(x, x.flip(1), torch.sigmoid(x))),
    of(
        "baddbmm",
        lambda x: torch.baddbmm(x @ x.transpose(1, 2), x, x.transpose(1, 2), beta=0.5, alpha=2.0),
        LINE,
        STEPS,
    ),
    of(
        "matrix_inverse",
        lambda x: torch.linalg.inv(x.tanh().transpose(1, 2) @ x.tanh() + torch.eye(16) * 20),
        LINE,
        STEPS,
    ),
    of("determinant_2x2", lambda x: x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0], LINE, STEPS),
    of("rfft_magnitude", lambda x: torch.fft.rfft(x, dim=-1).abs(), LINE, STEPS),
    of("kl_like", lambda x: (x.softmax(1) * (x.log_softmax(1) - 0.1)).sum(1)),
    of("diff", lambda x: torch.diff(x, dim=2)),
    of("cross", lambda x: torch.cross(x[:, :3], x[:, 3:6], dim=1)),
    of("gram", lambda x: torch.bmm(x.flatten(2), x.flatten(2).transpose(1, 2)) / x[0].numel()),
    of("hypot", lambda x: torch.hypot(x, x.flip(3) + 1)),
    of("negative_bytes", lambda x: -x, "x:uint8[N,3,H,W]=0:255"),
    of("uint8_input", Normalised().forward, "x:uint8[N,3,H,W]=0:255"),
    of("bool_input", lambda x: torch.where(x, 1.0, -1.0).mean(1), "x:bool[N,T]", STEPS),
    replace(of("float16_input", lambda x: F.relu(x * 2 + 1), "x:float16[N,T,16]", STEPS), precision="auto"),
    of("float64_input", lambda x: x.mean(1).exp(), "x:float64[N,T,16]", STEPS),
    of("float64_in_range", lambda x: x.mean(1).exp(), "x:float64[N,T,16]=-4:4", STEPS),
    of("int32_input", lambda x: x.float().mean(1), "x:int32[N,T]=0:29", STEPS),
    of("cast_chain", lambda x: (x * 3).to(torch.int64).to(torch.float32) + x.long().float()),
    of("bool_to_float_mean", lambda x: (x > 0).float().mean((2, 3))),
    of("dropout_in_eval", lambda x: F.dropout(x, 0.5, training=False) * 2),
    of(
        "complex_by_hand",
        lambda x: torch.stack([x[:, :4] * x[:, :4] - x[:, 4:] * x[:, 4:], 2 * x[:, :4] * x[:, 4:]], -1),
    ),
)
