"""NumPy's functions of one number, which keep a size symbolic: `np.sqrt(x.shape[1])`, `int(np.ceil(t / 2))`."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# The function of `math` that says the same of one number.
SAME = ("sqrt", "log", "log2", "log10", "exp")
TO_WHOLE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "fix": "trunc"}
TO_NEAREST = ("round", "rint", "around")


class NumbersStay(types.ModuleType):
    """numpy, but for the functions that are replaced."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        super().__init__("numpy")
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def symbolic_numpy(numbers: Any, new: Mapping[str, Any], stays: Callable[[Any], bool]) -> NumbersStay:
    """numpy for the user's code while it is traced.

    `numbers` is `math` for sizes, `new` are Python's functions for them, and `stays` says of what they are meant.
    """

    def of_one(name: str, function: Callable[[Any], Any]) -> Callable[..., Any]:
        plain = getattr(np, name)

        def apply(value: Any, *rest: Any, **options: Any) -> Any:
            return function(value) if not rest and not options and stays(value) else plain(value, *rest, **options)

        return apply

    def of_two(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        plain = getattr(np, name)

        def apply(first: Any, second: Any, *rest: Any, **options: Any) -> Any:
            both = not rest and not options and (stays(first) or stays(second))
            alike = all(stays(v) or isinstance(v, (int, float)) for v in (first, second))
            return function(first, second) if both and alike else plain(first, second, *rest, **options)

        return apply

    def product(values: Any, *rest: Any, **options: Any) -> Any:
        listed = list(values) if isinstance(values, (list, tuple)) else []
        if rest or options or not any(stays(v) for v in listed):
            return np.prod(values, *rest, **options)
        return math.prod(listed)

    # NumPy's results are floats, of which `//` and `/` give floats again.
    whole = {name: lambda v, same=same: new["float"](getattr(numbers, same)(v)) for name, same in TO_WHOLE.items()}
    nearest = {name: lambda v: new["float"](new["round"](v)) for name in TO_NEAREST}
    same = {name: getattr(numbers, name) for name in SAME}
    functions: dict[str, Any] = {name: of_one(name, f) for name, f in {**same, **whole, **nearest}.items()}
    functions |= {"maximum": of_two("maximum", new["max"]), "minimum": of_two("minimum", new["min"]), "prod": product}
    return NumbersStay(functions)
