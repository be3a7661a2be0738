# ruff: noqa: E501, UP031 - attacks are written as users write them
"""Sizes that become plain numbers in C, and one rare size that decides: within wide ranges."""

from __future__ import annotations

import operator

import numpy as np
import torch.nn.functional as F

from tests.adversary.attack import forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import FEW
from tests.adversary.values import values_at

X, IMAGE = "x:float32[N,T]", "x:float32[N,1,H,W]"
RARE = (1, 2, 500, 2221, 2222, 2223, 2224, 4446, 5000)


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6133TableOfNumpy(self, x):
    """A table of NumPy by the length: its size decides whether a longer one is needed."""
    table = np.zeros((x.shape[1], 2), np.float32)
    return x * 2 if table.shape[0] == 2223 else -x


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6134ListOfLength(self, x):
    """A list as long as the input, whose length is compared."""
    pads = [0] * x.shape[1]
    return x * 2 if len(pads) == 2223 else -x


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6135StartsOfWindows(self, x):
    """Starts of windows as a list; at one length their last is just so."""
    starts = list(range(0, x.shape[1], 7))
    return x.flip(1) if starts[-1] == 2219 and x.shape[1] % 7 == 4 else x * 0.5


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6136IndexOfLength(self, x):
    """operator.index of the length, as libraries normalise a size."""
    n = operator.index(x.shape[1])
    return x * 2 if n == 2223 else -x


@forward(X, **long(X, sizes=RARE), refused="the exported model differs from the module")
def A6137FormattedByPercent(self, x):
    """The length in a text by %d, as a key."""
    return x * {"len2223": 2.0}.get("len%d" % x.shape[1], -1.0)


@forward(X, **long(X, sizes=RARE), refused="the path through the module depends on the si")
def A6138IntegerOfNumpy(self, x):
    """The length as np.int64, its power modulo a thousand."""
    n = np.int64(x.shape[1])
    return x * 2 if n * n == 2223 * 2223 else -x


@forward(IMAGE, dims="N=1:1:1 H=8:40:200 W=8:50:200", kinds=FEW, feeds=tuple(values_at(IMAGE, N=1, H=h, W=w) for h, w in ((8, 8), (111, 111), (111, 112), (137, 149), (149, 137), (136, 150), (200, 200), (199, 101))), refused="the path through the module depends on the si")
def A6139PixelsOfNumpy(self, x):
    """The number of pixels by a mask of NumPy: one joint size and its mirror decide."""
    m = np.ones(x.shape[-2:], bool)
    return x * 2 if m.size == 137 * 149 else -x


@forward(IMAGE, dims="N=1:1:1 H=8:40:200 W=8:50:200", kinds=FEW, feeds=tuple(values_at(IMAGE, N=1, H=h, W=w) for h, w in ((8, 8), (111, 111), (137, 149), (149, 137), (136, 150), (200, 200))), refused="the path through the module depends on the si")
def A6140TilesOfLists(self, x):
    """Tiles by lists of starts: one joint size has their last at these places."""
    ys, xs = list(range(0, x.shape[2], 3)), list(range(0, x.shape[3], 5))
    k = (ys[-1], xs[-1]) == (135, 145)
    return F.pad(x, (1, 1)) if k and x.shape[2] % 3 == 2 and x.shape[3] % 5 == 4 else F.pad(x * 2, (1, 1))


@forward(X, **long(X, sizes=RARE))
def A6141BytesOfInput(self, x):
    """The bytes of the input decide, as where memory is budgeted."""
    return x * 2 if x[:1].nbytes == 4 * 2223 else -x


@forward(X, **long(X, sizes=RARE), refused="the exported model differs from the module")
def A6142SlicesOfPython(self, x):
    """slice.indices of the length gives the start of the last three."""
    a, b, s = slice(-3, None).indices(x.shape[1])
    return x * 2 if a == 2220 else x[:, a:b:s].sum(1, keepdim=True) - x
