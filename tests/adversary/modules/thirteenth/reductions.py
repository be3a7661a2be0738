"""Order statistics, norms, distances and functions of one number or of two."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

# torch gives NaN for GELU of infinity where the exported Erf gives infinity.
FINITE = ("normal", "unit", "bytes", "tiny", "large", "zeros", "tenths", "mixed-scales")


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:9:33")
def quantiles_to_nearest(self, x):
    return torch.quantile(x, torch.tensor([0.1, 0.25, 0.5, 0.75]), dim=1, interpolation="nearest")


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:9:33")
def lower_median_and_second_smallest(self, x):
    v = x.median(1)[0]
    return (v, x.kthvalue(2, dim=1)[0], torch.nanmedian(x, 1)[0])


@forward("x:float32[N,T]", dims="N=1:2:4 T=2:9:33")
def rounded_to_decimals(self, x):
    return (torch.round(x, decimals=2), torch.round(x, decimals=-1))


@attack("x:float32[N,T]", dims="N=1:2:4 T=2:9:33")
class BucketsFromTheRight(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.tensor([-2.0, -0.5, 0.0, 0.1, 0.3, 2.5]))

    def forward(self, x):
        return (torch.bucketize(x, self.b, right=True), torch.searchsorted(self.b, x, side="left"))


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def scaled_by_median_deviation(self, x):
    q = torch.quantile(x, 0.9, dim=1, keepdim=True)
    m = x.median(dim=1, keepdim=True)
    mad = (x - m.values).abs().median(dim=1, keepdim=True).values
    return (((x - m.values) / (1.4826 * mad + 1e-06)).clamp(-5, 5), q, m.indices, torch.aminmax(x, dim=1), x.min(1)[1])


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def histogram_of_eight_bins(self, x):
    return torch.histc(x, 8, -2.0, 2.0)


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:4:9")
def norms_of_eight_orders(self, x):
    n = torch.linalg.vector_norm
    return (
        n(x, 0, dim=1),
        n(x, float("inf"), dim=1),
        n(x, float("-inf"), dim=1),
        n(x, 0.5, dim=1),
        n(x, 3, dim=1),
        F.normalize(x, p=1.5, dim=1),
        torch.renorm(x, 2, 0, 1.0),
        F.cosine_similarity(x[:, None], x[None], dim=-1),
    )


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:12")
def third_norm_of_one(self, x):
    return (
        torch.linalg.vector_norm(x, 3, dim=1),
        torch.linalg.vector_norm(x, dim=1),
        F.normalize(x, dim=1),
        x.norm(p=4, dim=1),
    )


@attack("x:float32[N,T,32]=5000:5010", dims="N=1:2:3 T=1:4:9")
class NormsFarFromZero(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(32)
        self.g = nn.GroupNorm(4, 32)

    def forward(self, x):
        return (self.n(x), self.g(x.transpose(1, 2)), F.instance_norm(x), x.var(-1), F.rms_norm(x - 5005, (32,)))


@forward(
    "x:float32[N,3]=100:101", "y:float32[M,3]=100:101", dims="N=1:4:40 M=1:5:40", refused="differs from the module"
)
def distances_around_a_hundred(self, x, y):
    return (torch.cdist(x, y), torch.cdist(x, y, p=1.0), torch.cdist(x, y, p=float("inf")))


@forward("x:float32[N,3]", "y:float32[M,3]", dims="N=1:4:40 M=1:5:40", noted="infinity")
def nearest_by_distance(self, x, y):
    d = torch.cdist(x, y)
    return (
        d.argmin(1),
        d.amin(0),
        torch.cdist(x, y, p=1.0),
        torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"),
    )


@forward("x:float32[N,T,4]", dims="N=1:2:3 T=3:5:12")
def variances_and_correlations(self, x):
    return (
        x.var(1, correction=2),
        x.std((0, 1), unbiased=False),
        torch.cov(x[0].T),
        torch.corrcoef(x[0].T),
        F.batch_norm(x.transpose(1, 2), None, None, training=True, momentum=0.3),
        (x - x.mean(1, keepdim=True)).pow(4).mean(1) / x.var(1, unbiased=False).pow(2).clamp(min=1e-06),
    )


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def division_by_tenths(self, x):
    return (
        torch.div(x, 0.1, rounding_mode="floor"),
        torch.div(x, 0.1, rounding_mode="trunc"),
        x % 0.1,
        x // -0.3,
        torch.remainder(x, -0.7),
        torch.round(x * 2) / 2,
        torch.trunc(x / 0.1),
        (x / 0.1).round().int(),
        torch.ceil(x * 3 - 0.001),
    )


@forward("x:float32[N,T]=0:1000000", dims="N=1:2:3 T=2:5:12")
def statistics_of_millions(self, x):
    return (
        (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-05),
        torch.logsumexp(x, 1) - x.amax(1),
        torch.log_softmax(x / 1000.0, 1),
        x.sin(),
        torch.frac(x),
        x - x.floor(),
        torch.fmod(x, 0.1),
        (x * 1e-06).pow(12),
    )


@forward("x:float32[N,T]", "a:float32[N,1]", "b:float32[T]", dims="N=1:2:3 T=1:4:9")
def clamps_by_tensors(self, x, a, b):
    return (
        torch.clamp(x, a, b),
        torch.clamp(x, 2.0, -1.0),
        torch.lerp(x, b, 1.5),
        torch.lerp(x, b, a),
        torch.addcdiv(x, a, b.abs() + 1, value=-0.3),
        torch.nan_to_num(x / b, 7.0, 8.0, -9.0),
        torch.maximum(x, a).fmin(b),
        torch.rsub(x, a, alpha=3),
        torch.addcmul(x, a, b, value=2),
    )


@forward("x:float32[N,T]", "y:float32[N,T]", dims="N=1:2:3 T=2:12:30", noted="infinity")
def functions_of_two_signs(self, x, y):
    return (
        torch.atan2(x, y),
        torch.copysign(x, y),
        torch.signbit(x * 0 * y),
        torch.heaviside(x, y),
        torch.fmod(x, y),
        torch.remainder(x, y),
        torch.floor_divide(x, y),
        torch.hypot(x, y),
        torch.logaddexp(x, y),
        torch.xlogy(x.abs(), y.abs()),
        torch.float_power(x.abs(), 0.3).float(),
    )


@forward("x:float32[N,T]=0.1:9", dims="N=1:2:3 T=2:12:30", refused="prims.lgamma")
def gamma_functions(self, x):
    return (torch.lgamma(x), torch.digamma(x), torch.special.gammainc(x, x + 1), torch.special.erfcx(x))


@forward("x:float32[N,T]", dims="N=1:2:3 T=1:5:16", kinds=FINITE)
def functions_near_zero(self, x):
    return (
        F.gelu(x),
        F.gelu(x, approximate="tanh"),
        torch.erf(x),
        torch.special.expm1(x),
        torch.log1p(x.abs()),
        torch.special.xlog1py(x, x.abs()),
        torch.exp2(x.clamp(-20, 20)),
        torch.cosh(x.clamp(-5, 5)) - 1,
        torch.asinh(x),
        torch.atanh(x.clamp(-0.99, 0.99)),
        torch.erfc(x),
        torch.log2(x.abs() + 1),
        torch.sigmoid(x) * (1 - torch.sigmoid(x)),
    )


@forward("x:float32[N,T]", dims="N=1:2:4 T=1:5:12")
def activations_with_thresholds(self, x):
    return (
        F.softplus(x, beta=3.0, threshold=2.0),
        F.elu(x, 0.5),
        F.celu(x, 1.7),
        F.logsigmoid(x),
        F.mish(x),
        F.hardshrink(x, 0.5),
        F.softshrink(x, 0.5),
    )


@forward("x:float32[N,5]", "y:int64[N]=-100:4", dims="N=1:3:6", refused="data-dependent expression")
def losses_with_ignored_labels(self, x, y):
    y = torch.where(y < 0, -100, y)
    return (
        F.cross_entropy(x, y, label_smoothing=0.1, reduction="none", weight=torch.arange(1.0, 6.0)),
        F.nll_loss(x.log_softmax(1), y, reduction="sum"),
        F.huber_loss(x, x.roll(1, 0), delta=0.3),
        F.kl_div(x.log_softmax(1), x.flip(1).log_softmax(1), log_target=True, reduction="batchmean"),
        F.binary_cross_entropy_with_logits(x, (x > 0).float(), pos_weight=torch.arange(5.0)),
        F.multi_margin_loss(x, y.clamp(min=0)),
        F.smooth_l1_loss(x, x * 0, beta=0.0),
        F.gaussian_nll_loss(x, x * 0, x.abs()),
    )
