# ruff: noqa: E501, E731, B008, B023, RUF005, RUF059 - attacks are written as users write them
"""State, aliases, containers and what torch itself is asked: contexts, decorators, weights of weights, outputs that share memory."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import time
from collections import ChainMap, defaultdict
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.values import values_at

FEW = ("normal", "halves", "zeros", "ones")
X4, IMAGE, MT = "x:float32[N,T,4]", "x:float32[N,2,H,W]", "m:bool[N,T]"
LENGTHS = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40)


def seq(*more: str, low: int = 1, **other: object) -> dict:
    """Sequences, judged at lengths where something turns."""
    feeds = tuple(values_at(X4, *more, N=1 + t % 3, T=t) for t in LENGTHS if t >= low)
    return {"dims": f"N=1:2:3 T={low}:9:40", "kinds": FEW, "feeds": feeds, **other}


@attack(X4, **seq(), refused="the module cannot be exported")
class A5051AutocastByLength(nn.Module):
    """Autocast that is enabled for what is long alone."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=x.shape[1] > 16):
            y = self.lin(x)
        return y.float()
@attack(X4, MT, **seq(MT))
class A5052BatchByKeywords(nn.Module):
    """Takes a batch by names, drops one and looks another up by the end of its name."""
    def forward(self, **batch):
        mask = batch.pop("m")
        x = next(v for k, v in batch.items() if k.endswith("x"))
        return {"pooled": (x * mask[..., None]).sum(1), **{f"{k}_max": v.amax(1) for k, v in batch.items()}}
@attack(X4, MT, **seq(MT))
class A5053KeywordOnly(nn.Module):
    """Inputs that are keyword only, in another order than they come."""
    def forward(self, *, m, x):
        return x.masked_fill(m[..., None], 0.0)
@attack(X4, **seq())
class A5054ProfiledBlocks(nn.Module):
    """record_function, the choice of an attention kernel, flags of backends, a logger, a clock whose times are kept."""
    def __init__(self):
        super().__init__()
        self.times = []
    def forward(self, x):
        start = time.perf_counter()
        with torch.profiler.record_function("attend"), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            y = F.scaled_dot_product_attention(x, x, x)
        logging.getLogger(__name__).debug("attended to %s", tuple(x.shape))
        self.times.append(time.perf_counter() - start)
        return y
@attack(X4, **seq())
class A5055CompilerDisabled(nn.Module):
    """A helper that torch.compile shall leave alone, one that jit shall, a branch for scripting."""
    @torch.compiler.disable
    def scale(self, x):
        return x / x.shape[1]
    @torch.jit.unused
    def shift(self, x):
        return x + 1
    def forward(self, x):
        if torch.jit.is_scripting():
            return x
        return self.shift(self.scale(x))
@attack("x:float32[N,2,H,W]", dims="N=1:1:2 H=1:8:12 W=1:9:12", kinds=FEW, feeds=tuple(values_at(IMAGE, N=1, H=h, W=w) for h, w in ((1, 1), (1, 12), (12, 1), (2, 2))))
class A5056StandardisedWeights(nn.Module):
    """timm's StdConv2d: a batch norm in training mode over its own weight."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
    def forward(self, x):
        w = self.conv.weight
        s = F.batch_norm(w.reshape(1, 3, -1), None, None, weight=torch.full((3,), 0.3), training=True, momentum=0.0, eps=1e-6).reshape_as(w)
        return F.conv2d(x, s, self.conv.bias, padding=1)
@attack(X4, **seq())
class A5057WeightsFromAVector(nn.Module):
    """A hypernetwork: one vector is cut into the weights of a layer for each example."""
    def __init__(self):
        super().__init__()
        self.base, self.hyper = nn.Linear(4, 3), nn.Linear(4, 15)
    def forward(self, x):
        delta = self.hyper(x.mean(1))
        flat = torch.nn.utils.parameters_to_vector(self.base.parameters()) + 0.1 * delta
        w, b = flat[:, :12].view(-1, 3, 4), flat[:, 12:]
        return torch.baddbmm(b[:, None], x, w.mT)
@attack(X4, **seq(), refused="the path through the module depends on the size")
class A5058GeneratorThatIsSentTo(nn.Module):
    """A coroutine that smooths: it is sent the frames that count and gives back its state."""
    def smooth(self, state):
        while True:
            x = yield state
            if x is None:
                return
            state = 0.75 * state + 0.25 * x
    def forward(self, x):
        run = self.smooth(x[:, 0])
        next(run)
        out = [run.send(f) for f in x.unbind(1)[::4]]
        return out[-1], sum(out)
@attack(X4, **seq())
class A5059CountsTheFlops(nn.Module):
    """The body is run within FlopCounterMode, whose counts are kept and not used."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as mode:
            y = self.lin(x)
        self.flops = mode.get_total_flops()
        return y
