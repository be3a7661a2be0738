"""What is seldom used: losses in forward, bags of embeddings, integer reductions, betas of zero, edges of activations, packed and projected recurrences."""
# ruff: noqa: E501, RUF059 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE


@forward("x:float32[N,4]=-3:3", "y:float32[N,4]=-3:3", "t:int64[N]=0:3", dims="N=1:2:5", kinds=FINITE, refused="huber_loss")
def A7477Losses(self, x, y, t):
    """cross entropy with smoothing and weights and ignored, with probabilities; huber, smooth l1 of beta 0, kl_div with log targets, gaussian nll, poisson nll, margin losses, cosine embedding, bce with pos_weight."""
    w = torch.tensor([1.0, 0.5, 2.0, 0.1])
    a = F.cross_entropy(x, t, weight=w, label_smoothing=0.2, ignore_index=3, reduction="none")
    b = F.cross_entropy(x, y.softmax(-1), label_smoothing=0.1)
    c = F.huber_loss(x, y, delta=0.5) + F.smooth_l1_loss(x, y, beta=0.0)
    d = F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, reduction="batchmean")
    e = F.gaussian_nll_loss(x, y, y.abs() * 0.1, full=True, eps=1e-3) + F.poisson_nll_loss(x, y.abs(), full=False)
    f = F.multi_margin_loss(x, t, p=2, margin=0.5) + F.soft_margin_loss(x, y.sign())
    g = F.cosine_embedding_loss(x, y, (t % 2) * 2 - 1, margin=0.1, reduction="none")
    h = F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=w)
    return a, b, c, d, e, f, g, h, F.triplet_margin_loss(x, y, x.flip(1), swap=True, reduction="none"), F.pairwise_distance(x, y, p=3.0)


@attack("i:int64[N,T]=0:5", "w:float32[N,T]=-2:2", dims="N=1:2:4 T=1:3:6", kinds=FINITE)
class A7478Bags(nn.Module):
    """embedding_bag by rows in all modes with weights and a padding index, by constant offsets with an empty bag, an embedding with max_norm, one_hot of sums, index_fill, index_copy."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.e = nn.Parameter(torch.randn(6, 3))
        self.m = nn.Embedding(6, 3, max_norm=0.5, padding_idx=1)

    def forward(self, i, w):
        a = F.embedding_bag(i, self.e, mode="sum", per_sample_weights=w)
        b = F.embedding_bag(i, self.e, mode="mean", padding_idx=2)
        c = F.embedding_bag(i, self.e, mode="max")
        d = F.one_hot((i[:, 0] + i[:, -1]) % 4, 4).cumsum(-1)
        f = w.index_fill(1, torch.tensor([0]), 7.0)
        g = w.index_copy(0, torch.tensor([0]), w[-1:] * 2)
        return a, b, c, d, f, g, self.m(i)


@forward("x:int32[N,T]=-70000:70000", "b:bool[N,T]", "u:uint8[N,T]=0:255", dims="N=1:2:4 T=1:3:6", kinds=FINITE)
def A7479IntegerReductions(self, x, b, u):
    """Sums of int32 that become int64, with dtype=int32 that wrap, prod of uint8, cumsum and cumprod of bytes and booleans, any and all of ints, amax of bool, aminmax, mean of dtype, var-free, norms of casts, count_nonzero, argmax of bool, int pow."""
    a = x.sum(-1), (x * 40000).sum(-1, dtype=torch.int32), u.prod(-1), u.cumsum(-1), b.cumprod(-1), b.sum(-1)
    c = x.any(-1), u.all(-1), b.amax(-1), torch.aminmax(x, dim=-1)[0], x.mean(-1, dtype=torch.float32), torch.count_nonzero(u, -1)
    d = b.int().argmax(-1), x.long() ** 3, u**2, (x % 7) ** (u % 4).int(), x.clamp(-5.5, 9), torch.where(b, u, x), x * b + u
    return *a, *c, *d


@forward("x:float32[N,T]=-3:3", "w:float32[T,T]=-2:2", dims="N=1:2:4 T=1:3:6", kinds=(*FINITE, "plus-infinity"))
def A7480BetasAndEdges(self, x, w):
    """addmm with beta 0 and alpha, baddbmm, addr, hard and soft shrink at their bounds, celu of negative alpha, threshold, hardsigmoid, rrelu in eval, softmin, local response norm, normalize at zeros, cosine similarity of zeros, clamp with swapped bounds."""
    n = x.shape[0]
    a = torch.addmm(torch.full((n, 1), 3.0), x.clamp(-5, 5), w, beta=0.5, alpha=2.0) + torch.addmv(x[:, 0], x.clamp(-5, 5), w[0], beta=0.0)[:, None].clamp(-1e4, 1e4)
    r = (x * 2).round() / 2
    b = F.hardshrink(r, 0.5) + F.softshrink(r, 0.5) + F.threshold(r, 0.5, -2.0) + F.relu6(r * 4)
    c = F.celu(x, -0.7) + F.hardsigmoid(r * 2) + F.rrelu(x, 0.1, 0.3, training=False) + F.tanhshrink(x).clamp(-9, 9)
    d = F.softmin(x.clamp(-9, 9), -1), F.normalize(r.clamp(-9, 9), p=1.0, dim=-1), F.cosine_similarity(r.clamp(-9, 9), w[:1].expand_as(r), dim=-1)
    e = x.clamp(1.0, -1.0), torch.clamp(x, w[0], w[:1].flip(-1)), x.clamp(min=torch.tensor(float("-inf")), max=2), torch.lerp(x.clamp(-9, 9), r.clamp(-9, 9), 0.3)
    return a, b, c, *d, *e, F.local_response_norm(x.clamp(-9, 9).unsqueeze(1).repeat(1, 3, 1), 2, 0.5, 0.75, 2.0)


@attack("x:float32[N,T,3]=-2:2", "ln:int64[N]=1:3", dims="N=1:2:4 T=3:4:6", kinds=FINITE)
class A7481PackedRecurrences(nn.Module):
    """A two-layer LSTM with proj_size, a bidirectional GRU over packed lengths unsorted, an RNN of relu, a GRUCell loop with a mask, LSTMCell states swapped."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.l = nn.LSTM(3, 4, 2, proj_size=2, batch_first=True)
        self.g = nn.GRU(3, 2, bidirectional=True, batch_first=True)
        self.r = nn.RNN(3, 2, nonlinearity="relu", batch_first=True, bias=False)
        self.c = nn.GRUCell(3, 3)

    def forward(self, x, ln):
        y, (h, c) = self.l(x)
        p = nn.utils.rnn.pack_padded_sequence(x, ln, batch_first=True, enforce_sorted=False)
        z, hz = self.g(p)
        z, zl = nn.utils.rnn.pad_packed_sequence(z, batch_first=True, padding_value=-1.0, total_length=x.shape[1])
        s = x.new_zeros(x.shape[0], 3)
        for t in range(3):
            s = torch.where((t < ln)[:, None], self.c(x[:, t], s), s)
        return y, h, c, z, hz, zl, self.r(x.flip(1))[0], s


