"""Norms, pools, convolutions, activations and recurrent cells in forms that the other groups leave out."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, SMALL, STEPS, TWO, Case, module, of

SIGNAL = "x:float32[N,8,T]"
TICKS = "N=1:2:5 T=17:30:61"
VOLUME = "x:float32[N,4,D,H,W]"
VOXELS = "N=1:2:3 D=4:6:9 H=8:10:15 W=9:12:17"


class SpectralConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.spectral_norm(nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class OldWeightNorm(nn.Module):
    """The hook that came before parametrizations, still in many repositories."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv1d(8, 4, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


class EvoNorm(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        grouped = x.reshape(n, 4, c // 4, h, w)
        std = (grouped.var((2, 3, 4), keepdim=True) + 1e-5).sqrt().expand(-1, -1, c // 4, h, w).reshape(n, c, h, w)
        return x * torch.sigmoid(1.5 * x) / std


class LayerNorm2d(nn.Module):
    """ConvNeXt: channels first, by layer_norm on permuted axes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).contiguous()


class FilterResponse(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        nu2 = x.pow(2).mean((2, 3), keepdim=True)
        return torch.max(x * torch.rsqrt(nu2 + 1e-12) * 1.2 + 0.1, torch.tensor(-0.3))


class PixelNorm(nn.Module):
    """ProGAN's, whose 1e-8 the exporter's optimiser takes for nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-8)


class MinibatchStd(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        std = torch.sqrt(x.var(0, unbiased=False) + 1e-8).mean()
        return torch.cat([x, std.expand(x.shape[0], 1, x.shape[2], x.shape[3])], 1)


class Modulated(nn.Module):
    """StyleGAN2: weights scaled per sample, demodulated, run as one grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 3, 3))

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        weight = self.weight[None] * style[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        out = F.conv2d(x.reshape(1, n * c, h, w), weight.reshape(n * 4, c, 3, 3), padding=1, groups=n)
        return out.reshape(n, 4, h, w)


class GeM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x.clamp(min=1e-6).pow(self.p), (x.size(-2), x.size(-1))).pow(1.0 / self.p)


class BlurredMean(nn.Module):
    """The window is a quarter of what two strides left, at least one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(F.max_pool2d(x, 2), 2)
        k = max(1, y.shape[2] // 4)
        return F.avg_pool2d(y, (k, 1), stride=(k, 1))


class LstmCellLoop(nn.Module):
    """Six fixed steps of a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(x.shape[0], 8)
        out = []
        for t in range(6):
            h, c = self.cell(x[:, t], (h, c))
            out.append(h)
        return torch.stack(out, 1)


class GruCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return self.cell(x, h)


class ConvLstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(12, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[0], 4, x.shape[2], x.shape[3])
        for _ in range(2):
            i, f, g, o = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


class Stacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.GRU(16, 8, 2, batch_first=True, dropout=0.2)
        self.second = nn.LSTM(8, 6, batch_first=True, proj_size=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)[0])[0]


class StatefulLstm(nn.Module):
    """A streaming step: the state goes in and comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(16, 8, batch_first=True)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (h, c) = self.layer(x, (h, c))
        return y, h, c


class OnePrelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.PReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


class SwiGlu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class SameTransposed(nn.Module):
    """A transposed convolution on a line, its output size taken from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv1d(8, 8, 4, 2, 1), nn.ConvTranspose1d(8, 8, 4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.up(self.down(x), output_size=x.shape[2:])


class Transposed3(nn.Module):
    """Stride three, its output size taken from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(8, 4, 3, 3, 1), nn.ConvTranspose2d(4, 8, 3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(x), output_size=[x.size(2), x.size(3)])


def l2_rows(x: torch.Tensor) -> torch.Tensor:
    return x / (x.norm(p=2, dim=-1, keepdim=True) + 1e-12)


CASES: tuple[Case, ...] = (
    of("l2_norm_method", l2_rows, LINE, STEPS),
    of("l2_clamp_min", lambda x: x / x.norm(dim=1, keepdim=True).clamp_min(1e-12)),
    of("l2_linalg", lambda x: x / (torch.linalg.vector_norm(x, dim=1, keepdim=True) + 1e-10)),
    of("l2_rsqrt_max", lambda x: x * torch.rsqrt(torch.clamp(x.pow(2).sum(1, keepdim=True), min=1e-24))),
    of("l2_maximum", lambda x: x / torch.maximum(x.pow(2).sum(1, True).sqrt(), torch.tensor(1e-12))),
    of("l2_reciprocal", lambda x: x * (x.pow(2).sum(1, keepdim=True).sqrt() + 1e-10).reciprocal()),
    of("l2_power_half", lambda x: x / (x**2).sum(1, keepdim=True).add(1e-12) ** 0.5),
    of("l2_expanded", lambda x: x / (x.pow(2).sum(1).sqrt().unsqueeze(1).expand_as(x) + 1e-10) * 20.0),
    of("normalize_last", lambda x: F.normalize(x, dim=-1, eps=1e-8), LINE, STEPS),
    of("normalize_inf", lambda x: F.normalize(x, p=float("inf"), dim=1)),
    of("eps_under_log", lambda x: -torch.log(F.relu(x) + 1e-10)),
    of("eps_in_ratio", lambda x: F.relu(x) / (F.relu(x).sum(1, keepdim=True) + 1e-9)),
    of("eps_subtracted", lambda x: torch.log(F.relu(-x) - (-1e-10))),
    of(
        "dice",
        lambda x: 2 * (x.sigmoid() * (x > 0)).sum((2, 3)) / (x.sigmoid().sum((2, 3)) + (x > 0).sum((2, 3)) + 1e-8),
    ),
    module("pixel_norm", PixelNorm),
    module("minibatch_std", MinibatchStd),
    module("modulated_conv", Modulated, ("x:float32[N,8,H,W]", "style:float32[N,8]"), SMALL),
    module("spectral_norm", SpectralConv),
    module("old_weight_norm", OldWeightNorm, SIGNAL, TICKS),
    module("evo_norm", EvoNorm),
    module("layer_norm_2d", LayerNorm2d),
    module("filter_response_norm", FilterResponse),
    module("group_norm_one", lambda: nn.GroupNorm(1, 8)),
    module("group_norm_line", lambda: nn.GroupNorm(2, 8), SIGNAL, TICKS),
    module("instance_norm_1d", lambda: nn.InstanceNorm1d(8, affine=True), SIGNAL, TICKS),
    module("instance_norm_3d", lambda: nn.InstanceNorm3d(4), VOLUME, VOXELS),
    module("batch_norm_1d", lambda: nn.BatchNorm1d(8), SIGNAL, TICKS),
    module("batch_norm_3d", lambda: nn.BatchNorm3d(4, affine=False), VOLUME, VOXELS),
    module("batch_norm_untracked", lambda: nn.BatchNorm2d(8, track_running_stats=False)),
    module("layer_norm_no_affine", lambda: nn.LayerNorm(16, elementwise_affine=False), LINE, STEPS),
    of("layer_norm_dynamic_shape", lambda x: F.layer_norm(x, x.shape[1:])),
    of("layer_norm_line_and_channels", lambda x: F.layer_norm(x, (x.shape[1], 16)), LINE, STEPS),
    of("pool_1d_ceil", lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True), SIGNAL, TICKS),
    of("pool_1d_no_pad_count", lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), SIGNAL, TICKS),
    of("lp_pool_1", lambda x: F.lp_pool1d(x.abs() + 0.1, 2, 3), SIGNAL, TICKS),
    of("pool_3d_ceil", lambda x: F.avg_pool3d(x, 2, 2, ceil_mode=True), VOLUME, VOXELS),
    of("pool_asymmetric", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0))),
    of("pool_third_of_width", lambda x: F.avg_pool2d(x, (1, x.shape[3] // 3), stride=(1, x.shape[3] // 3))),
    of("pool_padding_from_shape", lambda x: F.max_pool2d(x, 5, 2, padding=min(2, x.shape[2] // 8))),
    of("pool_stride_from_shape", lambda x: F.avg_pool2d(x, 2, stride=(x.shape[2] // 8, 2))),
    of("pool_tensor_arithmetic", lambda x: F.avg_pool2d(x, ((torch.tensor(x.shape[2]) // 2).item(), 2))),
    of("adaptive_avg_3_tuple", lambda x: F.adaptive_avg_pool2d(x, (3, None))),
    of(
        "adaptive_avg_to_other",
        lambda x, y: F.adaptive_avg_pool2d(x, y.shape[2:]) + y,
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=5:8:11 W2=4:9:12",
    ),
    of(
        "adaptive_max_to_other",
        lambda x, y: F.adaptive_max_pool2d(x, (y.shape[2], y.shape[3])) + y,
        TWO,
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=5:8:11 W2=4:9:12",
    ),
    of("adaptive_max_3d", lambda x: F.adaptive_max_pool3d(x, (2, 2, 3)), VOLUME, VOXELS),
    module("gem", GeM),
    module("quarter_windows", BlurredMean),
    of(
        "stochastic_free_fractional",
        lambda x: F.avg_pool2d(x, 3, 1, 1) / (F.avg_pool2d(torch.ones_like(x), 3, 1, 1) + 1e-7),
    ),
    module("conv_transpose_1d_output_size", SameTransposed, SIGNAL, TICKS),
    module("conv_transpose_stride_3_output_size", Transposed3),
    module("conv_transpose_grouped", lambda: nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=8, bias=False)),
    module("conv_transpose_dilated", lambda: nn.ConvTranspose2d(8, 4, 3, 1, 2, dilation=2)),
    module("conv_1x1_strided", lambda: nn.Conv2d(8, 4, 1, 2)),
    module("conv_asymmetric", lambda: nn.Conv2d(8, 4, (1, 7), padding=(0, 3))),
    module("conv_lazy_channels", lambda: nn.Sequential(nn.Conv2d(8, 6, 3), nn.Flatten(2), nn.Softmax(-1))),
    module("conv3d_strided", lambda: nn.Conv3d(4, 4, (1, 3, 3), (1, 2, 2), (0, 1, 1)), VOLUME, VOXELS),
    of("conv_with_input_weights", lambda x, y: F.conv2d(x, y), ("x:float32[N,8,H,W]", "y:float32[4,8,3,3]")),
    of(
        "correlation_with_template",
        lambda x, y: F.conv2d(x[:1], y[:1].transpose(0, 1), groups=8),
        ("x:float32[N,8,H,W]", "y:float32[N,8,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=3:5:7 W2=3:4:6",
    ),
    of(
        "xcorr_siamese",
        lambda x, y: F.conv2d(
            x.reshape(1, -1, x.shape[2], x.shape[3]), y.reshape(-1, 1, y.shape[2], y.shape[3]), groups=x.shape[0] * 8
        ).view(x.shape[0], 8, -1),
        ("x:float32[N,8,H,W]", "y:float32[N,8,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=3:5:7 W2=3:4:6",
    ),
    module("lstm_cell_loop", LstmCellLoop, "x:float32[N,6,8]", "N=1:2:5"),
    module("gru_cell", GruCell, ("x:float32[N,8]", "h:float32[N,8]"), "N=1:2:5"),
    module("conv_lstm", ConvLstm, space=SMALL),
    module("stacked_gru_projected_lstm", Stacked, LINE, STEPS),
    module("lstm_state_in_out", StatefulLstm, (LINE, "h:float32[1,N,8]", "c:float32[1,N,8]"), STEPS),
    module(
        "rnn_relu_both_ways",
        lambda: nn.RNN(16, 8, nonlinearity="relu", batch_first=True, bidirectional=True),
        LINE,
        STEPS,
    ),
    module("gru_time_first", lambda: nn.GRU(16, 8), "x:float32[T,N,16]", STEPS),
    module("lstm_no_bias", lambda: nn.LSTM(16, 8, bias=False, batch_first=True), LINE, STEPS),
    module("prelu_one", OnePrelu),
    module("swiglu", SwiGlu, LINE, STEPS),
    of("swish_by_hand", lambda x: x * torch.sigmoid(1.702 * x)),
    of("gelu_by_hand", lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    of("gelu_erf_by_hand", lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))),
    of("hardswish_by_hand", lambda x: x * F.relu6(x + 3) / 6),
    of("mish_by_hand", lambda x: x * torch.tanh(F.softplus(x))),
    of("softplus_beta", lambda x: F.softplus(x, beta=2.0, threshold=5.0)),
    of("relu_squared", lambda x: F.relu(x).square()),
    of("maxout", lambda x: x.unflatten(1, (4, 2)).amax(2)),
    of("rrelu_in_eval", lambda x: F.rrelu(x, 0.1, 0.3, training=False)),
    of("celu_alpha", lambda x: F.celu(x, 0.5)),
    of("threshold_by_where", lambda x: torch.where(x.abs() < 0.3, torch.zeros_like(x), x)),
    of("geglu", lambda x: x[..., :8] * F.gelu(x[..., 8:]), LINE, STEPS),
    of("snake", lambda x: x + torch.sin(1.5 * x) ** 2 / 1.5),
    of("log_sigmoid_sum", lambda x: F.logsigmoid(x).sum(1) + F.softplus(-x).sum(1)),
)
