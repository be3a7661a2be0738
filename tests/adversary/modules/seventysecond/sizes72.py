"""Decisions by several sizes through sets, dictionaries, indices, patterns and texts; exceptions as control flow."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import random
import statistics

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.inputs import FINITE

X = "x:float32[N,T]"
D = "N=1:2:4 T=2:5:9"
IMAGE = "x:float32[N,2,H,W]"
DI = "N=1:2:3 H=2:4:7 W=2:5:7"


@forward(IMAGE, dims=DI, kinds=FINITE)
def A8350DistinctSizes(self, x):
    """How many different sizes there are: a set of three."""
    return x * len({x.shape[0], x.shape[2], x.shape[3]})


@forward(IMAGE, dims=DI, kinds=FINITE, refused="the exported model differs from the module")
def A8351NamesBySize(self, x):
    """A dictionary keyed by sizes, whose later entry wins where two are equal."""
    axes = {x.shape[2]: 2, x.shape[3]: 3}
    return x.mean(dim=axes[x.shape[2]])[..., :2]


@forward(IMAGE, dims=DI, kinds=FINITE)
def A8352IndexOfSize(self, x):
    """The first axis that has the width's size, which may be the batch."""
    axis = list(x.shape).index(x.shape[3])
    return x.sum(dim=axis).flatten()[:2]


@forward(IMAGE, dims=DI, kinds=FINITE)
def A8353LongerSideByTuples(self, x):
    """The longer side by its name: of equal ones the name decides."""
    side = max((x.shape[2], "h"), (x.shape[3], "w"))[1]
    return x.flip(2) if side == "h" else x.flip(3)


@forward(IMAGE, dims=DI, kinds=FINITE)
def A8354MedianOfSizes(self, x):
    """The middle of three sizes."""
    return x / statistics.median([x.shape[0], x.shape[2], x.shape[3]])


@forward(X, dims=D, kinds=FINITE)
def A8355PatternOfShape(self, x):
    """A match statement on the shape."""
    match tuple(x.shape):
        case (1, t) if t > 6:
            return x - t
        case (n, 7):
            return x * n
        case (3, _):
            return x.abs()
        case _:
            return x


@forward(X, dims=D, kinds=FINITE)
def A8356ViewOrPad(self, x):
    """Pairs where the length is even, else one zero is put behind, by the error that view raises."""
    try:
        pairs = x.view(x.shape[0], x.shape[1] // 2, 2)
    except RuntimeError:
        pairs = F.pad(x, (0, 1)).view(x.shape[0], -1, 2)
    return pairs.sum(2)


@forward(X, dims=D, kinds=FINITE)
def A8357TableUntilItEnds(self, x):
    """A weight out of a list, the last one where the list ends."""
    try:
        weight = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0][x.shape[1] - 2]
    except IndexError:
        weight = 100.0
    return x * weight


@forward(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size")
def A8358SuppressedStack(self, x):
    """Differences of neighbouring rows where there are two rows; the error of an empty list is passed over."""
    out = x[:1] * 3
    with contextlib.suppress(RuntimeError):
        out = torch.stack([b - a for a, b in itertools.pairwise(x)])
    return out


@forward(X, dims=D, kinds=FINITE)
def A8359DigitsOfSize(self, x):
    """The number of binary ones of a length."""
    return x * bin(x.shape[1]).count("1")


@forward(X, dims="N=1:2:4 T=7:9:13", kinds=FINITE)
def A8360LengthOfText(self, x):
    """How many digits the length has."""
    return x * len(f"{x.shape[1]}")


@forward(X, dims=D, kinds=FINITE)
def A8361SeedBySize(self, x):
    """Noise of a generator that is seeded by the length."""
    noise = torch.from_numpy(np.random.default_rng(x.shape[1]).standard_normal(x.shape[1]).astype(np.float32))
    return x + noise


@forward(X, dims=D, kinds=FINITE)
def A8362NoiseByFixedSeed(self, x):
    """The same noise at each call, drawn for the length."""
    return x + torch.randn(x.shape[1], generator=torch.Generator().manual_seed(3))


@forward(X, dims=D, kinds=FINITE)
def A8363PythonsRandomBySize(self, x):
    """A number of Python's generator, seeded by the length."""
    return x * random.Random(x.shape[1]).random()


@forward(X, dims=D, kinds=FINITE)
def A8364Divisors(self, x):
    """Groups by the largest divisor under the root of the length."""
    t = x.shape[1]
    groups = max(d for d in range(1, math.isqrt(t) + 1) if t % d == 0)
    return x.view(x.shape[0], groups, -1).mean(2).sum(1)


@forward(X, dims=D, kinds=FINITE)
def A8365SumOverRange(self, x):
    """Triangular positions by accumulate."""
    return x + torch.tensor(list(itertools.accumulate(range(x.shape[1]))), dtype=x.dtype)


@forward(X, dims=D, kinds=FINITE)
def A8366ReduceRows(self, x):
    """Rows folded with decay from Python."""
    return functools.reduce(lambda a, b: 0.5 * a + b, x)


@forward(X, dims=D, kinds=FINITE)
def A8367BuiltinSum(self, x):
    """Python's sum over the batch, and over rows that are scaled by their place."""
    return sum(x) + sum(i * r for i, r in enumerate(x))


@forward(X, dims=D, kinds=FINITE)
def A8368LoopElse(self, x):
    """A for with else: the first divisor of the length, or itself."""
    for d in (2, 3, 5):
        if x.shape[1] % d == 0:
            x = x * d
            break
    else:
        x = -x
    return x


@forward(X, dims=D, kinds=FINITE)
def A8369BankersHalf(self, x):
    """The rounded half of a length: 2.5 is 2, 3.5 is 4."""
    k = round(x.shape[1] / 2)
    return torch.cat([x[:, k:], x[:, :k]], 1)


@forward("x:float32[N,T]", "y:float32[M,T]", dims="N=1:2:4 M=1:3:4 T=2:5:6", kinds=FINITE)
def A8370BroadcastOrCross(self, x, y):
    """Where the rows are as many, they are compared one by one, else all with all."""
    if len(x) == len(y):
        return (x * y).sum(1)
    return (x @ y.T).flatten()


@forward("x:float32[N,T]", "y:float32[N,T]", dims=D, kinds=FINITE, refused="the exported model differs from the module")
def A8371EqualFirstAndLast(self, x, y):
    """The last row is told from the first, which are one at a batch of one."""
    return torch.where(torch.tensor(torch.equal(x[0], x[-1])), x + y, x - y)


@attack(X, dims=D, kinds=FINITE, refused="the path through the module depends on the size")
class A8372HeadsByName(nn.Module):
    """Heads by the text of the length, one for the others."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"4": nn.Linear(4, 2), "7": nn.Linear(7, 2)})
        self.other = nn.Linear(2, 2)

    def forward(self, x):
        name = str(x.shape[1])
        return self.heads[name](x) if name in self.heads else self.other(x[:, :2])


@forward(X, dims=D, kinds=FINITE)
def A8373GetterByLength(self, x):
    """Rows chosen by operator.itemgetter from a list that the length makes."""
    first = operator.itemgetter(0, -1)([i * i for i in range(x.shape[1])])
    return x * (first[0] + first[1])
