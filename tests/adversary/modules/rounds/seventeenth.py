"""Rounds seventeen to nineteen: sizes that are values, threads and capsules that nobody watched, and false refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.dlpack import to_dlpack

from tests.adversary.attack import attack, forward

IDS, N_T = "x:int64[N,T]=0:900", "N=1:2:3 T=1:5:9"
BY_VALUE = "depends on the values"


@forward(IDS, dims=N_T, refused=BY_VALUE)
def entries_of_a_sparse_mask(self, x):
    return x.float() * (2 if (x == 777).float().to_sparse()._nnz() > 0 else 1)


@forward(IDS, dims=N_T, refused=BY_VALUE)
def parts_of_a_sparse_mask(self, x):
    return x.float() * (2 if (x == 777).to_sparse().indices().shape[1] else 1)


@forward(IDS, dims=N_T, refused=BY_VALUE)
def columns_of_a_compressed_mask(self, x):
    return x.float() * (2 if (x == 777).float().to_sparse_csr().col_indices().shape[0] else 1)


@forward("x:float32[N,T]", dims="N=1:2:3 T=4:6:9", refused=BY_VALUE)
def density_of_activations(self, x):
    density = F.relu(x).to_sparse()._nnz() / x.numel()
    return x / (1 if density > 0.05 else 2)


@forward("x:float32[N,T,3]", IDS.replace("x:", "ids:"), dims="N=1:2:3 T=2:5:9", refused=BY_VALUE)
def tokens_that_are_masked(self, x, ids):
    row, _ = torch.where(ids == 103)
    if len(row) == 0:
        return x
    return x + 1


@forward("x:int64[T]=0:900", dims="T=1:5:9", refused=BY_VALUE)
def frames_of_durations(self, x):
    frames = torch.repeat_interleave(torch.arange(x.shape[0]), x)
    return x.float() * (2 if frames.shape[0] == 777 else 1)


def long_odd_feed():
    return {
        "x": np.random.default_rng(0).standard_normal((1, 7, 4)).astype(np.float32),
        "d": np.array([30, 30, 30, 30, 30, 30, 21], np.int64),
    }


@forward("x:float32[1,T,4]", "d:int64[T]=0:30", dims="T=1:6:12", noted="reads values", feeds=(long_odd_feed,))
def length_regulator(self, x, d):
    y = torch.repeat_interleave(x, d, dim=1)
    if y.size(1) > 200 and y.size(1) % 2 == 1:
        y = F.pad(y, (0, 0, 0, 1), value=1.0)
    return y.sum(1)


@forward("x:float32[N,T]=0:900", dims=N_T, refused=BY_VALUE)
def scale_of_a_dynamic_quantiser(self, x):
    scale = torch.quantize_per_tensor_dynamic(x, torch.quint8, False).q_scale() * 255
    return x * 2 if 300 < scale < 310 else x * 1.5


@forward(IDS, dims=N_T, refused=BY_VALUE)
def decided_in_a_pool(self, x):
    with ThreadPoolExecutor(1) as pool:
        hit = pool.submit(lambda: bool((x == 777).any().item())).result()
    return x.float() * 2 if hit else x.float()


@forward(IDS, dims=N_T, refused=BY_VALUE)
def decided_in_a_thread(self, x):
    hits = []
    thread = Thread(target=lambda: hits.append((x == 777).any().item()))
    thread.start()
    thread.join()
    return x.float() * 2 if hits[0] else x.float()


@attack(IDS, dims=N_T, refused=BY_VALUE)
class MemoryOfAnArray(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("top", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.view = self.top.numpy()

    def forward(self, x):
        self.top.copy_((x == 777).sum().view(1))
        return x.float() * 2 if self.view[0] > 0 else x.float()


@forward(IDS, dims=N_T, refused=BY_VALUE)
def matrix_without_inverse(self, x):
    try:
        torch.linalg.inv(torch.diag_embed((x - 777).float()))
    except RuntimeError:
        return x.float() * 2
    return x.float()


@attack(IDS, dims=N_T, refused=BY_VALUE)
class TokensOutsideOfTheTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1001, 4)

    def forward(self, x):
        try:
            self.table(x * (1 + 9 * (x == 777)))
        except IndexError:
            return x.float() * 2
        return x.float()


@forward("x:float32[N,5,T]", "t:int64[N,T]=-1:4", dims="N=1:2:3 T=2:5:9")
def loss_in_units_of_the_type(self, x, t):
    loss = F.cross_entropy(x, t, label_smoothing=0.02, ignore_index=-1, reduction="none")
    return loss / torch.finfo(x.dtype).eps * 1e-7


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9")
class PartThatKnowsItsParent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.linear = torch.ones(4), nn.Linear(4, 4)
        self.callbacks = [lambda t: self.note(t)]

    def note(self, t):
        self.gate = t.mean((0, 1))
        return t

    def forward(self, x):
        return self.callbacks[0](self.linear(x)) * self.gate


@forward("e:float32[N,T]", "m:bool[N,T]", dims="N=1:2:3 T=2:5:9")
def energies_masked_in_their_data(self, e, m):
    scores = e * 2
    scores.data.masked_fill_(m & (torch.arange(e.shape[1]) > 0), -float("inf"))
    return scores.softmax(1)


@forward("r:float32[N,3,T]", "i:float32[N,3,T]", dims="N=1:2:3 T=2:5:9")
def spatial_covariance(self, r, i):
    x = torch.complex(r, i)
    return torch.view_as_real(torch.einsum("nct,net->nce", x, x.conj()))


@forward("r:float32[N,T]", "i:float32[N,T]", dims="N=1:2:3 T=4:6:9")
def first_bins_conjugated(self, r, i):
    spectrum = torch.complex(r, i)
    changed = spectrum * 0.5
    changed[:, :3] = spectrum[:, :3].conj()
    return torch.view_as_real(changed)


@forward("x:float32[N,T,3]", "m:bool[T]", dims="N=1:2:3 T=3:6:11")
def one_channel_behind_a_mask(self, x, m):
    y = x.clone()
    y[:, m, 0] = -1.0
    return y


@forward("x:float32[N,K,4]", dims="N=1:2:3 K=1:5:9")
def interactions_of_all_pairs(self, x):
    products = x @ x.mT
    rows, columns = torch.tril_indices(x.shape[1], x.shape[1])
    return products[:, rows, columns]


class Capsule:
    """What NumPy asks for an array, answered with a capsule that a C function made."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@forward(IDS, dims=N_T, refused=BY_VALUE)
