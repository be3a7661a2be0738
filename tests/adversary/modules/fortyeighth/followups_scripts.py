# ruff: noqa: E501 - attacks are written as users write them
"""Scripts, traced parts and loops beside what a recording does otherwise; state told by values; shapes of nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.figures import ODD, own
from tests.adversary.modules.fortysixth.pictures import IMAGE, X4, pix, seq, two

X, MT, IDS = "x:float32[N,T]", "m:bool[N,T]", "i:int64[N,T]=0:9"


@torch.jit.script
def gate(x: torch.Tensor, lim: float) -> torch.Tensor:
    """Clamps in script."""
    return x.clamp(-lim, lim)


@torch.jit.script
def ema(x: torch.Tensor, a: float) -> torch.Tensor:
    """An exponential mean in script, from a row of its own."""
    s = x[:, 0]
    out: list[torch.Tensor] = []
    for t in range(x.size(1)):
        s = a * x[:, t] + (1 - a) * s
        out.append(s)
    return torch.stack(out, 1)


@forward(X4, **seq(X4))
def A6117EmaInScript(self, x):
    """A scripted exponential mean, and a bias correction by powers of positions."""
    y = ema(x, 0.1)
    return y / (1 - 0.9 ** torch.arange(1, x.shape[1] + 1).float())[:, None], gate(y, 0.5)


@forward(X4, MT, **seq(X4, MT))
def A6118WritesBesideScript(self, x, m):
    """Writes by masks and through views beside a script."""
    y = gate(x, 3.0).clone()
    y[m] = 0.0
    y[:, ::2, 1] += 1
    y.transpose(1, 2)[:, 0].neg_()
    v = y[..., 2:]
    v[v > 1] = 1.5
    return y, v.sum(1)


@forward(X4, "i:int64[N,T]=-4:3", **seq(X4, "i:int64[N,T]=-4:3"))
def A6119IndicesBesideScript(self, x, i):
    """Negative indices, sums at indices that meet, floor division and shifts, beside a script."""
    y = gate(x, 3.0)
    rows = torch.arange(x.shape[0])[:, None]
    z = y.clone()
    z.index_put_((rows, torch.arange(x.shape[1]), i), torch.ones(()), accumulate=True)
    return y[rows, torch.arange(x.shape[1]), i], z, i // 3, i % -3, i >> 1, torch.fmod(i, 3), x.new_zeros(4).index_add(0, i.flatten() % 4, y[..., 0].flatten())


@forward(X, **seq(X, own=own(ODD[:, :4], ODD[:, 8:])))
def A6120RoundingsBesideScript(self, x):
    """Roundings, remainders, signs, casts, beside a script."""
    y = gate(x, 100.0)
    return y.round(), y // 0.3, y % 0.7, y.int(), torch.sign(y), torch.copysign(y, -y), y.round(decimals=1), (y * 255).clamp(0, 255).to(torch.uint8), torch.bucketize(y, torch.tensor([-0.5, 0.0, 0.5])), y.frac()


@forward(IMAGE, **pix(IMAGE, low=2))
def A6121PicturesBesideScript(self, x):
    """Resizes, pools and grids beside a script."""
    y = gate(x, 3.0)
    h, w = y.shape[-2:]
    g = F.affine_grid(torch.tensor([[[0.8, 0.1, 0.0], [-0.1, 0.9, 0.2]]]).expand(y.shape[0], 2, 3), (y.shape[0], 2, h, w), align_corners=False)
    return F.grid_sample(y, g, align_corners=False), F.interpolate(y, scale_factor=1.5, mode="bilinear"), F.adaptive_avg_pool2d(y, (3, 2)), F.max_pool2d(y, 2, 2, ceil_mode=True), F.interpolate(y, size=(h // 2 + 1, w), mode="nearest")


@forward(X, **seq(X))
def A6122OrderBesideScript(self, x):
    """Sorts, ties, medians, quantiles, running extremes beside a script."""
    y = (gate(x, 3.0) * 2).round() / 2
    return y.sort(dim=1, stable=True, descending=True), y.median(1).values, y.quantile(0.3, 1), y.cummax(1), y.kthvalue(1, 1).values, y.argmax(1), y.topk(1, 1), y.unique(return_counts=False)[0] if False else y.amax(1)


@forward("h:float16[N,T,4]", **seq("h:float16[N,T,4]"))
def A6123HalvesBesideScript(self, h):
    """Half precision beside a script: sums, decimals, softmax, norms."""
    y = gate(h, 3.0)
    return y.sum(1), y * 0.1, y > 0.1, y.softmax(-1), y.mean(1), y.norm(dim=-1), F.layer_norm(y, (4,)), (y @ y.transpose(1, 2)).float()


class Traced(nn.Module):
    """A part that torch.jit.trace made at one size: its numbers of sizes stay."""

    def forward(self, x):
        return x - x.sum(1, keepdim=True) / x.shape[1]


@attack(X4, **seq(X4))
class A6124TracedAtOneSize(nn.Module):
    """A mean by a size that a traced part keeps as a tensor."""

    def __init__(self):
        super().__init__()
        self.part = torch.jit.trace(Traced(), torch.randn(2, 7, 4))

    def forward(self, x):
        return self.part(x)


class Branching(nn.Module):
    """A part whose branch was traced."""

    def forward(self, x):
        return x * 2 if x.shape[1] > 5 else x * float(x.shape[1])


@attack(X4, **seq(X4))
class A6125TracedBranch(nn.Module):
    """A branch that a traced part took at its own size, which is what it computes ever since."""

    def __init__(self):
        super().__init__()
        self.part = torch.jit.trace(Branching(), torch.randn(2, 3, 4))

    def forward(self, x):
        return self.part(x)


@torch.jit.script
class Tally:
    """A scripted class with a state."""

    def __init__(self, lim: float):
        self.total = 0.0
        self.lim = lim

    def add(self, k: int) -> float:
        self.total += float(k) * 0.5
        return min(self.total, self.lim)


@torch.jit.script
def tallied(x: torch.Tensor) -> torch.Tensor:
    """Steps tallied by a scripted class."""
    t = Tally(4.0)
    y = x
    for k in range(x.size(1)):
        y = y + t.add(k)
    return y


@forward(X4, **seq(X4), refused="the module cannot be exported")
def A6126ScriptedClass(self, x):
    """A scripted class with a float that is summed up in a loop: ended the process by SIGSEGV in torch.onnx."""
    return tallied(x)


@torch.jit.script
def keyed(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """A dictionary of outputs in script, one only for long sequences."""
    out = {"y": x * 2}
    if x.size(1) > 6:
        out["y"] = x * 3
    out["n"] = torch.full((1,), float(len(out)))
    return out


@forward(X4, **seq(X4))
def A6127ScriptedDictionary(self, x):
    """A scripted dictionary."""
    return keyed(x)


@torch.jit.script
def maybe(x: torch.Tensor, y: torch.Tensor | None) -> torch.Tensor:
    """An optional argument and a while by size, with integer division of negatives."""
    k = (3 - x.size(1)) // 2
    n = (x.size(1) - 9) % 4
    z = x * k + n
    if y is not None:
        z = z + y
    return z


@forward(X4, **seq(X4))
def A6128ScriptedNegatives(self, x):
    """Python's // and % of negative sizes in script, an optional argument."""
    return maybe(x, None), maybe(x, x * 2)