@forward("x:float32[N,C,T]=-3:3", dims="N=1:2:4 C=2:3:5 T=2:4:6", kinds=FINITE, refused="the path through the module depends on the size")
def A7482NormsByBatch(self, x):
    """instance norm of a single position, batch norm by batch statistics, group norm of as many groups as channels by a size, layer norm over sizes, var with correction 2, std_mean, cov and corrcoef, vector norms of order 0, inf and -inf, matrix norms."""
    n, c, t = x.shape
    a = F.instance_norm(x) + F.batch_norm(x, None, None, training=True, eps=0.1)
    b = F.group_norm(x, c, eps=0.1) if c % 2 else F.group_norm(x, 2, eps=0.1)
    d = F.layer_norm(x, (c, t), eps=0.1) + F.layer_norm(x, x.shape[2:])
    e = torch.var(x.flatten(1), dim=-1, correction=2)
    s, m = torch.std_mean(x, dim=(1, 2), keepdim=True, correction=0)
    v = [torch.linalg.vector_norm(x, o, dim=-1) for o in (0, 1, 3.5, float("inf"), float("-inf"))]
    w = torch.linalg.matrix_norm(x) + torch.linalg.matrix_norm(x, 1) + torch.linalg.matrix_norm(x, float("inf"))
    return a, b, d, e, (x - m) / (s + 1), torch.stack(v), w, torch.cov(x[0])


@forward("x:float32[N,T]=-3:3", dims="N=2:2:4 T=2:4:6", kinds=FINITE)
def A7483Diagonals(self, x):
    """diagonal_scatter, slice_scatter, select_scatter, rot90, tensordot, kron, block_diag, cartesian-like products, combinations-like indices by triu_indices, trapezoid, gradient, cummax with indices, diff with prepend, unflatten by -1, movedim."""
    n, t = x.shape
    a = x.slice_scatter(torch.ones(n, 1), dim=1, start=1, end=2).select_scatter(x[:, 0] * 2, 1, -1)
    b = torch.rot90(x, 3, (0, 1)), torch.tensordot(x, x, dims=([1], [1])), torch.kron(x[:, :2], torch.eye(2))
    i = torch.triu_indices(t, t, 1)
    c = (x[:, i[0]] * x[:, i[1]]).sum(-1), torch.trapezoid(x, dx=0.5, dim=-1), torch.cumulative_trapezoid(x, dim=-1)
    v, j = torch.cummax(x.round(), -1)
    w, k = torch.cummin(x.round(), -1)
    d = torch.diff(x, n=2, prepend=x[:, :1]), x.unflatten(0, (1, -1)).movedim(0, -1)
    return a, *b, *c, v, j, w, k, *d, torch.block_diag(x[:2, :2], x[:1, :2]), torch.gradient(x, dim=-1)[0]


@forward("x:float32[N,2,H,W]=-3:3", "g:float32[N,H,W,2]=-2:2", dims="N=1:1:2 H=3:5:8 W=4:6:7", kinds=FINITE)
def A7484SamplersAndPads(self, x, g):
    """grid_sample of bicubic reflection and nearest border with and without corners, a 5-D one, interpolate area and antialias down, circular and replicate and negative pads, adaptive max with indices, fractional-free pools, pixel_shuffle of batches, channel_shuffle."""
    a = F.grid_sample(x, g, mode="bicubic", padding_mode="reflection", align_corners=False)
    b = F.grid_sample(x, g * 0.7, mode="nearest", padding_mode="border", align_corners=True)
    c = F.grid_sample(x.unsqueeze(2), torch.cat([g, g[..., :1]], -1).unsqueeze(1), padding_mode="reflection", align_corners=True)
    d = F.interpolate(x, size=(2, 3), mode="area"), F.interpolate(x, size=(3, 9), mode="bilinear", antialias=True), F.interpolate(x, size=(7, 2), mode="bicubic", antialias=True, align_corners=False)
    e = F.pad(x, (2, 1, 1, 2), mode="circular"), F.pad(x, (-1, 2, 1, -1), value=3.0), F.pad(x, (3, 0, 0, 2), mode="replicate")
    v, i = F.adaptive_max_pool2d(x, (2, 3), return_indices=True)
    return a, b, c, *d, *e, v, i, F.channel_shuffle(torch.cat([x, -x], 1), 2), F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape[-2:])
