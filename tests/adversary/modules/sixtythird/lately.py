"""Newer torch: custom operators, flex attention, parametrize, compiled parts, vmap, nested tensors, MoE, LoRA, fake quantisation, meta."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@torch.library.custom_op("r63::swoosh", mutates_args=())
def swoosh(x: torch.Tensor, a: float) -> torch.Tensor:
    return F.softplus(x - a) - 0.08 * x - 0.313


@swoosh.register_fake
def _(x, a):
    return torch.empty_like(x)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE, refused="r63")
class A7691CustomOperator(nn.Module):
    """torch.library.custom_op with a fake, in a feed-forward block."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor):
        return x + self.b(torch.ops.r63.swoosh(self.a(x), 4.0))


class Cholesky(nn.Module):
    def forward(self, w: torch.Tensor) -> torch.Tensor:
        return w.tril(-1) + torch.diag(F.softplus(w.diagonal()))


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7692ParametrizedAndLora(nn.Module):
    """A parametrised triangular weight, LoRA with a scale by rank, weight norm, spectral norm in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.tri = nn.Linear(4, 4)
        parametrize.register_parametrization(self.tri, "weight", Cholesky())
        self.wn = nn.utils.parametrizations.weight_norm(nn.Linear(4, 6))
        self.sn = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4))
        self.la, self.lb = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(6, 2))

    def forward(self, x: torch.Tensor):
        y = self.tri(x)
        z = self.wn(y) + (16 / 2) * F.linear(F.linear(y, self.la), self.lb) * 0.1
        return self.sn(F.gelu(z, approximate="tanh")), self.tri.weight.sum()


@attack("x:float32[N,T,8]", dims="N=1:2:3 T=2:5:9", kinds=("normal", "unit", "halves", "ascending"))
class A7693TopTwoMoeWithCapacity(nn.Module):
    """Top-2 of four experts with a capacity of ceil(tokens/2): positions by cumsum of one-hot, tokens over it dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.w1, self.w2 = nn.Parameter(torch.randn(4, 8, 16) * 0.2), nn.Parameter(torch.randn(4, 16, 8) * 0.2)

    def forward(self, x: torch.Tensor):
        t = x.reshape(-1, 8)
        p = self.gate(t).softmax(-1)
        v, i = p.topk(2)
        v = v / v.sum(-1, keepdim=True)
        cap = math.ceil(t.shape[0] / 2)
        hot = F.one_hot(i, 4).permute(1, 0, 2).reshape(-1, 4)
        place = (hot.cumsum(0) - 1).view(2, -1, 4).permute(1, 0, 2).gather(2, i[..., None]).squeeze(-1)
        v = v * (place < cap)
        h = torch.einsum("td,edf->tef", t, self.w1)
        y = torch.einsum("tef,efd->ted", F.silu(h), self.w2)
        out = (y.gather(1, i[..., None].expand(-1, -1, 8)) * v[..., None]).sum(1)
        return out.view_as(x), (place >= cap).sum(), p.mean(0)


