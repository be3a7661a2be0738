"""Code of 2025: einops by hand, custom ops, autograd.Function, compiled, checkpointed and scripted parts, vmap, SDPA, MoE, rotary, caches, packed weights."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@torch.library.custom_op("r64::clip_mean", mutates_args=())
def clip_mean(x: torch.Tensor, lim: float) -> torch.Tensor:
    return x.clamp(-lim, lim).mean(-1)


@clip_mean.register_fake
def _(x, lim):
    return x.new_empty(x.shape[:-1])


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE, refused="r64")
class A7750CustomOpInAnEpilogue(nn.Module):
    def forward(self, x):
        return x - torch.ops.r64.clip_mean(x, 1.5)[..., None]


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        return torch.floor(x * k) / k

    @staticmethod
    def backward(ctx, g):
        return g, None


@torch.jit.script
def scripted_rows(x: torch.Tensor, k: int):
    out = torch.zeros_like(x)
    for i in range(x.size(1)):
        if i % 2 == 0:
            out[:, i] = x[:, i] * k
        else:
            out[:, i] = x[:, i] - out[:, i - 1]
    return out


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:4:7", kinds=FINITE)
class A7751FunctionCheckpointScript(nn.Module):
    """autograd.Function, torch.utils.checkpoint and a scripted loop in a row."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 6), nn.SELU(), nn.Linear(6, 4))

    def forward(self, x):
        y = checkpoint(self.f, x, use_reentrant=False)
        z = StraightThrough.apply(y, 8.0)
        return scripted_rows(z, 3), y


@attack("x:float32[N,T,8]", dims="N=1:1:3 T=1:4:9", kinds=FINITE)
class A7752GqaCausalScale(nn.Module):
    """SDPA with is_causal, enable_gqa, a scale; a ring of rotary tables by length with NTK beyond six."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 4 * 4 + 2 * 2 * 4)

    def tables(self, t):
        base = 10000.0 if t <= 6 else 10000.0 * ((4 * t / 6) - 3) ** (4 / 2)
        inv = base ** (-torch.arange(0, 4, 2).float() / 4)
        f = torch.outer(torch.arange(t).float(), inv)
        return torch.cat([f, f], -1).cos(), torch.cat([f, f], -1).sin()

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).split([16, 8, 8], -1)
        q, k, v = (a.view(n, t, -1, 4).transpose(1, 2) for a in (q, k, v))
        c, s = self.tables(t)
        rot = lambda a: a * c + torch.cat([-a[..., 2:], a[..., :2]], -1) * s  # noqa: E731
        y = F.scaled_dot_product_attention(rot(q), rot(k), v, is_causal=True, enable_gqa=True, scale=0.37)
        return y.transpose(1, 2).reshape(n, t, 16)


@attack("x:float32[N,T,8]", dims="N=1:2:3 T=1:5:9", kinds=("normal", "unit", "halves", "ascending"))
class A7753MoeIndexAdd(nn.Module):
    """MoE as HF writes it: top-2, one_hot, torch.where per expert, index_add_ of weighted outputs; a shared expert with a sigmoid gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 6), nn.SiLU(), nn.Linear(6, 8)) for _ in range(4))
        self.shared, self.sg = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        n, t, c = x.shape
        h = x.view(-1, c)
        w, idx = self.gate(h).float().softmax(1).topk(2, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(h)
        mask = F.one_hot(idx, 4).permute(2, 1, 0)
        for e, net in enumerate(self.experts):
            k, top = torch.where(mask[e])
            out.index_add_(0, top, net(h[top]) * w[top, k, None])
        return (out + torch.sigmoid(self.sg(h)) * self.shared(h)).view(n, t, c), idx


@attack("x:float32[N,T,8]", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7754PackedFourBitWeights(nn.Module):
    """uint8 weights unpacked by shifts and masks, zero points in packed int32, group scales in half, RMSNorm in float32."""

    def __init__(self) -> None:
        super().__init__()
        g = torch.Generator().manual_seed(5)
        self.register_buffer("w", torch.randint(0, 256, (6, 4), dtype=torch.uint8, generator=g))
        self.register_buffer("z", torch.tensor([0x76543218, -0x12345678], dtype=torch.int32))
        self.register_buffer("s", (torch.rand(6, 2, generator=g) * 0.1).half())
        self.g = nn.Parameter(torch.ones(8).half())

    def forward(self, x):
        x = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * self.g.float()
        w = torch.stack([self.w & 0xF, self.w >> 4], -1).flatten(1).to(torch.int32)
        z = (self.z[:, None] >> (torch.arange(8) * 4)) & 0xF
        z = z.flatten()[:12].view(6, 2)
        w = (w.view(6, 2, 4) - z[..., None]).float() * self.s.float()[..., None]
        return x @ w.flatten(1).T


class Out(TypedDict):
    logits: torch.Tensor
    pair: tuple


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


@dataclass
class Result:
    y: torch.Tensor
    extra: list
    n: int = 3


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7755OutputsOfAllKinds(nn.Module):
    """A TypedDict of a NamedTuple of tensors, keyword-only arguments with defaults, an unpacked **kwargs."""

    def head(self, *, x, scale=2.0, **more):
        return x * scale + more.get("shift", 0)

    def forward(self, x, /) -> Out:
        return Out(logits=self.head(x=x, shift=x.shape[1]), pair=Pair(x.mean(1), x.argmax(1)))


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="not a tensor")
class A7756DataclassOutput(nn.Module):
    """A plain dataclass with a list and a number is the output."""

    def forward(self, x):
        return Result(x * 2, [x.sum(1), x.amax(1)])


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7757KeywordOnlyForward(nn.Module):
    """forward takes its input as a keyword only."""

    def forward(self, *, x):
        return x.softmax(1) * x.shape[0]


@attack("x:float32[N,S,4]", "pos:int64[]=0:4", "k:float32[N,8,4]", "v:float32[N,8,4]", dims="N=1:1:2 S=1:2:4", kinds=FINITE)
class A7758StaticKvCacheIndexCopy(nn.Module):
    """A static cache of eight, written at pos by index_copy; keys after pos + S masked; the cache out."""

    def forward(self, x, pos, k, v):
        s = x.shape[1]
        at = pos + torch.arange(s)
        k, v = k.index_copy(1, at, x), v.index_copy(1, at, x * 2)
        mask = torch.arange(8)[None] <= at[:, None]
        return F.scaled_dot_product_attention(x, k, v, attn_mask=mask), k, v


@attack("x:float32[N,T,6]", dims="N=1:2:3 T=4:6:10", kinds=FINITE)
class A7759LinearAttentionChunks(nn.Module):
    """A gated delta rule over chunks of four: the tail is padded, a triangular solve by a loop, a state from chunk to chunk."""

    def forward(self, x):
        n, t, c = x.shape
        pad = -t % 4
        y = F.pad(x, (0, 0, 0, pad)).view(n, -1, 4, c)
        k = F.normalize(y[..., :3], dim=-1)
        v = y[..., 3:]
        att = -(k @ k.mT).tril(-1)
        for i in range(1, 4):
            att[..., i, :i] = att[..., i, :i] + (att[..., i, :i, None] * att[..., :i, :i]).sum(-2)
        att = att + torch.eye(4)
        u, w = att @ v, att @ k
        state = torch.zeros(n, 3, 3)
        out = []
        for j in range(y.shape[1]):
            d = u[:, j] - w[:, j] @ state
            out.append(k[:, j] @ state + (k[:, j] @ k[:, j].mT).tril() @ d)
            state = state * 0.9 + k[:, j].mT @ d
        return torch.cat(out, 1)[:, :t], state


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="gets other data")
class A7760LoraMergedTwice(nn.Module):
    """LoRA merged by a context manager around the call and unmerged afterwards, DoRA's magnitude, a no-op when merged."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Linear(4, 5)
        self.a, self.b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(5, 2))
        self.m = nn.Parameter(torch.rand(5) + 0.5)
        self.merged = False

    def forward(self, x):
        old = self.f.weight.data
        w = old + 0.5 * self.b.data @ self.a.data
        self.f.weight.data = self.m.data[:, None] * w / w.norm(dim=1, keepdim=True)
        y = self.f(x)
        self.f.weight.data = old
        return y, self.f(x)


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="cannot be exported")
class A7761VmapGradHessian(nn.Module):
    """vmap with in_dims on both axes, chunk_size, torch.func.grad of a potential gives forces."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        def energy(p):
            return (torch.tanh(p @ self.w) ** 2).sum()

        f = torch.func.vmap(torch.func.vmap(torch.func.grad(energy)))(x)
        g = torch.func.vmap(lambda a, b: (a * b).sum(), in_dims=(1, 1), out_dims=0)(x, f)
        return -f, g


