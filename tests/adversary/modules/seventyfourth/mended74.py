"""What round 73 left: equal values below a mask, tokens of images, triangles of bytes, bags of maxima."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("h:float32[N,3,H,W]=-6:6", "w:float32[N,2,H,W]=0:9", dims="N=1:1:2 H=4:7:11 W=4:6:11", kinds=FINITE)
class A8422CentresAboveAThreshold(nn.Module):
    """Equal scores take part where they are high alone."""

    def forward(self, h, w):
        width = h.shape[-1]
        score = h.sigmoid()
        score = score * (F.max_pool2d(score, 3, 1, 1) == score)
        best, index = score.amax(1).flatten(1).topk(5)
        size = w.flatten(2).gather(2, index[:, None].expand(-1, 2, -1))
        centre = torch.stack([index % width, index // width], 1)
        return (centre - size / 2) * (best > 0.5)[:, None], best


@attack("x:float32[N,3,P]=-2:2", dims="N=1:2:3 P=5:12:20", kinds=FINITE)
class A8423NeighboursOnAGrid(nn.Module):
    """Distances between points of whole numbers tie."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 8, 1)

    def forward(self, x):
        norm = (x**2).sum(1, keepdim=True)
        near = -(norm - 2 * x.mT @ x + norm.mT)
        index = near.topk(4, -1)[1]
        n, c, p = x.shape
        neighbours = x.mT.gather(1, index.flatten(1)[..., None].expand(-1, -1, c)).view(n, p, 4, c)
        centre = x.mT[:, :, None].expand(-1, -1, 4, -1)
        return self.conv(torch.cat([neighbours - centre, centre], -1).permute(0, 3, 1, 2)).amax(-1)


@attack("ids:int64[N,T]=0:5", "img:float32[P,8]=-3:3", dims="N=1:2:3 T=1:6:12 P=36:40:50", kinds=FINITE)
class A8424TokensOfAnImage(nn.Module):
    """Rows of an image's features in the places of a token, as LLaVA has them."""

    def __init__(self):
        super().__init__()
        self.embed, self.project = nn.Embedding(6, 8), nn.Linear(8, 8)

    def forward(self, ids, img):
        text = self.embed(ids)
        return text.masked_scatter((ids == 3)[..., None].expand_as(text), self.project(img))


@attack("x:float32[N,T]=-3:3", "m:bool[T]", dims="N=1:2:4 T=1:6:12", kinds=FINITE)
class A8425ScatteredInPlace(nn.Module):
    """A mask that is broadcast, into a part of the tensor."""

    def forward(self, x, m):
        y = x.clone()
        y[:, 1:].masked_scatter_(m[1:], x * 2)
        return y + 1


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:6:12", kinds=FINITE)
class A8426TrianglesOfBytes(nn.Module):
    """A causal mask as Transformer-XL makes it."""

    def forward(self, x):
        t = x.shape[1]
        above = torch.ones(t, t, dtype=torch.uint8).triu(1)
        below = torch.ones(t, t, dtype=torch.int8).tril_(-1)
        return x @ above.float(), x @ below.float(), torch.where(above.bool(), x[0], 0.0)


@attack("ids:int64[L]=0:9", "bags:int64[B]=0:0", dims="L=1:6:12 B=1:3:5", kinds=FINITE)
class A8427MaximaOfBags(nn.Module):
    """Bags that begin where the sizes say; some are empty."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 4))

    def forward(self, ids, bags):
        offsets = torch.arange(bags.shape[0]) * ids.shape[0] // bags.shape[0]
        return tuple(F.embedding_bag(ids, self.weight, offsets, mode="max", padding_idx=p) for p in (None, 3))


@attack("x:int8[N,T]=-128:127", dims="N=1:2:4 T=1:6:12", kinds=FINITE)
class A8428RemaindersOfInt8(nn.Module):
    """With the sign of the dividend, and with that of the divisor."""

    def forward(self, x):
        return torch.fmod(x, 7), x % 5, x // 3, torch.remainder(x, -7), x * x


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:6:12", refused="when run again on the same inputs")
class A8429RandomAtSomeSizes(nn.Module):
    """Random numbers are nothing that a first call left."""

    def forward(self, x):
        return x + torch.rand_like(x) * (x.shape[1] > 8)


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=1:6:12", refused="depends on the values of the inputs")
class A8430DecidedByAMean(nn.Module):
    """The mean of one element is often above, and that of many hardly ever."""

    def forward(self, x):
        mean = float(x.mean())
        if mean > 1.7:
            return x * 2
        return x


@attack("x:float32[N,T,4]=-3:3", "l:int64[N]=1:12", dims="N=1:2:4 T=1:6:12", refused="exceeds dimension size")
class A8431LengthsBeyondTheSize(nn.Module):
    """What helps is a smaller range of the lengths."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 5, batch_first=True)

    def forward(self, x, l):  # noqa: E741 - as the user calls it
        packed = nn.utils.rnn.pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]


