"""Random numbers in FP64 runs, drawn in FP32: a generator gives others for each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def draws(operator: Any) -> bool:
    """True for an operator of aten that draws random numbers."""
    import torch

    return torch.Tag.nondeterministic_seeded in operator.tags


def drawn_in_single(operator: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What the operator draws in FP32, as FP64 where a run in FP64 would have FP64.

    torch takes 24 bits of the generator for a float and 53 for a double: from one seed they draw different numbers, and
    the distance of the two runs would be no rounding.
    """
    import torch

    def narrowed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
            return value.to(torch.float32)
        return torch.float32 if value is torch.float64 else value

    singles = {name: narrowed(value) for name, value in keywords.items()}
    if singles.get("dtype") is None and _makes_default_floats(operator):
        singles["dtype"] = torch.float32
    result = operator(*map(narrowed, args), **singles)
    if operator._schema.is_mutable:
        return args[0].copy_(result)
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: t.to(torch.float64) if t.dtype is torch.float32 else t, result
    )


def _makes_default_floats(operator: Any) -> bool:
    """True where a missing dtype is torch's default one: of randint and randperm it is int64."""
    named = {argument.name: argument for argument in operator._schema.arguments}
    return "dtype" in named and not operator.overloadpacket.__name__.startswith(("randint", "randperm"))
