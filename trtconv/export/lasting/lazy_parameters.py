"""Parameters that no call of forward has given a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError
from trtconv.core.text.listing import list_first, list_names

if TYPE_CHECKING:
    from torch import nn


def require_shapes(module: nn.Module) -> None:
    """Raise InvalidRequestError where lazy layers are left after forward ran: no exporter takes such a module."""
    lazy = _lazy_names(module)
    if lazy:
        raise InvalidRequestError(
            f"forward ran, and these parameters have no shape yet: {list_first(lazy, 3)}",
            hint="remove the lazy layers that forward does not use, or call the module once in a way that uses them",
        )


def require_weights(module: nn.Module, spec: str) -> None:
    """Raise InvalidRequestError for a module of the caller's whose lazy layers no call has made yet.

    Made up here, their weights would be in the file and nowhere else. A factory's are drawn by its seed, as all are.
    """
    lazy = _lazy_names(module)
    if lazy:
        raise InvalidRequestError(
            f"the lazy layers of {spec} have no weights yet: {list_names(lazy, 3)}",
            hint="call the module once on an example, or load its weights, and convert it then",
        )


def _lazy_names(module: nn.Module) -> list[str]:
    from torch.nn.parameter import is_lazy

    return [name for name, tensor in [*module.named_parameters(), *module.named_buffers()] if is_lazy(tensor)]
