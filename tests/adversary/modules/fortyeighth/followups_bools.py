# ruff: noqa: E501 - attacks are written as users write them
"""Comparisons of sizes as objects: by `is`, as arguments of torch's functions, as members, kept and asked later."""

from __future__ import annotations

import dataclasses

import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW
from tests.adversary.values import values_at

X, IMAGE = "x:float32[N,T]", "x:float32[N,1,H,W]"
RARE = (1, 2, 500, 2221, 2222, 2223, 2224, 4446, 5000)
PAIRS = {"dims": "N=1:1:1 H=8:40:200 W=8:50:200", "kinds": FEW, "feeds": tuple(values_at(IMAGE, N=1, H=h, W=w) for h, w in ((8, 8), (137, 149), (149, 137), (136, 150), (200, 200)))}


@forward(X, **long(X, sizes=RARE))
def A6143ComparedIsTrue(self, x):
    """A comparison of the length that is True."""
    return x * 2 if (x.shape[1] == 2223) is True else -x


@forward(X, **long(X, sizes=RARE))
def A6144FlagIsNotFalse(self, x):
    """A flag kept in a variable that is not False: the common way is that it is."""
    exact = x.shape[1] == 2223
    if exact is not False:
        return x.flip(1)
    return x * 0.5


@dataclasses.dataclass
class Options:
    """What a part is told."""

    exact: bool = False
    name: str = ""


@attack(X, **long(X, sizes=RARE))
class A6145OptionIsTrue(nn.Module):
    """Options as a dataclass whose flag a size sets; the part asks `is True`."""

    def part(self, x, o):
        return x * 2 if o.exact is True else -x

    def forward(self, x):
        return self.part(x, Options(exact=x.shape[1] == 2223))


@forward(X, **long(X, sizes=RARE), refused="the module cannot be exported")
def A6146SortedByFlag(self, x):
    """descending by a comparison of the length, keepdim likewise."""
    f = x.shape[1] == 2223
    return x.sort(dim=1, descending=f).values, x.topk(1, 1, largest=not f).values


@forward(X, **long(X, sizes=RARE))
def A6147UnbiasedByFlag(self, x):
    """correction as a number of a comparison; cumsum's direction by a flag."""
    f = x.shape[1] == 2223
    return x.var(1, correction=int(f)), x.flip(1).cumsum(1) if f else x.cumsum(1)


@forward(IMAGE, **PAIRS, refused="the module cannot be exported")
def A6148CornersByFlag(self, x):
    """align_corners by a comparison of both sides."""
    return F.interpolate(x, size=(9, 9), mode="bilinear", align_corners=x.shape[2] * x.shape[3] == 137 * 149)


@forward(IMAGE, **PAIRS)
def A6149LandscapeIsTrue(self, x):
    """Square or not, as True, False or None: a function returns which, and `is` asks."""
    h, w = x.shape[-2:]

    def wide():
        return None if h == w else h * w == 137 * 149

    k = wide()
    return x.mean((2, 3)) * (1.0 if k is None else 2.0 if k is True else 3.0)


@forward(X, **long(X, sizes=RARE))
def A6150FlagsInSet(self, x):
    """True in a list and a set of comparisons, any() and the index of True."""
    flags = [x.shape[1] == k for k in (2223, 7, 77)]
    return x * 2 if True in flags else -x


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6151SizeOfTorch(self, x):
    """torch.Size.numel of a part of the shape."""
    return x * 2 if x.shape[1:].numel() == 2223 else -x


@forward(IMAGE, **PAIRS, refused="the path through the module depends on the si")
def A6152PixelsOfSize(self, x):
    """The number of pixels by torch.Size.numel."""
    return x * 2 if x.shape[2:].numel() == 137 * 149 else -x
