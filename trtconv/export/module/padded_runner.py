"""The module on padded inputs, its outputs cut back: what a padded model is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.padding import Padding
from trtconv.export.module.runner import ModuleRunner

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    Array = np.ndarray[Any, np.dtype[Any]]


class PaddedRunner(ModuleRunner):
    """Runs a module as a model with `padding` does; arrays in, arrays out, as ModuleRunner."""

    def __init__(self, inner: ModuleRunner, padding: Padding) -> None:
        self.inner = inner
        self.padding = padding
        self.module, self.base = inner.module, inner.base
        self.names, self.binding = inner.names, inner.binding

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Pad, run, cut."""
        return self.padding.around(self.inner)(inputs)

    def with_module(self, module: nn.Module, wide: bool = False) -> PaddedRunner:
        """Another module run in the same way."""
        return PaddedRunner(self.inner.with_module(module, wide), self.padding)
