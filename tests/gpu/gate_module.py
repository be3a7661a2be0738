"""The networks of the tests of the gate. `trtconv export` reads them where torch is; the tests look up their lines."""

import itertools

import torch
from torch import nn


class Unit(nn.Module):
    """Every position's channels divided by their length."""

    def forward(self, x):
        length = x.pow(2).sum(dim=1, keepdim=True).sqrt()
        return x / (length + 1e-10)  # line: epsilon


class Head(nn.Module):
    """The pooled features, flattened."""

    def forward(self, x):
        x = nn.functional.max_pool2d(x, 2)
        return x.flatten(2)  # line: flatten


class Net(nn.Module):
    """Convolutions, a normalisation and a head over images[N,3,H,W]."""

    def __init__(self, depth=4, channels=16):
        super().__init__()
        widths = [3] + [channels] * depth
        self.stem = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in itertools.pairwise(widths))
        self.unit = Unit()
        self.head = Head()

    def forward(self, images):
        x = images
        for layer in self.stem:
            x = torch.relu(layer(x))  # line: relu
        return self.head(self.unit(x))


class Waves(nn.Module):
    """A sine of large arguments, which TensorRT 8.6 computes wrongly unless a rule stands in the way."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, images):
        wave = torch.sin(images * 4096.0)  # line: sine
        return torch.relu(self.conv(images)) + wave


class Pick(nn.Module):
    """Decisions, which fall to the other side at denormal inputs where a GPU takes those for zero."""

    def forward(self, images):
        return images.argmax(dim=1), torch.floor(images)


def make_pick():
    """The decisions."""
    return Pick().eval()


def make_net():
    """The network with weights of a fixed seed."""
    torch.manual_seed(0)
    return Net().eval()


def make_waves():
    """The waves with weights of a fixed seed."""
    torch.manual_seed(0)
    return Waves().eval()
