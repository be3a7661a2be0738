# ruff: noqa: E501, E731, E741 - attacks are written as users write them
"""Functions of torch that no round before has called, as users come to them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import fusion

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.pictures import FEW, IMAGE, X4, pix, seq

X, MT = "x:float32[N,T]", "m:bool[N,T]"


@forward("l:float32[N,T,6]", "n:int64[N]=4:9", dims="N=1:2:3 T=9:12:40", kinds=FEW, refused="cannot be exported")
def A6200CtcOfTorch(self, l, n):
    """torch's own CTC loss of fixed labels with lengths of inputs, none is infinite."""
    p = l.log_softmax(-1).transpose(0, 1)
    y = torch.tensor([[1, 1, 3]]).expand(l.shape[0], -1)
    return F.ctc_loss(p, y, n, torch.full_like(n, 3), reduction="none", zero_infinity=True)


@forward(X, **seq(X, low=8), refused="no form of segment_reduce")
def A6201SegmentsReduced(self, x):
    """torch.segment_reduce along time with lengths that are fixed but for the rest; an empty segment has an initial value."""
    t = x.shape[1]
    n = torch.tensor([3, 0, 2, t - 5])
    y = x.transpose(0, 1).contiguous()
    return torch.segment_reduce(y, "mean", lengths=n, axis=0), torch.segment_reduce(y, "max", lengths=n, axis=0, initial=-1.0), torch.segment_reduce(y, "sum", lengths=n, axis=0)


@forward("x:float32[N,T]=-1:1", **seq("x:float32[N,T]=-1:1"), refused="no form of special_chebyshev_polynomial_t")
def A6202Polynomials(self, x):
    """Orthogonal polynomials as features (KAN): Chebyshev of both kinds, Hermite, Laguerre, Legendre of degrees to 6."""
    s = torch.special
    return torch.stack([s.chebyshev_polynomial_t(x, n) for n in range(7)], -1), s.chebyshev_polynomial_u(x, 4), s.hermite_polynomial_h(x, 5), s.hermite_polynomial_he(x, 4), s.laguerre_polynomial_l(x, 3), s.legendre_polynomial_p(x, 5)


@forward("x:float32[N,T]=-1:1", "k:int64[T]=0:7", **seq("x:float32[N,T]=-1:1", "k:int64[T]=0:7"), refused="no form of special_chebyshev_polynomial_t")
def A6203PolynomialsByInput(self, x, k):
    """Chebyshev polynomials whose degrees are an input."""
    return torch.special.chebyshev_polynomial_t(x, k), torch.special.hermite_polynomial_he(x, k)


@forward("x:float32[N,T]=0.1:20", **seq("x:float32[N,T]=0.1:20"), refused="no form of bessel_j0")
def A6204BesselOfRadii(self, x):
    """Bessel functions of radii (molecules): J1, spherical j0, I0, K0, Airy's."""
    s = torch.special
    return s.bessel_j0(x), s.bessel_j1(x), s.spherical_bessel_j0(x), s.modified_bessel_i0(x * 0.2), s.modified_bessel_k0(x), s.airy_ai(x)


@forward(X, **seq(X))
def A6205WindowsOfSignals(self, x):
    """torch.signal's windows of the length: Kaiser, Nuttall, cosine, Gaussian, exponential, general ones, both symmetries."""
    t, w = x.shape[1], torch.signal.windows
    return x * w.kaiser(t, beta=8.0), x * w.nuttall(t), x * w.cosine(t, sym=False), x * w.gaussian(t, std=3.0), x * w.exponential(t, tau=2.0), x * w.general_cosine(t, a=[0.5, 0.3, 0.2]), x * w.bartlett(t), x * w.general_hamming(t, alpha=0.6, sym=False)


@forward("a:float32[N,T]=0.1:9", "x:float32[N,T]=0:20", **seq("a:float32[N,T]=0.1:9", "x:float32[N,T]=0:20"), refused="no form of igamma")
def A6206GammaQuantile(self, a, x):
    """Zero-inflated gamma: regularised incomplete gamma functions of both ends."""
    return torch.igamma(a, x), torch.igammac(a, x), torch.mvlgamma(a + 1, 2), torch.special.gammaln(a), torch.special.psi(a)


