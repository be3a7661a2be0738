"""The module as the exporters see it: flat tensors in, a flat tuple of tensors out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.export.module.outputs import flatten_outputs
from trtconv.export.sizes.shape_caches import ShapeCaches
from trtconv.export.symbolic.mode import symbolic_functions
from trtconv.export.turned_masks import turned_within

if TYPE_CHECKING:
    from torch import nn

    from trtconv.export.module.binding import Binding

PREFIX = "module"
# The package of torch's own parametrizations.
OWN = "torch.nn.utils."


def flat_module(module: nn.Module, binding: Binding, caches: ShapeCaches | None = None) -> nn.Module:
    """Wrap `module`, which becomes the child `module`, so that its parameters' names get that prefix.

    Every call begins with the caches by shape empty, and leaves them as they were. Weights that torch's own
    parametrizations give are constants.
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
            emptied = (caches or ShapeCaches()).emptied()
            with symbolic_functions() as aliases, emptied, _constant(weights), turned_within():
                outputs = tuple(flatten_outputs(self.module(*positional, **keywords)).values())
            aliases.recognise(outputs)
            return outputs

    flat = FlatModule()
    flat.training = False
    return flat


def parametrized_weights(module: nn.Module) -> dict[nn.Module, Parametrized]:
    """What the parametrizations of torch itself give in eval mode, by the part that computes it.

    The exporters know no `matrix_exp` of `orthogonal` and no `vdot` of `spectral_norm`. A user's own are exported as
    they are written: they may read what a call tells them, and so may those behind one in a chain, or one that two
    weights share.
    """
    import torch
    from torch.nn.utils.parametrize import ParametrizationList

    weights: dict[nn.Module, Parametrized] = {}
    lists = [part for part in module.modules() if isinstance(part, ParametrizationList)]
    uses = Counter(part for chain in lists for part in chain)
    with torch.no_grad():
        for chain in lists:
            names = ["original"] if chain.is_tensor else [f"original{i}" for i in range(chain.ntensors)]
            originals = [getattr(chain, name) for name in names]
            for part in takewhile(lambda p: uses[p] == 1 and type(p).__module__.startswith(OWN), chain):
                value = part(*originals)
                weights[part] = Parametrized(chain, part, value.clone())
                originals = [value]
    return weights


class Parametrized:
    """A weight that a parametrization gave, which holds as long as nothing of what it was computed from is written."""

    def __init__(self, chain: nn.Module, part: nn.Module, value: Any) -> None:
        self._chain, self._part, self._value = chain, part, value
        self._attributes = self._plain_attributes()
        self._versions: list[tuple[int, int]] = []

    def begin(self) -> None:
        """A call of the module begins."""
        self._versions = self._tensors()

    def forward(self, *originals: Any) -> Any:
        """The weight: the constant, or computed anew where a call has written what it comes from."""
        if self._tensors() == self._versions and self._plain_attributes() == self._attributes:
            return self._value
        return type(self._part).forward(self._part, *originals)

    def _tensors(self) -> list[tuple[int, int]]:
        return [(id(t), t._version) for m in (self._chain, self._part) for t in (*m.parameters(), *m.buffers())]

    def _plain_attributes(self) -> dict[str, str]:
        return {n: repr(v) for n, v in vars(self._part).items() if not n.startswith("_") and n != "forward"}


@contextmanager
def _constant(weights: Mapping[nn.Module, Parametrized]) -> Iterator[None]:
    with ExitStack() as stack:
        for part, weight in weights.items():
            weight.begin()
            stack.enter_context(mock.patch.object(part, "forward", weight.forward))
        yield
