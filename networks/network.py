"""What an entry of the registry is: a network of a public package, its inputs and the shapes that a user would give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

# Sizes are smaller than a user's, so that a conversion takes a minute on a laptop; their steps are the networks' own.
IMAGE = ("x:float32[N,3,H,W]",)
PIXELS = "N=1:2:4 H=64:96:160%32 W=64:128:160%32"
ANY_PIXELS = "N=1:2:4 H=63:96:131 W=64:101:140"


@dataclass(frozen=True)
class Network:
    """`make` builds it with random weights; `inputs` and `space` are written as on the command line.

    `plain` networks are taken as their constructor leaves them, without `networks.weights.enliven`.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: tuple[str, ...] = IMAGE
    space: str = PIXELS
    plain: bool = False


def batch_only(size: int) -> dict[str, object]:
    """Inputs and space of a classifier that takes square images of one size."""
    return {"inputs": (f"x:float32[N,3,{size},{size}]",), "space": "N=1:2:4"}