@forward(X4, **seq())
def A5060FallsBackWithoutAPackage(self, x):
    """A fused kernel where its package is there, plain torch elsewhere; imports within forward."""
    if importlib.util.find_spec("flash_attn_that_is_not_there") is not None:
        return x
    try:
        from xformers_that_is_not_there import ops
    except ImportError:
        ops = None
    return ops.attention(x, x, x) if ops else (x @ x.mT / 2).softmax(-1) @ x
@attack(X4, **seq())
class A5061OperatorsByName(nn.Module):
    """torch.ops.aten called by itself: norms with their statistics, softmax to a type, linear without a module."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))
    def forward(self, x):
        y, mean, rstd = torch.ops.aten.native_layer_norm(x, [4], None, None, 1e-5)
        return y, mean, rstd, torch.ops.aten._softmax.default(x, -1, False), torch.ops.aten.addmm.default(self.w[0], x[:, 0], self.w)
@attack(X4, **seq())
class A5062LayerOfDoubles(nn.Module):
    """A layer whose weights are FP64 among others of FP32; what comes out is cast back, and once is not."""
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4).double()
    def forward(self, x):
        y = self.b(self.a(x).double())
        return y.to(x), (y * 1e-3 + x)
class A45Frames(NamedTuple):
    """Frames with their count."""
    data: torch.Tensor
    count: int
    def cut(self, n):
        return self._replace(data=self.data[:, :n], count=min(n, self.count))
@dataclass(frozen=True)
class A45Config:
    """What a stage is made by."""
    stride: int = 2
    names: tuple = ("a", "b")
    extra: dict = field(default_factory=dict)
@attack(X4, **seq())
class A5063StagesByReplacedConfigs(nn.Module):
    """Frozen configs replaced stage by stage, named tuples cut, a ChainMap of options and a defaultdict of lists."""
    def forward(self, x):
        config, taken = A45Config(), defaultdict(list)
        frames = A45Frames(x, x.shape[1])
        for name in config.names:
            options = ChainMap({"scale": config.stride}, config.extra, {"scale": 9, "bias": 0.5})
            frames = frames.cut(max(1, frames.count // config.stride))
            taken[name].append(frames.data * options["scale"] + options["bias"])
            config = replace(config, stride=config.stride + 1, extra={"bias": 1.0})
        return taken["a"][-1], SimpleNamespace(**taken).b[0].sum(1)
@attack(X4, **seq())
class A5064ViewOfAnOutputIsWritten(nn.Module):
    """A block returns its input and a view of it; the caller adds to the view and hands out both."""
    def block(self, x):
        y = x * 2
        return y, y[:, ::2], y.view(x.shape[0], -1)
    def forward(self, x):
        y, half, flat = self.block(x)
        half += 1
        flat[:, -1] = 0
        half.mul_(y[:, ::2])
        return y, half, flat
@attack(X4, **seq())
class A5065ChunksAreViews(nn.Module):
    """Query, key and value are chunks of one tensor; the query is scaled in place, the key clamped through its transpose."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)
    def forward(self, x):
        y = self.qkv(x)
        q, k, v = y.chunk(3, -1)
        q *= 0.5
        k.mT.clamp_(-0.5, 0.5)
        torch.sigmoid_(v[..., 1:3])
        return y, (q @ k.mT).softmax(-1) @ v
@attack(X4, **seq(low=2))
class A5066ShiftsInPlace(nn.Module):
    """TSM: a part of the channels comes from the next frame, one from the last, written into a copy and into the thing itself."""
    def forward(self, x):
        out = torch.zeros_like(x)
        out[:, :-1, :1] = x[:, 1:, :1]
        out[:, 1:, 1:2] = x[:, :-1, 1:2]
        out[:, :, 2:] = x[:, :, 2:]
        y = x.clone()
        y[:, :-1] = y[:, 1:].clone()
        y[:, 1:, 3] -= y[:, :-1, 3].clone()
        return out, y
@attack(X4, **seq())
class A5067TensorsAsKeywordDefaults(nn.Module):
    """A default that is a tensor, a lambda that keeps the last of a loop, a partial with a keyword overridden."""
    def forward(self, x):
        def scaled(v, s=torch.tensor([1.0, 2.0, 3.0, 4.0]), *, p=1):
            return v * s**p
        steps = [lambda v: v + i for i in range(3)]
        steps += [functools.partial(scaled, p=2), functools.partial(scaled, p=3)]
        return functools.reduce(lambda v, f: f(v), steps, x), steps[3](x, p=x.shape[1] % 2)
