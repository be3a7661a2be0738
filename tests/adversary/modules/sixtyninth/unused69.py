"""Operators, aliases and in-place forms that no attack has named: strided scatters, solvers, pools with indices, losses."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE, halves, sprinkled

X = "x:float32[N,T,6]"
D = "N=1:2:3 T=2:5:9"
U = ("unit", "zeros", "ones", "halves", "positive")


@forward(X, dims=D, kinds=FINITE, refused="cannot be exported")
def A8112AsStridedScatter(self, x):
    """A band written through as_strided_scatter by strides of the size; the diagonal of blocks by as_strided_ of a clone."""
    n, t, _ = x.shape
    y = torch.zeros(n, t, t).as_strided_scatter(x[:, :, 0].contiguous(), (n, t), (t * t, t + 1))
    z = x.clone().as_strided_((n, t), (t * 6, 6), 2)
    return y, z * 2, torch.as_strided_copy(x.contiguous(), (n, 3), (t * 6, 2), 1)


@forward(X, dims=D, kinds=U)
def A8113ArcAliasesInPlace(self, x):
    """arcsin_, arctan2_, acosh_, logit_, log1p_, rsqrt_, reciprocal_, xlogy_, deg2rad_, ldexp_, square_ in a chain on clones."""
    u = x.clamp(0, 1)
    a = u.clone().mul_(0.9).arcsin_().square_()
    b = u.clone().arctan2_(u + 0.5).expm1_().log1p_()
    c = (u + 1.25).acosh_().reciprocal_()
    d = u.clone().logit_(0.01).deg2rad_()
    e = (u + 0.5).rsqrt_().xlogy_(u + 0.25)
    f = torch.selu_(u.clone().ldexp_(torch.tensor(3)).trunc_())
    return a, b, c, d, e, f, torch.float_power(u, 2.5).float()


@forward("i:int32[N,T]=-20:20", "j:int32[N,T]=-9:9", dims="N=1:2:3 T=1:5:9", refused="cannot be exported")
def A8114GcdLcmInPlace(self, i, j):
    """gcd_, lcm_, bitwise_or_, bitwise_xor_, shifts in place, logical_or_ of integers, fix and floor_divide of them, heaviside."""
    a = i.clone().gcd_(j)
    b = i.clone().lcm_(j)
    c = (i | j).bitwise_xor_(i).bitwise_and_(j)
    d = i.abs().bitwise_left_shift_(j.abs() % 4).bitwise_right_shift_(1)
    return a, b, c, d, i.logical_or(j), torch.fix(i / 4.0), i // 4, torch.heaviside(i.float(), j.float()), torch.bitwise_or(i, 5)


@forward("x:float32[N,4,4]", dims="N=1:2:3", kinds=("normal", "unit"), refused="cannot be exported")
def A8115LuFactorsAndSolves(self, x):
    """linalg.lu_factor and lu_solve, ldl, tensorsolve, tensorinv: of a matrix made diagonally dominant."""
    a = x + 10 * torch.eye(4)
    b = x[:, :, :2]
    lu, p = torch.linalg.lu_factor(a)
    return torch.linalg.lu_solve(lu, p, b), torch.linalg.tensorsolve(a[0], b[0, :, 0])


@forward("x:float32[N,4,4]", dims="N=1:2:3", kinds=("normal", "unit"), refused="cannot be exported")
def A8116MatrixRankAndSvdvals(self, x):
    """linalg.matrix_rank with a tolerance, svdvals, nuclear norm, pinverse of a tall matrix, cond."""
    s = torch.linalg.svdvals(x + 3 * torch.eye(4))
    return s, torch.linalg.matrix_rank(x + 9 * torch.eye(4)), torch.linalg.matrix_norm(x + 3 * torch.eye(4), "nuc")


@forward("x:float32[N,4,3]", dims="N=1:2:3", kinds=("normal", "unit"), refused="cannot be exported")
def A8117PinverseByHand(self, x):
    """Least squares by normal equations: cholesky, cholesky_solve, triangular_solve by linalg.solve_triangular left and right, householder of a fixed one."""
    g = x.mT @ x + torch.eye(3)
    low = torch.linalg.cholesky(g)
    y = torch.cholesky_solve(x.mT[..., :2], low)
    z = torch.linalg.solve_triangular(low, x, upper=False, left=False)
    return y, z, torch.linalg.solve_triangular(low.mT, x.mT, upper=True), torch.logdet(g), torch.linalg.slogdet(-g)


@forward(X, dims="N=1:2:3 T=4:6:9", kinds=FINITE, feeds=(halves(2, 6, 6), halves(3, 9, 6, seed=4)))
def A8118PoolsWithIndices(self, x):
    """adaptive_max_pool with indices at odd sizes, max_pool1d with indices beside ties, unpooled to a larger size; fractional LPPool with ceil."""
    y = x.transpose(1, 2)
    a, i = F.adaptive_max_pool1d(y, 3, return_indices=True)
    b, j = F.max_pool1d(y, 2, 2, return_indices=True)
    c = F.max_unpool1d(b, j, 2, 2, output_size=(y.shape[-1],))
    d = nn.LPPool1d(3, 2, ceil_mode=True)(y.abs())
    return a, i, b, j, c, d


@forward("x:float32[N,2,H,W]", dims="N=1:1:2 H=4:6:9 W=4:7:8", kinds=FINITE)
def A8119LpPool2dAndUnpool(self, x):
    """LPPool2d of norm 1 and 2 with strides, adaptive avg of (None, 3), MaxUnpool2d with the size of a padded input, AvgPool with ceil and pads."""
    p, i = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    u = F.max_unpool2d(p, i, 3, 2, 1, output_size=x.shape[-2:])
    return nn.LPPool2d(2, (2, 3), (1, 2))(x), nn.LPPool2d(1, 2)(x), F.adaptive_avg_pool2d(x, (None, 3)), u.sum((2, 3)), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)


@forward(X, "t:int64[N,T]=0:5", dims=D, kinds=FINITE, refused="cannot be exported")
def A8120LossesOfHeads(self, x, t):
    """Losses as quality scores: cross entropy with weights, smoothing, ignore; NLL 2d; Poisson; Gaussian; Huber of delta; multi margin; reductions none."""
    w = torch.linspace(0.5, 2, 6)
    y = x.transpose(1, 2)
    a = F.cross_entropy(y, t, weight=w, ignore_index=2, label_smoothing=0.1, reduction="none")
    b = F.cross_entropy(y, t, weight=w, ignore_index=2)
    c = F.multi_margin_loss(x[:, 0], t[:, 0], p=2, margin=0.7, reduction="none")
    d = F.huber_loss(x, t[..., None].float().expand_as(x), delta=0.7, reduction="none").sum(-1)
    e = F.gaussian_nll_loss(x, x.flip(1), x.abs() + 0.1, full=True, eps=1e-3)
    f = F.poisson_nll_loss(x.clamp(-3, 3), t[..., None].expand_as(x).float(), full=True, reduction="mean")
    return a, b * 1, c, d, e, f


@forward(X, dims=D, kinds=FINITE)
def A8121LossesOfPairs(self, x):
    """cosine embedding, hinge embedding, soft margin, triplet with a distance of its own and swap, KL with log targets in batchmean, margin ranking."""
    a, b, c = x[..., :2], x[..., 2:4], x[..., 4:]
    s = torch.where(a[:, :, 0] > 0, 1.0, -1.0)
    return (
        F.cosine_embedding_loss(a.flatten(0, 1), b.flatten(0, 1), s.flatten(), margin=0.2, reduction="none"),
        F.hinge_embedding_loss(a[..., 0], s, margin=0.5, reduction="none"), F.soft_margin_loss(b[..., 0], s),
        F.triplet_margin_with_distance_loss(a, b, c, distance_function=lambda p, q: (p - q).abs().sum(-1), swap=True, reduction="none"),
        F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="batchmean"), F.margin_ranking_loss(a[..., 0], b[..., 0], s, margin=0.1, reduction="none"),
    )  # fmt: skip


@forward(X, "y:int64[N]=0:5", dims="N=1:2:3 T=4:6:9", kinds=("normal", "unit"), refused="cannot be exported")
def A8122CtcLossAsScore(self, x, y):
    """ctc_loss as a confidence: targets of one symbol, lengths from the batch."""
    lp = x.log_softmax(-1).transpose(0, 1)
    n = torch.full((x.shape[0],), x.shape[1])
    return F.ctc_loss(lp, y[:, None].clamp(min=1), n, torch.ones_like(n), reduction="none")


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="cannot be exported")
def A8123PolynomialsAndBessel(self, x):
    """special: Chebyshev, Hermite, Laguerre, Legendre of small n; bessel_j0, i1e; log_ndtr, ndtri, multigammaln, zeta."""
    u = x.clamp(-3, 3)
    s = torch.special
    return s.chebyshev_polynomial_t(u, 3), s.hermite_polynomial_he(u, 4), s.laguerre_polynomial_l(u, 2), s.legendre_polynomial_p(u.clamp(-1, 1), 3)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, feeds=sprinkled(float("nan"), 0.0, sizes=((2, 5), (3, 9))))
def A8124ArgwhereFlips(self, x):
    """Aliases: argwhere of a fixed number, flipud, moveaxis, vstack, concat, subtract with alpha, not_equal, greater_equal, less_equal, absolute_, vdot."""
    y = torch.flipud(x)
    z = torch.concat((x, torch.subtract(x, y, alpha=3)), 1)
    v = torch.vstack((x, y))
    return z, v.moveaxis(0, 1).not_equal(v.T.roll(1, 0)), x.greater_equal(y).less_equal(x > 0), torch.vdot(x.nan_to_num()[0], y.nan_to_num()[0]), x.clone().absolute_().nan_to_num_(2.0), x.isreal()


@forward(X, dims=D, kinds=FINITE)
def A8125InPlaceMatrixAdds(self, x):
    """addmm_, addbmm_, baddbmm_, addr_, addmv_ with beta and alpha on clones and on views of what is an output too; renorm_, tril_, cumprod_."""
    n, t, c = x.shape
    y = torch.ones(n, t, t).baddbmm_(x, x.mT, beta=0.5, alpha=-0.1)
    z = torch.zeros(t, t).addbmm_(x, x.mT, beta=0, alpha=0.25)
    w = x[0, 0].clone().addmv_(torch.eye(6) * 2, x[0, 1], beta=-1)
    z[:1].mul_(3)
    return y.tril_(-1), z, w, torch.ones(t, c).addr_(x[0, :, 0], x[0, 0], alpha=2), x.clone().renorm_(2, 1, 0.7), x.tanh().cumprod_(1)


@attack(X, dims=D, kinds=FINITE)
class A8126RawMultiHead(nn.Module):
    """F.multi_head_attention_forward called with separate projections, static k and v, one added zero, need_weights averaged."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.w = nn.Parameter(torch.randn(18, 6) * 0.3)
        self.b = nn.Parameter(torch.randn(18) * 0.1)
        self.o = nn.Linear(6, 6)

    def forward(self, x):
        q = torch.tanh(x).transpose(0, 1)
        y, w = F.multi_head_attention_forward(q, q.flip(0), q, 6, 2, self.w, self.b, None, None, True, 0.0, self.o.weight, self.o.bias, training=False, key_padding_mask=(torch.arange(x.shape[1]) % 3 == 2).expand(len(x), -1), need_weights=True)
        return y.transpose(0, 1), w


