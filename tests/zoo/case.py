"""What a zoo case is: a small module with one construct, its inputs and the shapes that it must be right at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

IMAGE = "x:float32[N,8,H,W]"
TWO = ("x:float32[N,8,H,W]", "y:float32[N,8,H2,W2]")
PIXELS = "N=1:2:5 H=17:32:61 W=19:48:67"
SMALL = "N=1:2:5 H=6:16:30 W=7:20:33"
LINE = "x:float32[N,T,16]"
STEPS = "N=1:2:5 T=5:16:40"


@dataclass(frozen=True)
class Case:
    """`build` makes the module; `inputs` and `space` are written as on the command line."""

    name: str
    build: Callable[[], nn.Module]
    inputs: tuple[str, ...] = (IMAGE,)
    space: str = PIXELS
    precision: str = "fp32"
    nms: str = "native"


class Function(nn.Module):
    """A module that computes a function of its inputs, with parameters of its own when `parts` are given."""

    def __init__(self, function: Callable[..., Any], parts: dict[str, nn.Module] | None = None) -> None:
        super().__init__()
        self.function = function
        for name, part in (parts or {}).items():
            self.add_module(name, part)

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Function2(nn.Module):
    """The same for two inputs, `x` and `y`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any) -> Any:
        return self.function(x, y)


def of(name: str, function: Callable[..., Any], inputs: str | tuple[str, ...] = IMAGE, space: str = PIXELS) -> Case:
    """A case that is one function of one input, or of two."""
    listed = (inputs,) if isinstance(inputs, str) else inputs
    make = Function if len(listed) == 1 else Function2
    return Case(name, lambda: make(function), listed, space)


def module(
    name: str, build: Callable[[], nn.Module], inputs: str | tuple[str, ...] = IMAGE, space: str = PIXELS
) -> Case:
    """A case that is a module; one with a forward of its own names its inputs, torch's layers get `x`."""
    listed = (inputs,) if isinstance(inputs, str) else inputs

    def build_layer() -> nn.Module:
        inner = build()
        return inner if type(inner).__module__.startswith("tests.zoo") or len(listed) > 1 else Layer(inner)

    return Case(name, build_layer, listed, space)


class Layer(nn.Module):
    """One of torch's layers behind an input called `x`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)
