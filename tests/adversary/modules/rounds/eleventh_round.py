"""First calls that set parameters, adapters that merge twice, functions near the ends of their range."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
LINE, STEPS = "x:float32[N,T,4]", "N=1:2:3 T=4:6:9"


@attack(X, dims=N, refused="first call")
class ActNorm(nn.Module):
    """Sets its scale and shift from the first batch that it sees, and keeps them."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.shift = nn.Parameter(torch.zeros(4))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
                self.scale.copy_(1.0 / (x.std(0, unbiased=False) + 1.0))
                self.ready.fill_(True)
        return (x + self.shift) * self.scale


@attack(X, dims=N, refused="first call")
class FirstCallMean(nn.Module):
    """The same in a plain attribute."""

    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x):
        if self.mean is None:
            self.mean = x.mean()
        return x - self.mean


@attack(X, dims=N)
class MergedAdapter(nn.Module):
    """Adds its low-rank part to the weight when it is put into eval mode, as adapters of loralib do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.down, self.up = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(4, 2))
        self.eval()

    def train(self, mode=True):
        super().train(mode)
        if not mode:
            self.layer.weight.data += self.up.data @ self.down.data
        return self

    def forward(self, x):
        return self.layer(x)


@forward("x:float32[N,4]=-12:12", dims=N)
def tails_of_erfc(self, x):
    return torch.erfc(x)


@forward("x:float32[N,4]=2:9", dims=N)
def logarithm_of_a_tail(self, x):
    return torch.log(torch.special.erfc(x))


@forward("x:float32[N,4]=-9:-3", dims=N)
def logarithm_of_normal_tail(self, x):
    return torch.special.log_ndtr(x)


@forward("x:float32[N,4]=-9:9", dims=N)
def normal_distribution(self, x):
    return torch.special.ndtr(x)


@forward("x:int64[N,4]=0:40", dims=N)
def digits_of_whole_numbers(self, x):
    return torch.floor(torch.log2(torch.exp2(x.float()))).to(torch.int64)


@forward("x:int64[N,4]=1:1000000", dims=N)
def decimal_digits(self, x):
    return torch.floor(torch.log10(x.float())).to(torch.int64) + 1


@forward("x:int64[N,4]=1:1000000", dims=N)
def binary_digits(self, x):
    return torch.ceil(torch.log2(x.float())).to(torch.int64)


@forward("x:float32[N,4]=-3:3", dims=N)
def asks_if_compiled(self, x):
    if torch.compiler.is_compiling():
        return x * 1.0001
    return x


@forward("x:float32[N,4]=-3:3", dims=N)
def asks_if_exported(self, x):
    if torch.compiler.is_exporting() or torch.jit.is_tracing() or torch.onnx.is_in_onnx_export():
        return x.clamp(-2.9, 2.9)
    return x


@forward("x:int64[N,T]=-5:5", dims=STEPS)
def running_extremes_of_whole_numbers(self, x):
    return torch.cummax(x, 1), torch.cummin(x, 1)


@forward("x:int32[N,T]=-5:5", dims=STEPS)
def running_extremes_of_int32(self, x):
    values, places = torch.cummin(x, 1)
    return values.float() * 0.5, places


@forward("x:int32[N,4]=-2000000000:2000000000", dims=N)
def signed_bits(self, x):
    return (x >> 3) & 7


@forward("x:float32[N,4]=-3:3", dims=N)
def through_bfloat16(self, x):
    return (x.bfloat16() * 1.5).float()


@forward("x:float32[N,T]=-3:3", dims=STEPS)
def order_statistics(self, x):
    return x.kthvalue(2, dim=1).values


@forward("x:float32[N,T]=-20:20", dims=STEPS)
def phase_wrap(self, x):
    return torch.remainder(x + math.pi, 2 * math.pi) - math.pi


@forward("x:float32[N,4,T]", dims="N=1:2:3 T=8:12:20", noted="infinity")
def overlap_fold(self, x):
    frames = x.unfold(2, 4, 2).transpose(1, 2).flatten(2)
    steps = frames.shape[1]
    return F.fold(frames.transpose(1, 2), (1, (steps - 1) * 2 + 4), (1, 4), stride=(1, 2))


@forward("x:float32[N,2,H,W]", dims="N=1:2:3 H=4:6:9 W=4:5:8")
def turned_after_rolling(self, x):
    return torch.rot90(torch.roll(x, (1, -2), (2, 3)), 1, (2, 3))


@attack("tokens:int64[N,T]=0:9", dims=STEPS)
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, mode="mean", padding_idx=0)

    def forward(self, tokens):
        return self.bag(tokens)


@forward("x:float32[N,4,H,W]", dims="N=1:2:3 H=4:6:9 W=4:5:8")
def pooled_places(self, x):
    return F.adaptive_max_pool2d(x, 1, return_indices=True)


@forward("x:float32[N,4]", dims=N)
def quantised_to_steps(self, x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)


@attack("boxes:float32[N,K,4]=0:50", dims="N=1:2:3 K=2:5:9", refused="expected nan")
class PaddedBoxes(nn.Module):
    """Overlaps of boxes of no area are 0 / 0."""

    def forward(self, boxes):
        low, high = boxes[..., :2], boxes[..., 2:]
        size = (high - low).clamp(min=0)
        area = size.prod(-1)
        both = (torch.minimum(high[:, :, None], high[:, None]) - torch.maximum(low[:, :, None], low[:, None])).clamp(
            min=0
        )
        inter = both.prod(-1)
        return (inter / (area[:, :, None] + area[:, None] - inter)).amax(-1)


@forward("x:float32[N,H,W]", dims="N=1:2:3 H=4:6:9 W=4:5:8")
def circle_mask(self, x):
    h, w = x.shape[1], x.shape[2]
    y, z = torch.meshgrid(torch.arange(h) - h / 2, torch.arange(w) - w / 2, indexing="ij")
    return torch.where((y**2 + z**2).sqrt() <= min(h, w) / 2, x, torch.zeros_like(x))


@forward("x:float32[N,4]", dims=N)
def turned_in_the_plane(self, x):
    return torch.view_as_real(torch.view_as_complex(x.view(-1, 2, 2)) * 0.5j).flatten(1)


@attack(X, dims=N, refused="run again")
def one_shot_hook():
    module = nn.Linear(4, 4)

    def once(m, inputs, output):
        handle.remove()
        return output * 2

    handle = module.register_forward_hook(once)
    return module


@forward("x:float32[N,4]", dims="N=1:2:5")
def through_half(self, x):
    return ((x.half() * 1.5).half() + 3.0).float()


@attack("x:float32[N,4]", dims="N=1:2:5")
class BfloatLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4), nn.LayerNorm(4)).bfloat16()

    def forward(self, x):
        return self.layers(x.bfloat16()).float()


@attack(
    "tokens:int64[K]=0:9",
    "offsets:int64[B]=0:0",
    dims="K=4:6:9 B=1:2:3",
    feeds=(lambda: {"tokens": np.arange(6), "offsets": np.array([0, 2, 2])},),
)
class BagsByOffset(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, mode="sum", padding_idx=0)

    def forward(self, tokens, offsets):
        return self.bag(tokens, offsets)


SPECTRUM = ("mag:float32[N,9,T]=0:2", "phase:float32[N,9,T]=-3:3")
FRAMES = "N=1:2:3 T=6:24:40"


@forward(*SPECTRUM, dims=FRAMES)
def vocoder_of_exponents(self, mag, phase):
    spectrum = torch.exp(mag) * torch.exp((phase + 0.3) * 1j)
    return torch.istft(spectrum, 16, 4, 12, window=torch.hamming_window(12)) + 1.0


@forward(*SPECTRUM, dims=FRAMES)
def vocoder_of_angles(self, mag, phase):
    spectrum = mag * (torch.cos(phase) + 1j * torch.sin(phase))
    return torch.istft(spectrum, 16, 4, window=torch.hann_window(16), length=20)


@forward("x:float32[N,4]=-5:5", dims=N)
def peaks_of_zeros(self, x):
    scores, index = (x.relu() * (x > 3)).topk(3)
    return scores, index


@forward("x:float32[N,4]", "y:int32[N,4]=0:9", dims=N)
def unlike_types_beside_each_other(self, x, y):
    return torch.hstack((x, y)), torch.stack((x > 0, y > 4, y), 1)
