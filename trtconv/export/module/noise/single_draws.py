"""Random numbers in FP64 runs, drawn in FP32: a generator gives others for each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# By torch's tag attention, recurrent layers and dropout draw as well; what they compute has to stay in FP64.
DRAWS = frozenset({
    "rand", "rand_like", "randn", "randn_like", "random", "random_", "normal", "normal_", "normal_functional",
    "uniform", "uniform_", "bernoulli", "bernoulli_", "exponential", "exponential_", "log_normal", "log_normal_",
    "cauchy", "cauchy_", "geometric", "geometric_", "multinomial", "poisson",
})  # fmt: skip


def draws(operator: Any) -> bool:
    """True for an operator of aten that gives random numbers, and nothing that it computes from others."""
    return operator.overloadpacket.__name__ in DRAWS


def drawn_in_single(operator: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What the operator draws in FP32, as FP64 where a run in FP64 would have FP64.

    torch takes 24 bits of the generator for a float and 53 for a double: from one seed they draw different numbers, and
    the distance of the two runs would be no rounding.
    """
    import torch

    def narrowed(value: Any) -> Any:
        is_double = isinstance(value, torch.Tensor) and value.dtype is torch.float64
        return value.to(torch.float32) if is_double else value

    singles = {name: narrowed(value) for name, value in keywords.items()}
    if singles.get("dtype") is None and any(a.name == "dtype" for a in operator._schema.arguments):
        singles["dtype"] = torch.float32
    result = operator(*map(narrowed, args), **singles)
    if operator._schema.is_mutable:
        return args[0].copy_(result)
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: t.to(torch.float64) if t.dtype is torch.float32 else t, result
    )
