"""The module as the exporters see it: flat tensors in, a flat tuple of tensors out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.export.module.outputs import flatten_outputs
from trtconv.export.sizes.shape_caches import ShapeCaches
from trtconv.export.symbolic.mode import symbolic_functions

if TYPE_CHECKING:
    from torch import nn

    from trtconv.export.module.binding import Binding

PREFIX = "module"


def flat_module(module: nn.Module, binding: Binding, caches: ShapeCaches | None = None) -> nn.Module:
    """Wrap `module`, which becomes the child `module`, so that its parameters' names get that prefix.

    Every call begins with the caches by shape empty, and leaves them as they were. Parametrized weights are constants.
    """
    from torch import nn

    weights = parametrized_weights(module)

    class FlatModule(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def arguments(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
            """What the module is called with: by position, and by name."""
            return binding.arguments(tensors)

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            positional, keywords = self.arguments(tensors)
            with symbolic_functions(), (caches or ShapeCaches()).emptied(), _constant(weights):
                return tuple(flatten_outputs(self.module(*positional, **keywords)).values())

    flat = FlatModule()
    flat.training = False
    return flat


def parametrized_weights(module: nn.Module) -> dict[nn.Module, Any]:
    """What each parametrization of `torch.nn.utils.parametrize` in the module gives: its weight in eval mode.

    A tensor of its own: the exporters know no `matrix_exp` of `orthogonal` and no `vdot` of `spectral_norm`.
    """
    import torch
    from torch.nn.utils.parametrize import ParametrizationList

    with torch.no_grad():
        return {part: part().clone() for part in module.modules() if isinstance(part, ParametrizationList)}


@contextmanager
def _constant(weights: Mapping[nn.Module, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for part, value in weights.items():
            stack.enter_context(mock.patch.object(part, "forward", lambda value=value: value))
        yield