@attack("x:uint8[N,H,W,3]=0:255", dims="N=1:1:2 H=4:20:29 W=4:20:29", kinds=FINITE)
class A8432Letterbox(nn.Module):
    """An image to fit a square, padded with grey."""

    def forward(self, x):
        x = x.permute(0, 3, 1, 2).float() / 255
        ratio = min(24 / x.shape[2], 24 / x.shape[3])
        h, w = round(x.shape[2] * ratio), round(x.shape[3] * ratio)
        x = F.interpolate(x, size=(h, w), mode="bilinear", align_corners=False)
        right, below = 24 - w, 24 - h
        return F.pad(x, (right // 2, right - right // 2, below // 2, below - below // 2), value=114 / 255)


@attack("p:float32[N,P,3]=-1:1", "c:float32[N,Q,3]=-1:1", dims="N=1:1:2 P=4:9:15 Q=1:3:5", kinds=FINITE)
class A8433BallQuery(nn.Module):
    """PointNet++: the first four neighbours within a radius, filled up with the first."""

    def forward(self, p, c):
        count = p.shape[1]
        distance = ((c[:, :, None] - p[:, None]) ** 2).sum(-1)
        index = torch.arange(count).view(1, 1, -1).repeat(p.shape[0], c.shape[1], 1)
        index[distance > 0.5] = count
        index = index.sort(-1)[0][..., :4]
        first = index[..., :1].repeat(1, 1, 4)
        is_missing = index == count
        index[is_missing] = first[is_missing]
        return index.clamp(max=count - 1)


@attack("x:float32[N,T,4]=-3:3", "m:bool[N,T]", dims="N=1:2:4 T=1:6:13", kinds=FINITE)
class A8434LayersOnRows(nn.Module):
    """Padding goes around a network."""

    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(4, 9), nn.Linear(9, 4), nn.LayerNorm(4)

    def forward(self, x, m):
        y = torch.zeros_like(x)
        rows = x[m]
        y[m] = rows + self.down(F.gelu(self.up(self.norm(rows))))
        y[~m] = torch.cat([x[~m][:, 2:], x[~m][:, :2]], -1).softmax(-1)
        return y, self.up(x[m]).sum(0)


@attack("m:bool[N,T]", "x:float32[N,T]=-3:3", dims="N=1:2:4 T=2:6:13", kinds=FINITE)
class A8435JoinedAndRankedBooleans(nn.Module):
    """Where the first true one is, and rows side by side."""

    def forward(self, m, x):
        first = m.max(1)[1], m.min(0)[0], m.max(), m.amax(1)
        rows = torch.hstack([m, m]), torch.vstack([x, x[0]])
        return *first, *rows, torch.dstack([x, x]), torch.column_stack([x[:, 0], x])


@attack("x:float32[N,T]=-3:3", dims="N=1:2:4 T=2:6:13", kinds=FINITE)
class A8436ChainOfProducts(nn.Module):
    """Whose order torch chooses by the sizes."""

    def forward(self, x):
        return torch.linalg.multi_dot([x, x.T, x]), torch.linalg.multi_dot([x[0], x.T, x])


@attack("x:float32[N,T]=-3:3", dims="N=1:2:3 T=3:8:60", kinds=FINITE)
class A8437TopInAnyOrder(nn.Module):
    """torch leaves the order open."""

    def forward(self, x):
        return x.topk(3, 1, sorted=False)


@attack("x:float32[N,T,4]=-2:2", "m:bool[N,T]", dims="N=1:2:3 T=1:12:40", kinds=FINITE)
class A8438TokensToTheFront(nn.Module):
    """By a sort of booleans, which is not stable: a note tells it, and the judge's own sort is."""

    def forward(self, x, m):
        index = m.int().argsort(1, descending=True)
        y = x.gather(1, index[..., None].expand(-1, -1, 4))
        return y * (torch.arange(x.shape[1])[None] < m.sum(1, keepdim=True))[..., None]


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A8439MixtureOfExperts(nn.Module):
    """Two of four experts for each token, in a loop as Mixtral had it."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 6)) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        h = x.view(-1, d)
        weight, selected = self.gate(h).softmax(1).topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros((b * t, d))
        mask = F.one_hot(selected, 4).permute(2, 1, 0)
        for expert, layer in enumerate(self.experts):
            index, top = torch.where(mask[expert])
            rows = h[None, top].reshape(-1, d)
            out.index_add_(0, top, layer(rows) * weight[top, index, None])
        return out.reshape(b, t, d)


@attack("x:float32[N,T,6]=-2:2", dims="N=1:2:3 T=1:5:9", kinds=FINITE)
class A8440OneExpert(nn.Module):
    """Switch layers, by a mask for each expert."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4, bias=False)
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        p, i = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for expert, layer in enumerate(self.experts):
            mask = i == expert
            out[mask] = layer(x[mask]) * p[mask].unsqueeze(-1)
        return out


@attack("x:float32[T,6]=-2:2", "m:bool[T]", dims="T=1:5:9", kinds=FINITE)
class A8441RowsByIndex(nn.Module):
    """The indices of a mask, read and written by."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x, m):
        i = m.nonzero().squeeze(1)
        y = x.clone()
        y[i] = self.linear(x[i])
        return y, torch.zeros_like(x).index_add_(0, i, x[i] * 2), x.clone().index_copy_(0, i, x[i].neg())


@attack("x:float32[N,T]=-3:3", dims="N=1:2:3 T=1:9:60", kinds=FINITE)
class A8442SizesOfAList(nn.Module):
    """Other ways for some sizes, one of which is the one that is traced."""

    def forward(self, x):
        return x + 1 if x.shape[1] in (7, 11, 41, 59) else x * 2


@attack("a:float32[N]=-1:1", "b:int64[N]=0:9", dims="N=1:3:6", kinds=FINITE)
class A8443JoinedOfUnlikeTypes(nn.Module):
    """Numbers, indices and truths side by side."""

    def forward(self, a, b):
        return torch.column_stack((a, b, a > 0)), torch.hstack((a, b)), torch.vstack((a, b)), torch.stack((a, b), 1)
