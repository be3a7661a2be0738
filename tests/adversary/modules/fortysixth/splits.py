# ruff: noqa: E501, E741, RUF059 - attacks are written as users write them
"""Variants: one line each of what was refused as a whole."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortysixth.offsets import far
from tests.adversary.modules.fortysixth.pictures import X4, pix, seq
from tests.adversary.modules.fortysixth.sounds import WAVE, wav

MT, X5 = "m:bool[N,T]", "x:float32[N,T,5]"


@forward(X5, **seq(X5))
def A5601WrittenByStepsAndNew(self, x):
    """Written by a tensor of indices, a new axis and a number."""
    y = x.clone()
    y[:, torch.arange(x.shape[1])[::2], None, 4] = 1.5
    y[..., [0, -1]] = y[..., [-1, 0]]
    return y
@forward(X5, MT, **seq(X5, MT))
def A5602MaskedSource(self, x, m):
    """Sources that are masked in order of a mask of three axes."""
    y = x.clone()
    y.masked_scatter_(m[..., None] & (x > 0), x.flip(1).contiguous())
    y[:, ::3, 1::2] += 1
    return y
@forward(X5, **seq(X5))
def A5603RelativePlaces(self, x):
    """Negative indices by differences of places, and a list with one from a size."""
    i, t = torch.arange(x.shape[1]), x.shape[1]
    return x[:, i[None] - i[:, None], 0], x[:, [0, -1, t // 2]], x.index_fill(1, i[: t // 2], 7)
@forward(X4, **far(X4), refused="the module cannot be exported")
def A5604SmallDeterminants(self, x):
    """Determinants of three by three, far from zero too."""
    g = x.transpose(1, 2)[:, :3] @ x[..., :3] / 10 + 3 * torch.eye(3)
    return torch.linalg.det(g), torch.linalg.slogdet(g)[1]
@forward(X4, **far(X4))
def A5605SmallInverses(self, x):
    """Inverses of two and three, far from zero."""
    g = x.transpose(1, 2)[:, :3] @ x[..., :3] / 10 + 3 * torch.eye(3)
    return torch.linalg.inv(g[:, :2, :2]), torch.linalg.inv(g), torch.linalg.solve(g, x[:, 0, :3])
@forward(X4, **far(X4))
def A5606PowersOfMatrices(self, x):
    """Powers, norms, products."""
    g = x.transpose(1, 2) @ x / 10
    return torch.linalg.matrix_power(g / 5, 3), torch.linalg.matrix_norm(g, 1), torch.linalg.vector_norm(x, 0.5, 1), torch.baddbmm(g, g, g, beta=0.5, alpha=-2), torch.linalg.cross(x[..., :3], x[..., 1:]), torch.linalg.matrix_norm(g, "fro")
@forward(X4, **far(X4))
def A5607DistancesByProducts(self, x):
    """Distances in both ways, far from zero."""
    return torch.cdist(x, x.flip(1)), torch.cdist(x, x.flip(1) + 1, p=3.0), torch.cdist(x, x, p=1), torch.cdist(x, x, p=float("inf"))
@forward(X4, **far(X4))
def A5608SimilaritiesFar(self, x):
    """Cosines and distances by pairs, far from zero."""
    return F.cosine_similarity(x, x.flip(1), -1), F.pairwise_distance(x, x.flip(1)), F.cosine_similarity(x[:, :, None], x[:, None], -1), F.normalize(x, dim=1)
@forward(WAVE, **wav(WAVE, low=9))
def A5609TwoSidedStft(self, x):
    """Not centred, with a window shorter than the frame, two-sided, normalised."""
    return torch.view_as_real(torch.stft(x, 8, 3, 6, torch.hamming_window(6), center=False, normalized=True, onesided=False, return_complex=True))
@forward(WAVE, **wav(WAVE, low=9))
def A5610StftAndBack(self, x):
    """Centred with zeros, a gate by magnitude, and back to its length."""
    w = torch.hann_window(8)
    c = torch.stft(x, 8, 2, window=w, pad_mode="constant", return_complex=True)
    return torch.istft(c * (c.abs() > 0.5), 8, 2, window=w, length=x.shape[1])
@attack(X4, "l:int64[N]=1:40", **seq(X4, "l:int64[N]=1:40"))
class A5611PackedByLengths(nn.Module):
    """A packed LSTM of two layers and directions, lengths in any order."""

    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)

    def forward(self, x, l):
        l = l.clamp(max=x.shape[1])
        p = nn.utils.rnn.pack_padded_sequence(x, l.cpu(), batch_first=True, enforce_sorted=False)
        y, (h, c) = self.r(p)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1], padding_value=-1.0)
        return y, h[-2:].transpose(0, 1).flatten(1), n
@forward(X4, "i:int64[N,T]=0:9", **seq(X4, "i:int64[N,T]=0:9"))
def A5612SmoothedCrossEntropy(self, x, i):
    """Label smoothing with weights and ignored classes; binary with positive weights."""
    t = torch.where(i < 4, i, -100)
    w = torch.tensor([1.0, 2.0, 0.0, 0.5])
    return F.cross_entropy(x.transpose(1, 2), t, w, label_smoothing=0.1, reduction="none"), F.binary_cross_entropy_with_logits(x, x.sigmoid().round(), pos_weight=w + 1), F.kl_div(x.log_softmax(-1), x.flip(1).log_softmax(-1), log_target=True, reduction="batchmean")
@forward(X4, **seq(X4))
def A5613ComplexMoves(self, x):
    """Complex numbers turned, divided, multiplied by their transposed."""
    z = torch.view_as_complex(x.unflatten(-1, (2, 2)).contiguous())
    p = torch.polar(x[..., 0].abs(), x[..., 1])
    w = z * p[..., None] / (z.conj() + 2)
    return w.real, (z.abs() ** 2).sum(-1), (z @ z.mH).imag, torch.exp(1j * x[..., 2]).real, (z**2).imag
@forward(X4, **seq(X4), refused="the module cannot be exported")
def A5614TurnsAndTiles(self, x):
    """Turned by quarters, tiled, blocks, powers of a Vandermonde, a Kronecker product."""
    return x.unflatten(-1, (2, -1)).movedim(-1, 1), torch.rot90(x, 3, (1, 2)), x.tile(2, 1, 1, 2), torch.vander(x[0, :, 0].clamp(-2, 2), 4), torch.kron(x[0], torch.eye(2)), torch.block_diag(x[0], x[0].T)
@forward("i:int32[N,T]=-9:9", **seq("i:int32[N,T]=-9:9"), refused="the exported model differs from the module")
def A5615IntProduct(self, i):
    """Products of many whole numbers wrap in int64."""
    return i.prod(1), i.long().prod(1) % 7
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=2))
def A5616ResizedBySizes(self, x):
    """Cubic and linear to sizes of sizes."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (h * 2 - 1, w + 3), mode="bicubic", align_corners=True), F.interpolate(x, (h + 1, w - 1), mode="nearest-exact")
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=4), refused="the exported model differs from the module")
def A5617ResizedToHalves(self, x):
    """Antialiased and by areas to halves."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (h // 2, w // 3), mode="bilinear", antialias=True), F.interpolate(x, (h // 2, w * 2), mode="area")
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=4), refused="the exported model differs from the module")
def A5618AntialiasedToParts(self, x):
    """Antialiased to a half and a third."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (h // 2, w // 3), mode="bilinear", antialias=True)
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]", low=4))
def A5619AreaToParts(self, x):
    """By areas to a half and to twice."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (h // 2, w * 2), mode="area")
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]"))
def A5620CubicByFactors(self, x):
    """Cubic by factors, with the factor computed anew."""
    return F.interpolate(x, scale_factor=(1.5, 2.25), mode="bicubic", recompute_scale_factor=True)
@forward("x:float32[N,2,H,W]", **pix("x:float32[N,2,H,W]"))
def A5621AtLeastOne(self, x):
    """Halves of at least one."""
    h, w = x.shape[-2:]
    return F.interpolate(x, (max(h // 2, 1), max(w // 3, 1)), mode="area"), F.interpolate(x, (h + 1, max(w - 1, 1)), mode="nearest-exact")
