"""The module as the exporters see it: flat tensors in, a flat tuple of tensors out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtconv.export.module.outputs import flatten_outputs
from trtconv.export.sizes.shape_caches import ShapeCaches
from trtconv.export.symbolic.mode import symbolic_functions

if TYPE_CHECKING:
    from torch import nn

    from trtconv.export.module.binding import Binding

PREFIX = "module"


def flat_module(module: nn.Module, binding: Binding, caches: ShapeCaches | None = None) -> nn.Module:
    """Wrap `module`, which becomes the child `module`, so that its parameters' names get that prefix.

    Every call begins with the caches by shape empty, and leaves them as they were.
    """
    from torch import nn

    class FlatModule(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            positional, keywords = binding.arguments(tensors)
            with symbolic_functions(), (caches or ShapeCaches()).emptied():
                return tuple(flatten_outputs(self.module(*positional, **keywords)).values())

    flat = FlatModule()
    flat.training = False
    return flat
