"""Fourier transforms, complex numbers, small linear algebra, filters, audio fronts, einsum's less usual forms."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import LINE, SMALL, STEPS, Case, module, of

WAVE = "x:float32[N,T]"
SAMPLES = "N=1:2:4 T=64:100:211"
MATRICES = "x:float32[N,T,3,3]"


class Spectrogram(nn.Module):
    def __init__(self, centre: bool = True) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.centre = centre

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = torch.stft(x, 16, 8, 16, self.window, center=self.centre, return_complex=True)
        return torch.view_as_real(s).pow(2).sum(-1)


class LogMel(nn.Module):
    """A speech front end: frames that are not a power of two, a shorter window, mel bands, clamped below the peak."""

    def __init__(self, frame: int = 40, window: int = 30) -> None:
        super().__init__()
        self.frame = frame
        self.register_buffer("window", torch.hann_window(window))
        self.register_buffer("bands", torch.rand(8, frame // 2 + 1, generator=torch.Generator().manual_seed(0)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = torch.stft(x, self.frame, 16, len(self.window), self.window, return_complex=True)
        power = s[..., :-1].abs() ** 2
        level = (self.bands @ power).clamp(min=1e-10).log10()
        return torch.maximum(level, level.amax() - 4.0) / 4.0 + 1.0


class SpectrogramByConv(nn.Module):
    """The same by a convolution with sines and cosines, as deployable front ends have it."""

    def __init__(self) -> None:
        super().__init__()
        k = torch.arange(9.0)[:, None] * torch.arange(16.0)[None] * (2 * math.pi / 16)
        window = torch.hann_window(16)
        self.register_buffer("kernel", torch.cat([k.cos() * window, -k.sin() * window])[:, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = F.conv1d(F.pad(x[:, None], (8, 8), mode="reflect"), self.kernel, stride=8)
        return torch.log(s[:, :9].pow(2) + s[:, 9:].pow(2) + 1e-10)


class GlobalFilter(nn.Module):
    """GFNet: a learned filter in the frequency domain along the channels of a fixed length."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9, 2) * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(
            torch.fft.rfft(x, dim=-1, norm="ortho") * torch.view_as_complex(self.weight), n=16, dim=-1, norm="ortho"
        )


class FourierMix(nn.Module):
    """FNet mixes tokens by a transform over the dynamic axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real


class Blur(nn.Module):
    """A fixed depthwise filter, reflect padded (BlurPool)."""

    def __init__(self) -> None:
        super().__init__()
        row = torch.tensor([1.0, 3.0, 3.0, 1.0])
        kernel = row[:, None] * row[None]
        self.register_buffer("kernel", (kernel / kernel.sum())[None, None].repeat(8, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(F.pad(x, (1, 2, 1, 2), mode="reflect"), self.kernel, stride=2, groups=x.shape[1])


class Haar(nn.Module):
    """One level of a wavelet; odd sizes are padded to even ones."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2), mode="replicate")
        a, b, c, d = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
        return torch.cat([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], 1) / 2