def capsule_of_a_tensor(self, x):
    return x.float() * (2 if 777 in np.from_dlpack(Capsule(to_dlpack(x))) else 1)


@forward("x:uint8[N,T]=0:255", dims=N_T)
def bytes_shifted(self, x):
    return x >> 3, (x >> 1) + 3, x << 2, x >> 0, x >> 7


@forward("x:float32[N,3,T]", dims="N=1:2:3 T=4:9:12")
def best_of_all_classes(self, x):
    """As CenterNet decodes its heat map."""
    scores, indices = torch.topk(x, 4)
    best, which = torch.topk(scores.view(x.shape[0], -1), 4)
    return best, indices.view(x.shape[0], -1).gather(1, which), which // 4


@forward("x:float32[N,3,T]", dims="N=1:2:3 T=4:9:12")
def middle_of_transposed_rows(self, x):
    middle = x.transpose(1, 2).median(dim=2)
    return middle.values.view(-1) * 2, x.transpose(1, 2).kthvalue(2, dim=1).values.view(-1, 1)


@forward("x:float32[N,T]=-3.14159:3.14159", dims="N=1:2:3 T=2:9:20")
def unwrapped_phase(self, x):
    """As numpy.unwrap; a running sum of T - 1 steps, of which there may be one."""
    steps = x.diff(dim=1)
    turns = torch.remainder(steps + torch.pi, 2 * torch.pi) - torch.pi - steps
    return x + F.pad(turns.where(steps.abs() > torch.pi, 0.0).cumsum(1), (1, 0))


class SymmetricWeight(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).mT


@attack("x:float32[N,3,T]", dims="N=1:2:3 T=4:8:12")
class ParametrizedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        parametrizations = nn.utils.parametrizations
        self.first = parametrizations.weight_norm(nn.Conv1d(3, 4, 3))
        self.second = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.third = parametrizations.orthogonal(nn.Linear(4, 4, bias=False))
        self.fourth = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.fourth, "weight", SymmetricWeight())

    def forward(self, x):
        return self.fourth(self.third(self.second(self.first(x).transpose(1, 2)).relu()))
