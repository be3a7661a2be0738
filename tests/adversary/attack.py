"""What an attack is: a module or a graph that may convert to something else, with points at which the judge looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feed = Mapping[str, Array]
# What an attack may end in. `noted` is a file that differs where a note of the conversion names that line or value.
EQUAL, REFUSED, NOTED = "equal", "refused", "noted"


@dataclass(frozen=True)
class ModuleAttack:
    """A module with its inputs and dims as the command line takes them.

    `feeds` are points of the attack's own, besides those of the judge. `outcome` is what it ends in; `says` is in the
    message of a refusal, or in the note. `kinds` names the values at which the judge looks; all without.
    """

    name: str
    make: Callable[[], Any]
    inputs: tuple[str, ...]
    dims: str = ""
    feeds: tuple[Callable[[], Feed], ...] = ()
    outcome: str = EQUAL
    says: str = ""
    kinds: tuple[str, ...] = ()
    target: str = "tensorrt-rtx"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file of attacks that it is in."""
        return str(self.make.__module__)


MODULES: dict[str, ModuleAttack] = {}


def attack(*inputs: str, dims: str = "", refused: str = "", noted: str = "", **more: Any) -> Callable[[Any], Any]:
    """Register a class of modules (made without arguments) or a function that makes one."""

    def register(make: Any) -> Any:
        outcome = REFUSED if refused else NOTED if noted else EQUAL
        entry = ModuleAttack(make.__name__, make, inputs, dims, outcome=outcome, says=refused or noted, **more)
        assert entry.name not in MODULES, entry.name
        MODULES[entry.name] = entry
        return make

    return register


def forward(*inputs: str, **more: Any) -> Callable[[Any], Any]:
    """Register a function (of self and the inputs) as the forward of a module without weights."""

    def register(function: Any) -> Any:
        from torch import nn

        members = {"forward": function, "__module__": function.__module__}
        attack(*inputs, **more)(type(function.__name__, (nn.Module,), members))
        return function

    return register


@dataclass(frozen=True)
class GraphAttack:
    """An ONNX graph in ONNX's text, whose rewrite for each of the `targets` may change what it computes."""

    name: str
    text: str
    opset: int = 17
    dims: str = ""
    feeds: tuple[Callable[[], Feed], ...] = ()
    targets: tuple[str, ...] = ("tensorrt==8.6", "tensorrt-rtx")
    outcome: str = EQUAL
    says: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    file: str = ""
    infinities: bool = True
