"""`hstack`, `stack` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def join(func: Any, tensors: Any, *args: Any, **named: Any) -> Any:
    """stack, hstack and their kin: of unlike types as the type that torch takes them all to, and as `cat`.

    The exporters write sequences for all but the first.
    """
    import torch

    if named.get("out") is not None or not tensors:
        return NotImplemented
    kind = tensors[0].dtype
    for tensor in tensors[1:]:
        kind = torch.promote_types(kind, tensor.dtype)
    parts = [t if t.dtype == kind else t.to(kind) for t in tensors]
    form = _JOINED_ALONG.get(func.__name__)
    if form is None:
        return func(parts, *args, **named) if any(t.dtype != kind for t in tensors) else NotImplemented
    views, axis = form
    if func.__name__ == "hstack" and parts[0].dim() <= 1:
        axis = 0
    return torch.cat([views[t.dim()](t) if t.dim() < len(views) else t for t in parts], axis)


# By function how tensors of few axes, from none on, get more, and the axis along which they are joined.
_JOINED_ALONG: dict[str, tuple[Sequence[Callable[[Any], Any]], int]] = {
    "hstack": ((lambda t: t[None],), 1),
    "vstack": ((lambda t: t[None, None], lambda t: t[None]), 0),
    "column_stack": ((lambda t: t[None, None], lambda t: t[:, None]), 1),
    "dstack": ((lambda t: t[None, None, None], lambda t: t[None, :, None], lambda t: t[..., None]), 2),
}
_JOINED_ALONG["row_stack"] = _JOINED_ALONG["vstack"]
