"""Handlers of operators that write their result into their input, made of those that give it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

# Of others the exporters' own forms are those of the handlers' names, or a result has no place in the input.
WRITTEN = (
    *("arctan2", "atan2", "ceil", "clamp", "copysign", "cumprod", "cumsum", "erfc", "erfinv", "expm1", "fix", "floor"),
    *("heaviside", "hypot", "index_add", "index_put", "index_reduce", "ldexp", "lerp", "log10", "log1p", "log2", "pow"),
    *("masked_scatter", "put", "remainder"),
    *("scatter_reduce", "sign", "square", "tril", "triu", "trunc"),
)


def in_place_handlers(table: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`scatter_reduce_` of `scatter_reduce` and its like, where the table has none yet."""
    return {f"{n}_": written(n, table[n]) for n in WRITTEN if n in table and f"{n}_" not in table}


def written(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of the method `name` with its result written into the tensor."""
    import torch

    function = getattr(torch.Tensor, name)

    @functools.wraps(handler)
    def handle(_: Any, x: Any, *args: Any, **named: Any) -> Any:
        result = handler(function, x, *args, **named)
        return result if result is NotImplemented else x.copy_(result)

    return handle