@attack("x:float32[N,T,8]", dims="N=1:1:2 T=2:5:9", kinds=FINITE)
class A7694SlidingAlibiAttention(nn.Module):
    """Scaled dot product attention with grouped heads (enable_gqa), a sliding window bool mask, ALiBi as a float mask, QK norm."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(8, 16), nn.Linear(8, 8)
        self.qn, self.kn = nn.RMSNorm(4), nn.RMSNorm(4)

    def forward(self, x: torch.Tensor):
        n, t, _ = x.shape
        q = self.qn(self.q(x).view(n, t, 4, 4)).transpose(1, 2)
        k, v = self.kv(x).view(n, t, 2, 2, 2).flatten(3).transpose(1, 2).chunk(2, dim=-1)
        k, v = torch.cat([k, k], -1), torch.cat([v, v], -1)
        k, v = F.pad(k, (0, 4 - k.shape[-1])), F.pad(v, (0, 4 - v.shape[-1]))
        d = torch.arange(t)[:, None] - torch.arange(t)[None]
        win = (d >= 0) & (d < 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=win, enable_gqa=True)
        slopes = 2.0 ** -torch.arange(1.0, 5)
        bias = (-slopes[:, None, None] * d.abs()).masked_fill(d < 0, -torch.inf)
        b = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True, scale=0.3)
        return a.transpose(1, 2).flatten(2), b.transpose(1, 2).flatten(2)


@attack("x:float32[N,6,H,W]", dims="N=1:1:2 H=4:6:9 W=4:5:8", kinds=FINITE)
class A7695FakeQuantisedBlock(nn.Module):
    """Per-channel fake quantisation of weights and per-tensor of activations by the torch operators, a straight-through round, a clamp to uint8 ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 6, 3, 3) * 0.2)
        self.register_buffer("s", self.w.detach().abs().amax((1, 2, 3)) / 127)
        self.register_buffer("z", torch.zeros(5, dtype=torch.int32))

    def forward(self, x: torch.Tensor):
        w = torch.fake_quantize_per_channel_affine(self.w, self.s, self.z, 0, -128, 127)
        x = torch.fake_quantize_per_tensor_affine(x, 0.0317, 113, 0, 255)
        y = F.conv2d(x, w, padding=1)
        r = y / 0.0531
        return (r + (torch.floor(r + 0.5003) - r).detach()) * 0.0531, y


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7696CompiledAndVmapped(nn.Module):
    """A compiled part, vmap over time of a function with a norm, a jacobian-free power step, and torch.func.functional_call with scaled weights."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Mish(), nn.Linear(6, 4))
        self.fast = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.Softsign()))

    def forward(self, x: torch.Tensor):
        from torch.func import functional_call, vmap

        p = {k: v * 0.5 for k, v in self.net.named_parameters()}
        y = functional_call(self.net, p, (x,))
        z = vmap(lambda a: a / (1 + a.norm()), in_dims=1, out_dims=1)(x)
        return self.fast(y), z


@attack("x:float32[N,T,4]", "l:int64[N]=1:7", dims="N=2:2:3 T=7:7:7", kinds=FINITE, refused="nested")
class A7697NestedTensors(nn.Module):
    """A nested tensor of ragged sequences through a linear layer, padded back."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, l: torch.Tensor):  # noqa: E741
        n = torch.nested.nested_tensor([x[i, : int(l[i])] for i in range(x.shape[0])])
        return torch.nested.to_padded_tensor(self.f(n), 0.0, output_size=(x.shape[0], 7, 3))


@attack("x:float16[N,T,8]=-8:8", dims="N=1:2:3 T=1:4:7", kinds=("normal", "unit", "halves", "ones"))
class A7698HalfWithWideParts(nn.Module):
    """A block in half precision whose norm and softmax run in float32; a product that overflows only for large inputs is clamped afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8).half()
        self.g = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor):
        h = x.float()
        h = (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5) * self.g).half()
        q = self.q(h)
        s = (q @ h.transpose(1, 2) * 900).clamp(-60000, 60000)
        return s.float().softmax(-1).half() @ h, (x * x).sum(-1)


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7699MetaInitialised(nn.Module):
    """Layers made on the meta device, then to_empty and filled by a generator with a seed; buffers registered afterwards as not persistent."""

    def __init__(self) -> None:
        super().__init__()
        with torch.device("meta"):
            self.gru = nn.GRU(1, 4, batch_first=True, bidirectional=True)
            self.out = nn.Linear(8, 2)
        self.to_empty(device="cpu")
        g = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.randn(p.shape, generator=g) * 0.3)
        self.register_buffer("scale", torch.tensor(1.7), persistent=False)

    def forward(self, x: torch.Tensor):
        y, h = self.gru(x[..., None])
        return self.out(y) * self.scale, h.transpose(0, 1).flatten(1)