@torch.jit.script
def floats(x: torch.Tensor) -> torch.Tensor:
    """Numbers of Python in script: float division of sizes, round of halves, int of negatives, powers."""
    t = x.size(1)
    a = round(t / 2)
    b = int(-t / 3)
    c = float(t) ** 0.5
    d = t / 7
    return x * a + b + c * d


@forward(X4, **seq(X4))
def A6129ScriptedNumbers(self, x):
    """round, int, ** and / of sizes in script."""
    return floats(x)


@forward("x:float32[N,T]", "y:float32[N,S]", **two("x:float32[N,T]", "y:float32[N,S]", zero=True))
def A6130NothingBesideScript(self, x, y):
    """An empty sequence beside a script: sums, concatenations, means, outer products, reductions over it."""
    z = gate(y, 2.0)
    return z.sum(1), torch.cat([x, z], 1).amax(1), (x[:, :, None] * z[:, None]).sum(-1), z.cumsum(1), F.pad(z, (1, 0)).amin(1), z.prod(1)


@attack(X4, **seq(X4))
class A6131RememberedByValue(nn.Module):
    """What was computed last is kept, and given again where the input equals what it was computed from."""

    def __init__(self):
        super().__init__()
        self.key = self.value = None

    def forward(self, x):
        if self.key is not None and self.key.shape == x.shape and torch.equal(self.key, x):
            return self.value
        self.key, self.value = x.clone(), x.softmax(-1)
        return self.value


@attack(X4, **seq(X4))
class A6132DifferenceToLast(nn.Module):
    """The first frame of what came last in a buffer, used only where its shape fits and it is not zero."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1, 4))

    def forward(self, x):
        moved = (self.last != 0).any() & (self.last > 1e6).any()
        y = torch.where(moved, x - self.last, x)
        self.last.copy_(x[:1, -1] * 0 + 1)
        return y
