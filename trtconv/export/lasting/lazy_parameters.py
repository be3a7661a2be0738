"""Parameters that no call of forward has given a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError
from trtconv.core.text.listing import list_first

if TYPE_CHECKING:
    from torch import nn


def require_shapes(module: nn.Module) -> None:
    """Raise InvalidRequestError where lazy layers are left after forward ran: no exporter takes such a module."""
    from torch.nn.parameter import is_lazy

    tensors = [*module.named_parameters(), *module.named_buffers()]
    lazy = [name for name, tensor in tensors if is_lazy(tensor)]
    if lazy:
        raise InvalidRequestError(
            f"forward ran, and these parameters have no shape yet: {list_first(lazy, 3)}",
            hint="remove the lazy layers that forward does not use, or call the module once in a way that uses them",
        )
