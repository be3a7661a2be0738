"""A value leaves torch for Python, in whatever way, and Python decides by it."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"


@forward(X, dims=N, refused="depends on the values")
def item_window(self, x):
    peak = x.abs().amax().item()
    return x * 0.5 if 20 < peak < 400 else x


@forward(X, dims=N, refused="depends on the values")
def float_of_mean(self, x):
    return x - 1 if 0.4 < float(x.mean()) < 0.6 else x + 1


@forward(X, dims=N)
def int_of_sum(self, x):
    return x * (int(x.sum()) % 7)


@forward(X, dims=N, refused="depends on the values")
def tolist_sorted(self, x):
    first = x[0].tolist()
    return x.cumsum(1) if first == sorted(first) else x


@forward(X, dims=N, refused="differs from the module")
def numpy_percentile(self, x):
    low, high = np.percentile(x.numpy(), [5, 95])
    return (x - float(low)) / (float(high) - float(low) + 1e-6)


@forward("x:float32[N,4]", "k:int64[1]=0:3", dims=N, refused="differs from the module")
def index_of_tensor(self, x, k):
    columns = ["a", "b", "c", "d"]
    return x[:, columns.index(columns[k])]


@forward("x:float32[N,8]", "n:int64[]=1:8", dims=N, refused="depends on the values")
def range_of_value(self, x, n):
    total = x[:, 0]
    for i in range(int(n)):
        total = total + x[:, i]
    return total


@forward(X, dims=N)
def bool_of_comparison(self, x):
    if bool((x[0, 0] > 3.7) & (x[0, 1] < 3.8)):
        return -x
    return x


@forward(X, dims=N, noted="infinity")
def all_finite_else_zero(self, x):
    return x if bool(torch.isfinite(x).all()) else torch.zeros_like(x)


@forward(X, dims=N, refused="depends on the values")
def any_negative(self, x):
    if (x < 0).any():
        return x - x.min()
    return x


@forward(X, dims=N, refused="depends on the values")
def while_larger(self, x):
    while 1000 < x.abs().max() < 1e30:
        x = x / 10
    return x


@forward(X, dims=N, refused="differs from the module")
def argmax_picks_operation(self, x):
    operations = [torch.sin, torch.cos, torch.tanh, torch.exp]
    return operations[int(x[0].argmax())](x.clamp(-3, 3))


@forward(X, dims=N)
def nonzero_count(self, x):
    count = (x > 2).nonzero().shape[0]
    return x + count


@forward(X, dims=N)
def masked_select_length(self, x):
    return x * len(x[x > 2.5])


@forward(X, dims=N)
def unique_count(self, x):
    return x / x.unique().numel()


@forward("x:int64[N,4]=0:9", dims=N)
def bincount_mode(self, x):
    counts = x.flatten().bincount(minlength=10)
    return x - counts.argmax()


@forward(X, dims=N, refused="depends on the values")
def try_except_by_value(self, x):
    try:
        return x / (1 if x.max() < 100 else 0)
    except ZeroDivisionError:
        return x * 2


@forward(X, dims=N, refused="depends on the values")
def equal_rows(self, x):
    return x + 1 if x.shape[0] > 1 and torch.equal(x[0], x[1]) else x


@forward(X, dims=N, refused="depends on the values")
def allclose_to_rounded(self, x):
    return x.round() if torch.allclose(x, x.round()) else x


@forward(X, dims=N, refused="depends on the values")
def contains_zero(self, x):
    return x + 1 if 0 in x else x - 1


@forward(X, dims=N, refused="depends on the values")
def format_decides(self, x):
    return -x if f"{x[0, 0]:.0f}".startswith("-2") else x


@forward(X, dims=N, refused="depends on the values")
def math_isclose(self, x):
    return x * 3 if math.isclose(x[0, 0].item(), 1.0, rel_tol=1e-9) else x


@forward(X, dims=N)
def min_of_python(self, x):
    return min(x[0, 0], x[0, 1]) + x


@forward(X, dims=N, refused="differs from the module")
def max_of_list(self, x):
    return x - max(x[0])


@forward(X, dims=N, refused="differs from the module")
def sorted_list(self, x):
    return torch.stack(sorted(x[0], key=float)) + x


@forward(X, dims=N)
def python_sum_of_list(self, x):
    return sum(x[0]) + x


@forward(X, dims=N, refused="differs from the module")
def round_of_item(self, x):
    return x + round(x[0, 0].item(), 1)


@forward(X, dims=N, noted="infinity")
def dtype_by_value(self, x):
    y = x.to(torch.int32) if x.abs().max() < 2**15 else x
    return y.to(torch.float32)


@forward(X, dims=N, refused="differs from the module")
def dict_of_rounded(self, x):
    table = {-1: 5.0, 0: 1.0, 1: 2.0, 2: 4.0}
    return x * table.get(round(float(x[0, 0])), 0.25)


@forward(X, dims=N, refused="depends on the values")
def not_of_tensor(self, x):
    return -x if not x[0, 0].gt(-2.2) else x


@forward(X, dims=N, refused="depends on the values")
def and_chain(self, x):
    low, high = x.min(), x.max()
    return x / 255 if low >= 0 and high > 1 else x


@forward(X, dims=N, refused="depends on the values")
def ternary_of_std(self, x):
    return (x - x.mean()) / (x.std() if x.std() > 1e-4 else 1.0)


@forward(X, dims=N, refused="the module looks its size up in a dictionary or a set")
def hash_of_values(self, x):
    return x * (hash(tuple(x[0].round().int().tolist())) % 3 == 0)


@forward(X, dims=N, refused="differs from the module")
def where_of_python_bool(self, x):
    return torch.where(torch.tensor(bool(x.sum() > 9)), x, -x)


@forward(X, dims=N, refused="differs from the module")
def memoryview_reads(self, x):
    return x + np.asarray(x)[0, 0].astype(np.float32).item()


@forward(X, dims=N, refused="differs from the module")
def from_numpy_back(self, x):
    return torch.from_numpy(np.sign(x.numpy()) * np.sqrt(np.abs(x.numpy())))


@forward(X, dims=N)
def tensor_of_item(self, x):
    return x * torch.tensor(x[0, 0].item())


@forward(X, dims=N)
def assert_on_value(self, x):
    assert x.max() < 1e9
    return x * 2


@forward(X, dims=N, refused="depends on the values")
def early_return_all_zero(self, x):
    if not x.any():
        return torch.full_like(x, -1.0)
    return x / x.abs().max()


@forward(X, dims=N, refused="depends on the values")
def count_nonzero_steps(self, x):
    for _ in range(int((x > 2).sum())):
        x = x + 1
    return x


class Stateless(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)


@attack(X, dims=N, refused="depends on the values")
class EarlyExit(Stateless):
    """A confident first layer ends the network."""

    def forward(self, x):
        first = self.layer(x).softmax(-1)
        if first.max(-1).values.min() > 0.95:
            return first
        return self.layer(first).softmax(-1)


@attack(X, "mask:bool[N]", dims=N)
class ExpertsOfRows(Stateless):
    """Only rows that are routed are computed, and nothing when there are none."""

    def forward(self, x, mask):
        result = torch.zeros_like(x)
        rows = mask.nonzero().squeeze(1)
        if rows.numel() > 0:
            result[rows] = self.layer(x[rows])
        return result


@attack(X, dims=N, refused="depends on the values")
class CopyInIf(Stateless):
    def forward(self, x):
        y = x.clone()
        if y.sum() < -100:
            y.zero_()
        return self.layer(y)
