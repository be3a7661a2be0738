"""Images: resized, pooled, padded, folded, sampled and cut into windows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward


@forward("x:float32[N,T]", dims="N=1:2:3 T=4:9:41", noted="infinity")
def shifted_spectrum_of_odd(self, x):
    f = torch.fft.fftshift(torch.fft.fft(x, dim=1), dim=1)
    return (f.abs(), torch.fft.irfft(torch.fft.rfft(x, dim=1), n=x.shape[1], dim=1))


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=6:8:21 W=6:9:21")
def unpooled_to_input_size(self, x):
    y, i = F.max_pool2d(x, 2, 2, return_indices=True)
    return F.max_unpool2d(y, i, 2, 2, output_size=x.shape[-2:])


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=9:24:97 W=9:24:97")
def residual_of_third(self, x):
    y = F.interpolate(x, scale_factor=1 / 3, mode="bilinear", align_corners=False)
    y = F.interpolate(y, size=x.shape[-2:], mode="nearest")
    return x - y


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=9:24:97 W=9:24:97", refused="differs from the module")
def bicubic_by_recomputed_scale(self, x):
    return (
        F.interpolate(x, scale_factor=(0.7, 1.3), mode="bicubic", align_corners=False, recompute_scale_factor=True),
        F.interpolate(x, scale_factor=(0.7, 1.3), mode="bilinear", align_corners=False),
    )


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=16:24:61 W=16:24:61", noted="infinity")
def antialiased_to_constant(self, x):
    return F.interpolate(x, size=(7, 11), mode="bilinear", antialias=True, align_corners=False)


@forward("x:float32[N,2,H,W]", "g:float32[N,5,7,2]=-3:3", dims="N=1:1:2 H=1:8:21 W=2:9:21")
def sampled_by_reflection_and_bicubic(self, x, g):
    return (
        F.grid_sample(x, g, mode="bilinear", padding_mode="reflection", align_corners=False),
        F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=True),
    )


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=7:8:33 W=7:9:33", refused="differs from the module")
def ceil_pools_with_divisor(self, x):
    a = F.max_pool2d(x, 3, 2, 1, ceil_mode=True)
    b = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    c = F.avg_pool2d(x, (2, 3), 2, ceil_mode=True, divisor_override=5)
    d = F.lp_pool2d(x, 3.0, 3, 2, ceil_mode=True)
    return (a, b, c, d)


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:8:21 W=3:9:21", noted="with an infinity")
def adaptive_pool_indices(self, x):
    v, i = F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
    return (v, i, F.adaptive_avg_pool2d(x, (2, None)))


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=1:9:40 W=3:10:40", noted="infinity")
def adaptive_extremes_to_few(self, x):
    return (F.adaptive_max_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, (None, 5)), F.adaptive_max_pool2d(x, 1))


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=3:9:40 W=3:10:40", noted="infinity")
def resized_in_four_ways(self, x):
    h, w = x.shape[2:]
    return (
        F.interpolate(x, scale_factor=1.7, mode="nearest-exact"),
        F.interpolate(x, size=(h // 2 + 1, w * 2 // 3), mode="area"),
        F.interpolate(x, size=(h + w, 9), mode="nearest"),
        F.interpolate(x[:, :, 0], scale_factor=2.5, mode="linear"),
    )


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=4:9:20 W=4:10:20")
def padded_in_six_ways(self, x):
    return (
        F.pad(x, (3, 1, 2, 3), "reflect"),
        F.pad(x, (2, 4, 0, 3), "circular"),
        F.pad(x, (-1, 2, 3, -2), value=5.0),
        F.pad(x, (5, 0, 0, 7), "replicate"),
        F.pad(x[:, :, 0], (-1, 3), "replicate"),
        F.pad(x, (-1, 2, -2, 0), "reflect"),
    )


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=6:9:20 W=6:10:20")
def folded_with_dilation(self, x):
    u = F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    d = F.fold(u * 2, x.shape[-2:], (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    n = F.fold(torch.ones_like(u), x.shape[-2:], (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    return (u, d / n.clamp(min=1))


@forward("x:float32[N,6,H,W]", dims="N=1:1:3 H=4:8:24%4 W=4:12:24%4")
def windows_and_shuffles_in_multiples(self, x):
    n, _, h, w = x.shape
    y = x.reshape(n, 2, 3, h // 4, 4, w // 2, 2).permute(0, 3, 5, 1, 4, 6, 2).flatten(1, 2)
    z = F.pixel_unshuffle(x, 2)
    z = F.pixel_shuffle(F.channel_shuffle(z, 3), 2)
    return (y, z, x.unflatten(1, (3, -1)).movedim(1, -1).sum(1))


def cut_windows(x, w):
    b, h, q, c = x.shape
    return x.view(b, h // w, w, q // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)


@forward("x:float32[N,H,W,4]", dims="N=1:1:2 H=5:9:20 W=5:10:20")
def shifted_windows_with_mask(self, x):
    ws, ss = (4, 2)
    n, h, w, c = x.shape
    x = F.pad(x, (0, 0, 0, (ws - w % ws) % ws, 0, (ws - h % ws) % ws))
    hp, wp = (x.shape[1], x.shape[2])
    m = torch.zeros(1, hp, wp, 1)
    k = 0
    for a in (slice(0, -ws), slice(-ws, -ss), slice(-ss, None)):
        for b in (slice(0, -ws), slice(-ws, -ss), slice(-ss, None)):
            m[:, a, b, :] = k
            k += 1
    m = cut_windows(m, ws)[..., 0]
    am = (m[:, None] - m[:, :, None]).masked_fill_(m[:, None] - m[:, :, None] != 0, -100.0)
    x = torch.roll(x, (-ss, -ss), (1, 2))
    q = cut_windows(x, ws)
    a = q @ q.transpose(1, 2)
    a = (a.view(n, -1, 16, 16) + am[None]).softmax(-1).view(-1, 16, 16)
    y = (a @ q).view(n, hp // ws, wp // ws, ws, ws, c).permute(0, 1, 3, 2, 4, 5).reshape(n, hp, wp, c)
    return torch.roll(y, (ss, ss), (1, 2))[:, :h, :w]


@attack("x:float32[N,4,H,W]", dims="N=1:1:2 H=1:4:9 W=1:4:9")
class CodebookStraightThrough(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(16, 4)

    def forward(self, x):
        f = x.permute(0, 2, 3, 1).reshape(-1, 4)
        d = f.pow(2).sum(1, keepdim=True) + self.e.weight.pow(2).sum(1) - 2 * f @ self.e.weight.t()
        i = d.argmin(1)
        q = self.e(i).view(x.shape[0], x.shape[2], x.shape[3], 4).permute(0, 3, 1, 2)
        return (x + (q - x).detach(), i)