@attack("x:float32[N,T,12]", dims="N=1:2:3 T=6:12:18%6", kinds=FINITE)
class A7762EinopsByHand(nn.Module):
    """Patterns parsed by hand: a string of axes becomes reshape and permute, sizes divided by Python."""

    def rearrange(self, x, left, right, **sizes):
        axes, shape = [], []
        for group, size in zip(left.split(), x.shape, strict=True):
            names = group.strip("()").split(".")
            unknown = [a for a in names if a not in sizes]
            rest = size // math.prod(sizes[a] for a in names if a in sizes)
            for a in names:
                axes.append(a)
                shape.append(rest if a in unknown else sizes[a])
                sizes.setdefault(a, rest)
        x = x.reshape(shape).permute([axes.index(a) for g in right.split() for a in g.strip("()").split(".")])
        return x.reshape([math.prod(sizes[a] for a in g.strip("()").split(".")) for g in right.split()])

    def forward(self, x):
        y = self.rearrange(x, "n (t.p) (h.c)", "(n.h) t (c.p)", p=3, h=4)
        z = self.rearrange(y, "b (t.q) c", "b (q.t) c", q=2)
        return y.softmax(1), z


@attack("q:float32[N,2,T,4]", "d:int64[N,T]=0:3", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A7763FlexLikeDocumentMask(nn.Module):
    """mask_mod and score_mod composed of functions (causal and document and sliding or prefix), vmapped over indices, soft capping."""

    def forward(self, q, d):
        t = q.shape[2]
        i, j = torch.arange(t)[:, None], torch.arange(t)[None]
        mods = [lambda b, i, j: i >= j, lambda b, i, j: (i - j < 4) | (j < 1), lambda b, i, j: d[b][i] == d[b][j]]
        masks = torch.stack([torch.stack([m(b, i, j) for m in mods]).all(0) for b in range(q.shape[0])])
        s = torch.tanh((q @ q.mT) * 0.5 / 20) * 20 - (i - j).abs() * 0.1
        return s.masked_fill(~masks[:, None], -torch.inf).softmax(-1) @ q