@forward("x:float32[N,6,H,W]", dims="N=1:1:2 H=4:6:8 W=4:5:8", kinds=FINITE)
def A8127PadLayers(self, x):
    """CircularPad2d of four sides, ReflectionPad2d up to size - 1, ReplicationPad, ConstantPad negative, ZeroPad, PixelUnshuffle after, Fold of an Unfold."""
    a = nn.CircularPad2d((1, 2, 0, 3))(x)
    b = nn.ReflectionPad2d((3, 0, 1, 2))(x)
    c = nn.ConstantPad2d((-1, 1, 2, -2), -0.5)(x)
    u = F.unfold(x, 3, padding=1, stride=2)
    f = nn.Fold(x.shape[-2:], 3, padding=1, stride=2)(u)
    return a, b, c, F.pixel_shuffle(nn.ConstantPad3d((0, 0, 0, 0, 1, 1), 2.0)(x), 2), f


@forward("x:float32[N,T,6]", dims=D, kinds=FINITE)
def A8128CopiesOfViews(self, x):
    """*_copy operators and unsafe splits: transpose_copy, unsqueeze_copy, split_copy with sizes, view_copy, alias_copy, changed in place afterwards."""
    a = torch.transpose_copy(x, 1, 2)
    a.mul_(2)
    p, q = torch.split_with_sizes(x, [2, 4], -1)
    r = torch.unsafe_split(x, 4, -1)
    b = torch.unsqueeze_copy(x, 1)
    b[:, :, 0] = 5
    return a, x + 1, p * q[..., :2], r[1], b, torch.alias_copy(x).add_(1), torch.view_copy(x, (x.shape[0], -1))


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:9", kinds=FINITE, refused="cannot be exported")
def A8129OpMathByConstants(self, x):
    """torch.empty_strided filled by columns, empty_permuted, frombuffer constants, torch.range, logspace base 2, tri(l)_indices of the size, combinations of an arange."""
    t = x.shape[1]
    k = torch.empty_strided((t, 3), (1, t))
    for i in range(3):
        k[:, i] = torch.arange(t) * (i + 1) - 0.5
    r, c = torch.tril_indices(t, t, -1)
    p = x[:, r] - x[:, c]
    return x @ k, p.abs().sum(1), x * torch.logspace(-2, 2, t, base=2.0), torch.cartesian_prod(torch.arange(2), torch.arange(t)).sum(1) * x[:, :1]
