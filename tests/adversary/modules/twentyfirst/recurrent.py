"""Parts of networks around recurrent layers."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack


@attack("mix:float32[N,1,L]", dims="N=1:1:2 L=20:120:300")
class Demucs(nn.Module):
    """valid_length by ceilings, centre trims of the skips, normalised by the deviation of the mono mix."""

    def __init__(self):
        super().__init__()
        self.enc = nn.ModuleList([nn.Conv1d(1, 4, 8, 4), nn.Conv1d(4, 4, 8, 4)])
        self.dec = nn.ModuleList([nn.ConvTranspose1d(4, 4, 8, 4), nn.ConvTranspose1d(4, 1, 8, 4)])
        self.glu = nn.ModuleList([nn.Conv1d(4, 8, 1), nn.Conv1d(4, 8, 1)])
        self.lstm, self.lin = nn.LSTM(4, 4, 2, bidirectional=True), nn.Linear(8, 4)

    def forward(self, mix):
        length = mix.shape[-1]
        valid = length
        for _ in range(2):
            valid = max(1, math.ceil((valid - 8) / 4) + 1)
        for _ in range(2):
            valid = (valid - 1) * 4 + 8
        std = mix.mean(1, keepdim=True).std(-1, keepdim=True)
        x = mix / (1e-3 + std)
        delta = valid - length
        x = F.pad(x, (delta // 2, delta - delta // 2))
        saved = []
        for e, g in zip(self.enc, self.glu, strict=True):
            x = F.glu(g(F.relu(e(x))), 1)
            saved.append(x)
        x = x + self.lin(self.lstm(x.permute(2, 0, 1))[0]).permute(1, 2, 0)
        for d in self.dec:
            s = saved.pop()
            diff = s.shape[-1] - x.shape[-1]
            x = d(x + s[..., diff // 2 : s.shape[-1] - (diff - diff // 2)])
        extra = x.shape[-1] - length
        return x[..., extra // 2 : x.shape[-1] - (extra - extra // 2)] * std


@attack("images:uint8[N,16,W]", dims="N=1:1:3 W=8:40:100")
class Crnn(nn.Module):
    """CRNN on bytes: rectangular pools, two LSTMs, best path and its mean certainty."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = nn.Conv2d(1, 4, 3, 1, 1), nn.Conv2d(4, 6, 3, 1, 1), nn.Conv2d(6, 6, 2)
        self.bn = nn.BatchNorm2d(6)
        self.rnn = nn.LSTM(18, 5, 2, bidirectional=True, dropout=0.3)
        self.fc = nn.Linear(10, 7)

    def forward(self, images):
        x = images.unsqueeze(1).float().sub_(127.5).div_(127.5)
        x = F.max_pool2d(F.relu(self.c1(x)), 2, 2)
        x = F.max_pool2d(F.relu(self.bn(self.c2(x))), (2, 2), (2, 1), (0, 1))
        x = F.relu(self.c3(x))
        n, c, h, w = x.shape
        y = self.fc(self.rnn(x.permute(3, 0, 1, 2).reshape(w, n, c * h))[0]).log_softmax(2)
        p, best = y.max(2)
        best = best.transpose(0, 1)
        rep = torch.cat([torch.ones_like(best[:, :1], dtype=torch.bool), best[:, 1:] != best[:, :-1]], 1)
        keep = rep & (best > 0)
        certain = (p.exp().t() * keep).sum(1) / keep.sum(1).clamp(min=1)
        return y, best.to(torch.int16), keep, certain


@attack("x:float32[N,T,5]", "lengths:int64[N]=1:6", dims="N=1:2:4 T=6:8:14")
class ReversedByLengths(nn.Module):
    """Backward direction by hand: rows reversed within their lengths, and the last valid states."""

    def __init__(self):
        super().__init__()
        self.f, self.b = nn.GRU(5, 3, batch_first=True), nn.GRU(5, 3, batch_first=True)

    def forward(self, x, lengths):
        t = torch.arange(x.shape[1])[None]
        idx = torch.where(t < lengths[:, None], lengths[:, None] - 1 - t, t)
        rev = x.gather(1, idx[..., None].expand_as(x))
        f, b = self.f(x)[0], self.b(rev)[0]
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, 3)
        b2 = b.gather(1, idx[..., None].expand(-1, -1, 3))
        m = (t < lengths[:, None]).unsqueeze(-1)
        y = torch.cat([f, b2], -1) * m
        mx = y.masked_fill(~m, torch.finfo(y.dtype).min).amax(1)
        return y, torch.cat([f.gather(1, last), b.gather(1, last)], -1).squeeze(1), mx


@attack("x:float32[N,3,H,W]", dims="N=1:1:2 H=1:5:9 W=1:6:9")
class ReNet(nn.Module):
    """Rows and columns of an image as sequences."""

    def __init__(self):
        super().__init__()
        self.v, self.h = nn.GRU(3, 2, bidirectional=True), nn.GRU(4, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.v(x.permute(2, 0, 3, 1).reshape(h, n * w, c))[0].view(h, n, w, 4)
        z = self.h(y.permute(1, 0, 2, 3).reshape(n * h, w, 4))[0].reshape(n, h, w, 4).permute(0, 3, 1, 2)
        up = F.interpolate(z, size=(h * 2 - 1, w + 2), mode="nearest")
        return z, up, F.pixel_shuffle(z, 2), F.adaptive_max_pool2d(z, (2, 1))


@attack("x:float32[N,T,4]", dims="N=1:1:3 T=1:20:60")
class BeatPeaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(4, 3, batch_first=True, bidirectional=True), nn.Linear(6, 2)

    def forward(self, x):
        a = self.out(self.gru(x)[0]).sigmoid()
        m = F.max_pool1d(a.transpose(1, 2), 7, 1, 3).transpose(1, 2)
        peaks = (a == m) & (a > 0.4)
        k = min(4, x.shape[1])
        s, i = torch.where(peaks, a, a.new_tensor(-1.0)).topk(k, 1)
        times = i.float() * 441 / 44100
        avg = F.avg_pool1d(a.transpose(1, 2), 3, 2, 1, ceil_mode=True)
        return times * (s > 0), avg, peaks.sum(1), a.cumsum(1).cummax(1)[0]
