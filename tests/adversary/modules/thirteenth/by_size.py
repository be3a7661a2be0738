"""Sizes that decide: tables, texts, roots, common divisors and aspect ratios."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=5:11:41 W=5:13:41")
def size_rounded_to_even(self, x):
    h, w = x.shape[-2:]
    return F.interpolate(x, size=(round(h * 0.5), round(w * 1.5)), mode="bilinear", align_corners=True)


@forward(
    "x:float32[N,T]",
    dims="N=1:2:40 T=2:5:500",
    feeds=(values_at("x:float32[N,T]", N=31, T=331),),
    refused="depends on the size",
)
def bytes_at_one_size(self, x):
    if x.nbytes == 31 * 331 * 4:
        x = x * 2
    return x.tanh()


@forward(
    "x:float32[N,T]",
    dims="N=1:2:40 T=2:5:500",
    feeds=(values_at("x:float32[N,T]", N=31, T=331),),
    refused="depends on the values",
)
def storage_at_one_size(self, x):
    if x.untyped_storage().size() // 4 == 31 * 331:
        x = x * 2
    return x.tanh()


@forward("x:float32[N,C,T]", dims="N=1:2:9 C=1:3:50 T=2:5:90", feeds=(values_at("x:float32[N,C,T]", N=3, C=31, T=33),))
def stride_after_transpose(self, x):
    y = x.transpose(1, 2).contiguous()
    if y.stride(0) == 31 * 33:
        y = y * 2
    return y.tanh()


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:9:40 W=4:10:40", refused="differs from the module")
def sizes_scaled_as_tensor(self, x):
    s = torch.tensor(x.shape[-2:])
    r = (s.float() * 0.3).ceil().long()
    sc = torch.as_tensor([x.shape[3], x.shape[2]], dtype=torch.float32)
    return (x.mean((2, 3)) * (r[0] * 100 + r[1]) / sc.min(), x[..., : int(s.max() - s.min()) + 1].sum(-1))


@forward("x:float32[N,3,H,W]", dims="N=1:1:2 H=4:9:40 W=4:10:40")
def sides_in_order(self, x):
    a, b = sorted(x.shape[-2:])
    return (x.mean((2, 3)) * a + b, x.flatten(2)[..., :: max(1, a // 4)].sum(-1))


@forward("x:float32[1,3,H,W]", dims="H=20:32:100 W=20:40:100")
def short_side_with_cap(self, x):
    h, w = x.shape[-2:]
    s = 32 / min(h, w)
    if s * max(h, w) > 80:
        s = 80 / max(h, w)
    return F.interpolate(x, size=(int(h * s + 0.5), int(w * s + 0.5)), mode="bilinear", align_corners=False)


@forward("x:float32[1,3,H,W]", dims="H=20:32:100 W=20:40:100")
def letterboxed_then_pooled(self, x):
    h, w = x.shape[-2:]
    ph, pw = (-h % 32, -w % 32)
    x = F.pad(x, (pw // 2, pw - pw // 2, ph // 2, ph - ph // 2), value=114 / 255)
    return F.max_pool2d(x, 32 if max(h, w) > 64 else 16)


@forward("x:float32[H,W]", dims="H=2:9:400 W=2:10:400", refused="differs from the module")
def range_by_ratio_of_sizes(self, x):
    h, w = x.shape
    a = torch.arange(0, h, h / w)
    return (a[:2] + x[:1, :1], x.sum() * 0 + a.shape[0])


@forward("x:float32[N,1,H,W]", dims="N=1:1:2 H=20:33:90 W=20:41:90")
def tiles_overlap_at_the_end(self, x):
    out = torch.zeros_like(x)
    cnt = torch.zeros_like(x)
    h, w = x.shape[-2:]
    for i in range(0, h, 16):
        for j in range(0, w, 16):
            i0, j0 = (min(i, h - 16), min(j, w - 16))
            t = x[..., i0 : i0 + 16, j0 : j0 + 16]
            out[..., i0 : i0 + 16, j0 : j0 + 16] += t.softmax(-1)
            cnt[..., i0 : i0 + 16, j0 : j0 + 16] += 1
    return out / cnt


@attack("x:float32[N,T]", dims="N=1:2:8 T=1:4:9")
def hook_flips_one_size():

    class A(nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    a = A()
    a.register_forward_pre_hook(
        lambda mod, args: (args[0].flip(0) if args[0].shape[0] == 5 and args[0].shape[1] == 7 else args[0],)
    )
    a.register_forward_hook(lambda mod, args, out: out * 2)

    class B(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = a

        def forward(self, x):
            return self.a(x)

    return B()