@attack(X4, **seq())
class A5068MaskGrownAndKept(nn.Module):
    """A causal mask kept without being saved, rebuilt when it is too small, cut to the length."""
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", None, persistent=False)
    def causal(self, t):
        if self.mask is None or self.mask.shape[0] < t:
            self.register_buffer("mask", torch.full((t, t), -torch.inf).triu(1), persistent=False)
        return self.mask[:t, :t]
    def forward(self, x):
        return (x @ x.mT + self.causal(x.shape[1])).softmax(-1) @ x
@attack(X4, **seq(), refused="the path through the module depends on the size")
class A5069JvpOfAHead(nn.Module):
    """The change of a head along a direction by torch.func.jvp, and vmap by chunks of four."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
    def forward(self, x):
        f = lambda v: torch.tanh(self.lin(v)).square().sum(-1)
        y, d = torch.func.jvp(f, (x,), (x.flip(1),))
        return y, d, torch.vmap(lambda v: v.softmax(0), in_dims=1, out_dims=1, chunk_size=4)(x)
@attack(X4, **seq())
class A5070CheckpointedSequential(nn.Module):
    """checkpoint_sequential in two segments, with what it saves packed by hooks, under no_grad and inference mode."""
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = torch.utils.checkpoint.checkpoint_sequential(self.net, 2, x, use_reentrant=False)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            return y + self.net[0](x)
@attack(X4, **seq())
class A5071ExpertsOfOneShape(nn.Module):
    """Experts in a ParameterList and a dictionary, chosen by rank of the gate, weighed where rows agree, none for the rest."""
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList([torch.randn(4, 4) * 0.3 for _ in range(3)])
        self.b = nn.ParameterDict({"low": torch.randn(4), "high": torch.randn(4)})
    def forward(self, x):
        gate = x[..., :3].softmax(-1)
        top, place = gate.topk(2, -1)
        out = torch.zeros_like(x)
        for k, w in enumerate(self.w):
            weight = torch.where(place == k, top, 0.0).sum(-1, keepdim=True)
            out = out + weight * (x @ w + (self.b["low"] if k == 0 else self.b.high))
        return out, F.one_hot(place, 3).sum(2).float().mean(1) * gate.mean(1)
@attack(X4, **seq())
class A5072NewTensorsLikeOthers(nn.Module):
    """empty_like that is filled, new_tensor of a list, new_full of another type, zeros of a shape with a part of it, ones of a type that is asked."""
    def forward(self, x):
        n, t, c = x.shape
        a = torch.empty_like(x[..., :2], dtype=torch.float64).fill_(0.1)
        b = x.new_tensor([[0.1, 0.2], [0.3, 0.4]])
        s = torch.zeros(x.shape[:-1] + (2,), dtype=x.dtype)
        s[:, :: 2] = 1
        o = torch.ones((), dtype=torch.promote_types(x.dtype, torch.int64)).expand(n, t, 2)
        return a + x[..., :2], (x[..., :2] @ b) * s, o * x.new_full((n, 1, 1), t, dtype=torch.int32)
@attack(X4, **seq())
class A5073SlicesOfSlicesAreWritten(nn.Module):
    """A canvas is written by a slice of a transpose of a slice, then read by a fold; where the sequence is short, slices are empty."""
    def forward(self, x):
        n, t, c = x.shape
        canvas = x.new_zeros(n, t + 4, c)
        canvas[:, 2:-2].mT[:, 1:3] = x.mT[:, :2]
        canvas[:, 4:][:, : t // 2][..., 0] += 1
        canvas[:, 8:16] = -1
        canvas[:, -1:].copy_(x[:, :1])
        return canvas, canvas.flip(1)[:, 1:-1].sum(1)
@attack(X4, **seq())
class A5074LossesBesideLogits(nn.Module):
    """In eval a dictionary with None for the loss, logits as a tuple of layers, the hidden states only of every second layer."""
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
    def forward(self, x, labels=None, output_hidden_states=True):
        states = () if output_hidden_states else None
        for i, layer in enumerate(self.layers):
            if output_hidden_states and i % 2 == 0:
                states += (x,)
            x = layer(x).relu_() if i < 3 else layer(x)
        loss = F.cross_entropy(x.mT, labels) if labels is not None else None
        return {"loss": loss, "logits": x, "hidden_states": states}
@attack(X4, **seq())
class A5075ReluWritesWhatIsSaved(nn.Module):
    """A residual whose branch begins with an in-place activation: the shortcut is the activated one; hard ones at their bends."""
    def __init__(self):
        super().__init__()
        self.act, self.six, self.lin = nn.LeakyReLU(0.1, inplace=True), nn.Hardswish(inplace=True), nn.Linear(4, 4)
    def forward(self, x):
        y = x * 3
        branch = self.lin(self.act(y))
        z = y + branch
        w = self.six(z.view(-1))
        return z, w, F.threshold_(y[:, :1], 0.5, -1.0), y