class SSM(nn.Module):
    """A diagonal state space as a convolution with a kernel as long as the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.decay, self.gain = nn.Parameter(torch.rand(16) + 0.2), nn.Parameter(torch.randn(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = x.shape[1]
        kernel = self.gain[:, None] * torch.exp(-self.decay[:, None] * torch.arange(t))
        lag = torch.arange(t)[:, None] - torch.arange(t)[None, :]
        mix = torch.where(lag >= 0, kernel[:, lag.clamp(min=0)], 0.0)
        return torch.einsum("cts,nsc->ntc", mix, x)


class Sobel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gx = F.pad(x, (1, 1, 0, 0), mode="replicate")
        gx = gx[..., 2:] - gx[..., :-2]
        gy = torch.diff(x, dim=2, prepend=x[:, :, :1])
        return torch.sqrt(gx * gx + gy * gy + 1e-12)


def rotation(x: torch.Tensor) -> torch.Tensor:
    """Six numbers to a rotation matrix (Gram-Schmidt), as pose networks end."""
    a = F.normalize(x[..., :3], dim=-1)
    b = F.normalize(x[..., 3:6] - (a * x[..., 3:6]).sum(-1, keepdim=True) * a, dim=-1)
    return torch.stack([a, b, torch.linalg.cross(a, b)], -1)


def quaternion(x: torch.Tensor) -> torch.Tensor:
    w, i, j, k = F.normalize(x[..., :4], dim=-1, eps=1e-8).unbind(-1)
    return torch.stack([1 - 2 * (j * j + k * k), 2 * (i * j - k * w), 2 * (i * k + j * w)], -1)


CASES: tuple[Case, ...] = (
    module("stft_centre", Spectrogram, WAVE, SAMPLES),
    module("stft", lambda: Spectrogram(False), WAVE, SAMPLES),
    module("stft_by_conv", SpectrogramByConv, WAVE, SAMPLES),
    module("log_mel", LogMel, WAVE, SAMPLES),
    module("log_mel_power_of_two", lambda: LogMel(32, 32), WAVE, SAMPLES),
    of(
        "stft_all_bins",
        lambda x: torch.view_as_real(
            torch.stft(
                x,
                32,
                8,
                window=torch.hann_window(32),
                center=False,
                normalized=True,
                onesided=False,
                return_complex=True,
            )
        ),
        WAVE,
        SAMPLES,
    ),
    module("global_filter", GlobalFilter, LINE, STEPS),
    module("fourier_mix", FourierMix, LINE, STEPS),
    of("rfft_of_dynamic_axis", lambda x: torch.fft.rfft(x, dim=1).abs(), LINE, STEPS),
    of("fft_shift", lambda x: torch.fft.fftshift(x, dim=(2, 3))),
    of(
        "complex_multiply",
        lambda x: torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (8, 2))) * torch.complex(torch.tensor(0.6), torch.tensor(0.8))
        ),
        LINE,
        STEPS,
    ),
    of(
        "polar_by_hand",
        lambda x: torch.stack([x[..., :8].exp() * x[..., 8:].cos(), x[..., :8].exp() * x[..., 8:].sin()], -1),
        LINE,
        STEPS,
    ),
    of("inverse_3x3", lambda x: torch.linalg.inv(x.tanh() + 4 * torch.eye(3)), MATRICES, STEPS),
    of("det_3x3", lambda x: torch.linalg.det(x), MATRICES, STEPS),
    of("solve_3x3", lambda x: torch.linalg.solve(x.tanh() + 4 * torch.eye(3), x[..., 0]), MATRICES, STEPS),
    of("trace", lambda x: x.diagonal(dim1=-2, dim2=-1).sum(-1), MATRICES, STEPS),
    of("matrix_power", lambda x: torch.linalg.matrix_power(x.tanh(), 3), MATRICES, STEPS),
    of("rotation_6d", rotation, "x:float32[N,T,6]", STEPS),
    of("quaternion", quaternion, "x:float32[N,T,4]", STEPS),
    of("outer", lambda x: torch.outer(x, x), "x:float32[T]", "T=5:20:50"),
    of("dot_mv", lambda x: torch.mv(x, x.mean(0)) + torch.dot(x[0], x[1]), "x:float32[T,8]", "T=5:20:50"),
    of(
        "kron_like",
        lambda x: (x[:, :, None, :, None] * torch.ones(1, 1, 2, 1, 2)).flatten(3, 4).flatten(1, 2),
        LINE,
        STEPS,
    ),
    of("block_diagonal", lambda x: torch.block_diag(x, x), "x:float32[T,4]", "T=5:20:50"),
    module("blur_pool", Blur),
    module("haar", Haar),
    module("state_space", SSM, LINE, STEPS),
    module("sobel", Sobel),
    of(
        "total_variation",
        lambda x: (x[:, :, 1:] - x[:, :, :-1]).abs().mean((1, 2, 3)) + (x[..., 1:] - x[..., :-1]).abs().mean((1, 2, 3)),
    ),
    of(
        "laplacian_pyramid",
        lambda x: (
            x
            - F.interpolate(F.avg_pool2d(x, 2, ceil_mode=True), size=x.shape[2:], mode="bilinear", align_corners=False)
        ),
    ),
    of("unfold_frames", lambda x: x.unfold(1, 16, 8) * torch.hann_window(16), WAVE, SAMPLES),
    of(
        "frames_overlap_add",
        lambda x: F.fold(
            x.unfold(1, 16, 8).transpose(1, 2), (1, (x.shape[1] - 16) // 8 * 8 + 16), (1, 16), stride=(1, 8)
        ).flatten(1),
        WAVE,
        SAMPLES,
    ),
    of("decibel", lambda x: 10.0 * torch.log10(torch.clamp(x * x, min=1e-10)), WAVE, SAMPLES),
    of(
        "mu_law",
        lambda x: (
            (torch.sign(x) * torch.log1p(255.0 * x.tanh().abs()) / math.log1p(255.0) + 1) / 2 * 255 + 0.5
        ).floor(),
        WAVE,
        SAMPLES,
    ),
    of("preemphasis", lambda x: torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], 1), WAVE, SAMPLES),
    of(
        "autocorrelation",
        lambda x: torch.stack([(x[:, lag:] * x[:, : x.shape[1] - lag]).mean(1) for lag in range(4)], 1),
        WAVE,
        SAMPLES,
    ),
    of("einsum_ellipsis_both", lambda x: torch.einsum("...ij,...jk->...ik", x, x), MATRICES, STEPS),
    of("einsum_trace", lambda x: torch.einsum("ntii->nt", x), MATRICES, STEPS),
    of("einsum_sum_all", lambda x: torch.einsum("ntc->", x), LINE, STEPS),
    of("einsum_transpose", lambda x: torch.einsum("nchw->nwhc", x), space=SMALL),
    of(
        "einsum_batch_heads",
        lambda x: torch.einsum("nthd,nshd->nhts", x.unflatten(2, (4, 4)), x.unflatten(2, (4, 4))),
        LINE,
        STEPS,
    ),
    of("einsum_implicit", lambda x: torch.einsum("bij,bjk", x, x.transpose(1, 2)), LINE, STEPS),
    of("einsum_broadcast_one", lambda x: torch.einsum("ntc,c->nt", x, torch.arange(16.0)), LINE, STEPS),
    of("einsum_four", lambda x: torch.einsum("na,nb,nc,nd->nabcd", *(x[:, i, :3] for i in range(4))), LINE, STEPS),
    of("tensordot", lambda x: torch.tensordot(x, torch.arange(32.0).view(16, 2) / 16, dims=([2], [0])), LINE, STEPS),
    of("tensordot_two", lambda x: torch.tensordot(x, x, dims=([0, 1], [0, 1])), LINE, STEPS),
)
