"""One joint size among thousands, asked for in ways that are no comparison of sizes."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.adversary.attack import Feed, forward

HW = "H=4:8:60 W=5:9:61"
IMAGE, VIDEO = "x:float32[1,2,H,W]", "x:float32[1,T,4]"


def rare() -> Feed:
    """The joint size that all of these ask for."""
    return {"x": np.random.default_rng(3).standard_normal((1, 2, 13, 47)).astype(np.float32)}


def turned() -> Feed:
    """The same count of elements."""
    return {"x": np.random.default_rng(3).standard_normal((1, 2, 47, 13)).astype(np.float32)}


OWN = {"dims": HW, "feeds": (rare, turned)}


@forward(IMAGE, **OWN)
def equal_torch_size(self, x):
    return x * 2 if x.shape == torch.Size([1, 2, 13, 47]) else x


@forward(IMAGE, **OWN, refused="depends on the size")
def shape_in_list(self, x):
    return x - 1 if tuple(x.shape[2:]) in [(13, 47), (28, 28)] else x


@forward(IMAGE, **OWN, refused="depends on the size")
def size_in_print(self, x):
    return x.neg() if str(list(x.shape[2:])) == "[13, 47]" else x


@forward(IMAGE, **OWN)
def stride_of_channel(self, x):
    return x.flip(3) if x.contiguous().stride(1) == 13 * 47 and x.stride(2) == 47 else x


@forward(IMAGE, **OWN, refused="depends on the size")
def lengths_of_lists(self, x):
    rows, columns = [0] * x.shape[2], "-" * x.shape[3]
    return x.exp() if len(rows) * 100 + len(columns) == 1347 else x


@forward(IMAGE, **OWN)
def bytes_of_storage(self, x):
    return x.abs() if x.element_size() * x.nelement() == 4 * 2 * 13 * 47 and len(x[0, 0]) < 20 else x


@forward(IMAGE, **OWN)
def tensor_of_sizes(self, x):
    sizes = torch.tensor(x.shape[2:])
    return x * torch.where((sizes == torch.tensor([13, 47])).all(), 3.0, 1.0)


@forward(IMAGE, **OWN)
def sizes_through_tensors(self, x):
    h, w = torch.ones(x.shape[2]).sum(), torch.arange(x.shape[3])[-1]
    return x * (1 + ((h == 13) & (w == 46)).float())


@forward(IMAGE, **OWN, refused="H=13")
def integer_type_of_size(self, x):
    h, w = x.shape[2:]
    if isinstance(h, int) and isinstance(w, int) and h * 61 + w == 13 * 61 + 47:
        return x.relu()
    return x


@forward(IMAGE, **OWN, refused="depends on the size")
def ratio_near(self, x):
    return x.sigmoid() if math.isclose(x.shape[3] / x.shape[2], 3.6154, abs_tol=1e-4) else x


@forward(IMAGE, **OWN, refused="depends on the size")
def compared_as_tuples(self, x):
    return x * 2 if (13, 46) < tuple(x.shape[2:]) < (13, 48) else x


@forward(IMAGE, **OWN)
def sides_by_numpy(self, x):
    sides = np.array([x.shape[2], x.shape[3]])
    return x + 1 if int((sides - [13, 47]).__abs__().sum()) == 0 else x


@forward(VIDEO, dims="T=8:30:300")
def frames_sampled(self, x):
    return x[:, torch.linspace(0, x.shape[1] - 1, 8).long()]


@forward(VIDEO, dims="T=8:30:300")
def frames_rounded(self, x):
    return x[:, torch.linspace(0, x.shape[1] - 1, 16).round().long()]


@forward(VIDEO, dims="T=8:30:300")
def bins_of_steps(self, x):
    """Each step's bin of seven by floats."""
    t = x.shape[1]
    place = (torch.arange(t) * (7 / t)).floor().long()
    return torch.zeros(1, 8, 4).index_add(1, place, x), place


@forward(VIDEO, dims="T=8:30:300", refused="differs from the module")
def linear_ramp_floored(self, x):
    return (torch.linspace(0, 1, x.shape[1]) * 10).floor(), torch.linspace(-1, 1, x.shape[1]).abs() < 1e-8


@forward(VIDEO, dims="T=8:30:300", refused="differs from the module")
def steps_by_tenths(self, x):
    return torch.arange(0, x.shape[1] * 0.1, 0.1), torch.arange(x.shape[1], 0, -3)


@forward(VIDEO, dims="T=8:30:300", noted="infinity")
def thirds_nearest(self, x):
    y = x.transpose(1, 2)
    return (
        F.interpolate(y, scale_factor=1 / 3, mode="nearest"),
        F.interpolate(y, size=x.shape[1] * 2 // 3, mode="nearest-exact"),
        F.interpolate(y, scale_factor=0.7, mode="linear", recompute_scale_factor=True),
    )


@forward(VIDEO, dims="T=8:30:300")
def frequencies_of_size(self, x):
    return torch.fft.rfftfreq(x.shape[1], d=0.25)[1], torch.fft.fftshift(x, 1), torch.bartlett_window(x.shape[1])
