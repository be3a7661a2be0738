"""Indexing, writes that cast, layers that are seldom used."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,5]", "N=1:3:6"
SIX = "x:float32[N,6]"
CUBE, DIMS = "x:float32[N,H,W]", "N=1:2:4 H=3:4:7 W=3:5:8"


@forward(CUBE, dims=DIMS)
def separated_indices(self, x):
    i, j = torch.tensor([0, 2]), torch.tensor([[1], [0]])
    y = torch.stack((x, -x, x + 1), 1)
    return y[:, i, :, j], y[:, i, j], y[..., None, [True, False, True], :, :][:, 0], x[True], y[:, 1, ..., i]


@forward(CUBE, "i:int64[N]=-3:2", dims=DIMS, refused="the path through the module")
def tensors_and_slices(self, x, i):
    n = torch.arange(x.shape[0])
    y = x.clone()
    y[n, i] *= 2
    y[n, :, i] = y[n, i, 0][:, None]
    y[..., 1:][:, ::2] += 10
    return y, x[n, i, i], x[i[0]] if x.shape[0] > 3 else x[0]


@forward(X, dims=N)
def written_with_casts(self, x):
    whole = torch.zeros(x.shape, dtype=torch.int64)
    whole[:] = x * 3
    flags = torch.zeros(x.shape, dtype=torch.bool)
    flags.copy_(x.round())
    half = torch.zeros(x.shape, dtype=torch.float16)
    half[:, 1:] = x[:, 1:] * 1000
    small = torch.empty_like(x, dtype=torch.int16).copy_(x * 100)
    return whole, flags, half.float(), small


@forward(X, dims=N, refused="aten.view")
def bits_of_floats(self, x):
    """The fast inverse square root, and a sign by its bit."""
    y = x.abs() + 0.01
    i = 0x5F3759DF - (y.view(torch.int32) >> 1)
    z = i.view(torch.float32)
    return z * (1.5 - 0.5 * y * z * z), x.view(torch.int32) < 0


@forward(X, dims=N)
def joined_types(self, x):
    i = torch.arange(5)[None].expand_as(x)
    return torch.cat((i, x), 1), torch.stack((i > 2, x > 0)).sum(0), torch.hstack((x, i.int())), torch.cat((i, x > 0))


@forward(X, dims=N)
def logic_of_numbers(self, x):
    y = x.round()
    return (
        torch.logical_xor(y, x > 1),
        y.any(1),
        y.all(0),
        torch.isin(y.long(), torch.tensor([-1, 2])),
        torch.isclose(x, y, atol=0.1),
        torch.count_nonzero(y, 1),
        y.bool() & ~(x > 0.5),
    )


@forward(X, dims=N)
def bounds_by_tensors(self, x):
    low = torch.tensor([0.0, 1.0, -1.0, torch.nan, 0.5])
    return (
        x.clamp(low[:3].amax(), 0.2),
        torch.clamp(x, min=low.nan_to_num(), max=x.flip(1)),
        x[:, :3].clamp_max(low[:3]),
    )


@forward(X, dims=N)
def sums_of_given_types(self, x):
    i = (x * 1000).to(torch.int32)
    return (
        i.sum(1),
        i.sum(1, dtype=torch.int32),
        (x > 0).sum(1),
        (x > 0).cumsum(1),
        i.prod(1),
        (x > 0).float().mean(dtype=torch.float64).float(),
    )


@forward(X, dims=N)
def quantiles_by_name(self, x):
    return (
        x.quantile(0.5, 1),
        x.quantile(0.3, 1, interpolation="lower"),
        x.quantile(0.62, 1, interpolation="higher"),
        x.quantile(torch.tensor([0.25, 1.0]), 1, interpolation="midpoint"),
    )


@forward(X, "edges:float32[4]=-2:2", dims=N)
def bins_with_edges(self, x, edges):
    e = edges.sort().values
    return (
        torch.bucketize(x, e),
        torch.bucketize(x, e, right=True),
        torch.searchsorted(e, x, side="right", out_int32=True),
    )


@forward(
    "x:float32[N,30]", "y:float32[M,30]", dims="N=1:3:6 M=1:26:30", kinds=("normal", "unit", "tiny", "halves", "large")
)
def distances_of_near(self, x, y):
    """Over 25 rows torch computes distances from products; equal rows are 0, or nearly."""
    return torch.cdist(x, y).clamp(min=0.1), F.cosine_similarity(x[:, None], y[None], dim=-1)


@forward(X, dims=N)
def far_from_zero(self, x):
    y = x + 4096.0
    return (
        F.layer_norm(y, (5,)),
        y.std(1),
        y.var(1, correction=0),
        F.normalize(x * 1e-20, dim=1),
        (y - y.mean()).square().sum(),
    )


@attack(CUBE, dims=DIMS)
class StatisticsOfBatch(nn.Module):
    """Norms without running statistics normalise over the batch in eval mode too."""

    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm2d(2, track_running_stats=False)
        self.b = nn.InstanceNorm2d(2, affine=True, track_running_stats=True)
        self.b.running_mean.fill_(0.5)

    def forward(self, x):
        y = torch.stack((x, x * 2 + 1), 1)
        return self.a(y), self.b(y)


@attack("x:float32[N,H,8]", "memory:float32[N,W,8]", "pad:bool[N,W]", dims=DIMS)
class DecoderLayer(nn.Module):
    """Causal by flag, the memory's padding in an ignoring mask of booleans; a row may be all padding."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")

    def forward(self, x, memory, pad):
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        keep = pad & ~pad.all(1, keepdim=True)
        return self.layer(x, memory, causal, memory_key_padding_mask=keep, tgt_is_causal=True)