@forward(X4, **seq(X4), refused="cannot be exported")
def A6207ChainInPlace(self, x):
    """A chain of writes in place with names that are seldom used, on a view of which the whole is returned."""
    y = x.clone()
    v = y[:, ::2, 1:3]
    v.sinc_().arctan_().exp2_().subtract_(1.0).fix_().pow_(2).add_(0.25).rad2deg_().clip_(-5, 5).frac_()
    y[..., 0].copysign_(torch.tensor(-1.0)).fmod_(0.75).negative_().true_divide_(3)
    y[..., 3].addcdiv_(y[..., 0], y[..., 1] + 2).cumsum_(1)
    return y, v


@forward(X4, **seq(X4))
def A6208ComparesInPlace(self, x):
    """gt_, le_, ne_ and logical_and_ write 0 and 1 into floats; floor_divide_ and remainder_ behind them."""
    y = x.clone()
    y[..., 0].gt_(0)
    y[..., 1].le_(0.5)
    y[..., 2].ne_(0)
    z = (x * 3).round_()
    z[..., 0].floor_divide_(2)
    z[..., 1].remainder_(-2)
    z[..., 2].logical_and_(y[..., 1])
    return y, z, y[..., 0] + z[..., 2]


@forward(X4, "t:int64[N,4]=-1:3", **seq(X4, "t:int64[N,4]=-1:3"), refused="the exported model differs from the module")
def A6209MarginsOfLabels(self, x, t):
    """Multi-label margins: targets end at the first -1; triplets with a distance of one's own and a swap."""
    s = x.mean(1)
    return F.multilabel_margin_loss(s, t, reduction="none"), nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().amax(-1), margin=0.5, swap=True, reduction="none")(s, x[:, 0], x[:, -1]), F.multi_margin_loss(s, t[:, 0].clamp(min=0), p=2, margin=0.7, reduction="none"), nn.MultiLabelSoftMarginLoss(reduction="none")(s, (t > 0).float())


@attack(IMAGE, **pix(IMAGE))
class A6210FusedInForward(nn.Module):
    """The first call fuses a convolution and its norm, as YOLO does for deployment."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.bn.running_mean.add_(0.3)
        self.bn.running_var.mul_(2.5)
        self.fused = None

    def forward(self, x):
        if self.fused is None:
            self.fused = fusion.fuse_conv_bn_eval(self.conv, self.bn)
        return F.silu(self.fused(x)), F.silu(self.bn(self.conv(x)))


@forward(X, **seq(X), refused="no form of nonzero_static")
def A6211StaticPlaces(self, x):
    """The first eight places above a threshold by nonzero_static, -1 for none, and what stands there."""
    at = torch.nonzero_static(x[0] > 0.5, size=8, fill_value=-1)
    return at, torch.where(at[:, 0] >= 0, x[0, at[:, 0].clamp(min=0)], 0.0)


@forward("a:float32[N,3,3]", "b:float32[N,3]", dims="N=1:2:5", refused="no form of linalg_inv_ex")
def A6212SolversWithInfo(self, a, b):
    """inv_ex and solve_ex with their info, cholesky_ex whose info says if a matrix is positive, vecdot, a determinant."""
    s = a @ a.transpose(1, 2) + torch.eye(3)
    inv, info = torch.linalg.inv_ex(s)
    y, ok = torch.linalg.solve_ex(s, b)
    return inv, info, y, ok, torch.linalg.vecdot(a, b[:, None]), torch.linalg.slogdet(s).logabsdet


@forward("a:float32[N,3,3]", dims="N=1:2:5", refused="no form of linalg_cholesky_ex")
def A6213FactorOrNot(self, a):
    """A Cholesky factor where there is one, else the matrix: cholesky_ex's info decides by row."""
    s = (a + a.transpose(1, 2)) / 2 + torch.eye(3)
    f, info = torch.linalg.cholesky_ex(s)
    return torch.where((info == 0)[:, None, None], f, s), info


@forward("a:float32[N,T,3]", "b:float32[N,T]", **seq("a:float32[N,T,3]", "b:float32[N,T]", low=4), refused="cannot be exported")
def A6214LeastSquares(self, a, b):
    """Least squares by lstsq, by the pseudo-inverse and by a QR."""
    q, r = torch.linalg.qr(a)
    return torch.linalg.lstsq(a, b[..., None]).solution, torch.linalg.pinv(a) @ b[..., None], torch.linalg.solve_triangular(r, q.transpose(1, 2) @ b[..., None], upper=True)


@forward("a:float32[N,3,3]", dims="N=1:2:5", refused="no form of _linalg_eigh")
def A6215SymmetricEigen(self, a):
    """Eigenvalues of a symmetric 3 by 3 (structure tensors, covariances of points): the least, the ratio, the vector's outer product."""
    s = a @ a.transpose(1, 2)
    w, v = torch.linalg.eigh(s)
    return w, v[..., 0, None] * v[..., None, :, 0]


@forward(IMAGE, **pix(IMAGE), refused="cannot be exported")
def A6216HermitianTransforms(self, x):
    """ihfft, ifft2 and ifftn of real pictures, their real parts, a power spectrum by hfft2."""
    h, w = x.shape[-2:]
    f = torch.fft.ifft2(x)
    return f.real, torch.fft.ifftn(x, dim=(2, 3)).imag, torch.fft.ihfft(x, n=w).real, torch.fft.hfft2(f, s=(h, w))


@forward(X4, **seq(X4), refused="no form of select_copy")
def A6217CopiesOfViews(self, x):
    """The operators that copy where others view: what is written into them does not reach the tensor."""
    y = x * 2
    for c in (torch.slice_copy(y, 1, 0, None), torch.select_copy(y, 2, 1), torch.expand_copy(y, y.shape), torch.diagonal_copy(y, 0, 1, 2), torch.permute_copy(y, (0, 2, 1)), torch.unfold_copy(y, 2, 2, 1), torch.squeeze_copy(y), torch.narrow_copy(y, 2, 1, 2), torch.detach_copy(y), *torch.unbind_copy(y, 2), *torch.split_with_sizes_copy(y, [1, 3], 2)):
        c.add_(1.0)
    return y, torch.select_copy(y, 2, 3)


@forward(X4, **seq(X4), refused="cannot be exported")
def A6218OldNames(self, x):
    """Old names: ger, addr, addbmm, trapz, row_stack, diagflat, conv_tbc, scalar_tensor, norm_except_dim, nuclear order of norms."""
    y = x.transpose(1, 2)
    w = torch.linspace(-1, 1, 3 * 4 * 2).view(3, 4, 2)
    return torch.ger(x[0, 0], x[0, -1]), torch.addr(torch.eye(4), x[0, 0], x[0, -1], beta=0.5, alpha=-2), torch.addbmm(torch.eye(4), y, x, beta=2, alpha=0.5), torch.trapz(x, dx=0.5, dim=1), torch.row_stack([x[0, 0], x[0, -1]]), torch.diagflat(x[0, 0], 1), torch.conv_tbc(x.transpose(0, 1).contiguous(), w, torch.ones(2), 1), x + torch.scalar_tensor(x.shape[1]), torch.norm_except_dim(x[0], 2, 0)


@forward(IMAGE, **pix(IMAGE), refused="cannot be exported")
def A6219OldUpsampling(self, x):
    """Deprecated upsampling: bilinear with aligned corners, nearest by two factors, nn's modules of both, lp_pool3d, a 3d shuffle."""
    return F.upsample_bilinear(x, scale_factor=2), F.upsample_nearest(x, size=(7, 5)), F.upsample(x, scale_factor=(1.5, 2), mode="bilinear"), nn.UpsamplingBilinear2d(size=(3, 9))(x), torch.native_channel_shuffle(x, 2), nn.CrossMapLRN2d(3, 0.5, 0.75, 2.0)(x)


@attack(X4, **seq(X4))
class A6220CellsByFunction(nn.Module):
    """Recurrent cells as functions with weights of one's own: lstm_cell, gru_cell, rnn_relu_cell, and one layer by torch.rnn_tanh."""

    def __init__(self):
        super().__init__()
        p = lambda *s: nn.Parameter(torch.randn(*s) * 0.4)
        self.a, self.b, self.g, self.h, self.u, self.v = p(8, 4), p(8, 2), p(6, 4), p(6, 2), p(2, 4), p(2, 2)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 2)
        g = r = h
        for f in (x[:, 0], x[:, -1]):
            h, c = torch.lstm_cell(f, (h, c), self.a, self.b)
            g = torch.gru_cell(f, g, self.g, self.h)
            r = torch.rnn_relu_cell(f, r, self.u, self.v)
        y, n = torch.rnn_tanh(x, x.new_zeros(1, x.shape[0], 2), [self.u, self.v], False, 1, 0.0, False, False, True)
        return h, c, g, r, y, n