@forward(X, dims=N)
def loops_over_columns(self, x):
    out = x.new_empty(x.shape)
    state = torch.zeros(x.shape[0])
    for i, column in enumerate(x.T):
        state = 0.5 * state + column if i else column.clone()
        out[:, i] = state
    return out


@forward(X, dims=N, refused="on the same inputs")
def fractional_pool_is_random(self, x):
    return F.fractional_max_pool2d(x[:, None, None].expand(-1, 1, 5, 5), 2, output_ratio=(0.6, 0.6))


@attack(X, "y:float32[N,4]", dims=N)
class SeldomUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair, self.slope, self.cut = nn.Bilinear(5, 4, 3), nn.PReLU(5, 0.3), nn.Threshold(0.1, -7.0)
        self.head = nn.AdaptiveLogSoftmaxWithLoss(5, 12, cutoffs=[3, 8])

    def forward(self, x, y):
        return self.pair(x, y), self.slope(x), self.cut(x), self.head.log_prob(x), F.glu(y), F.tanhshrink(x)


@forward("x:float32[N,4,H,W]", dims=DIMS)
def channel_tricks(self, x):
    return (
        F.channel_shuffle(x, 2),
        x.unflatten(1, (2, 2)).movedim(1, -1).flatten(-2),
        x.mean((-2, -1)).softmax(1).argsort(dim=1, stable=True),
        F.local_response_norm(x, 3),
        F.softmax(x.flatten(2), -1).view_as(x).amax((2, 3)),
    )


@forward("x:float32[N,3,H,W]", "turn:float32[N,2,3]=-1:1", dims=DIMS)
def moved_images(self, x, turn):
    eye = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]])
    exact = F.affine_grid(eye.expand(x.shape[0], 2, 3), x.shape, align_corners=False)
    grid = F.affine_grid(turn, (x.shape[0], 3, 4, 5), align_corners=True)
    return (
        F.grid_sample(x, exact, mode="nearest", align_corners=False),
        F.grid_sample(x, grid, padding_mode="reflection", align_corners=True),
        F.grid_sample(x, exact.flip(1), padding_mode="border", align_corners=False),
    )


@forward(SIX, dims=N, refused="differs from the module")
def writes_through_views(self, x):
    y = x.clone()
    left, right = y.view(-1, 2, 3).unbind(1)
    left.sub_(right)
    right.T[1].copy_(left[:, 0])
    y.view(-1)[1::4] *= -1
    y[:, [0, 5]] = y[:, [5, 0]]
    return y, left, right


@forward(SIX, dims=N)
def reshaped_copy_or_view(self, x):
    """reshape is a view of a contiguous tensor and a copy of another: what is written is seen, or not."""
    y = x.clone()
    flat = y.reshape(-1)
    flat += 1
    turned = y.t().reshape(-1)
    turned += 100
    wide = y.expand(2, *y.shape).reshape(-1)
    wide *= 0
    kept = y.contiguous()
    kept[0] = 7
    return y, flat[:3], turned[:3], wide[:2]


@forward(SIX, dims=N)
def own_result_written(self, x):
    total = x[:, 0]
    outputs = []
    for i in range(1, 6):
        total += x[:, i]
        outputs.append(total)
    return tuple(outputs)


@forward(SIX, "where:int64[N]=0:5", dims=N)
def swapped_elements(self, x, where):
    y = x.clone()
    rows = torch.arange(x.shape[0])
    y[rows, where], y[rows, 0] = y[rows, 0], y[rows, where]
    y[rows, where] += 1
    return y
