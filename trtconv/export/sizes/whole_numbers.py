"""Whole numbers of sizes that Python computes beyond 64 bits: `n * 6364136223846793005 % 1000003`, `n ** 13 % 9973`.

A file and an engine wrap around there, without a word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from trtconv.core.errors import UnsupportedError
from trtconv.export.module.user_code import Frame
from trtconv.export.sizes.comparisons import is_user_code
from trtconv.export.sizes.evaluate import LARGEST_OF_FLOATS

LARGEST = 2**63 - 1


class BeyondIntegersError(UnsupportedError):
    """A whole number of the module's is beyond what a file can hold; `frame` is the user's line that computes it."""

    def __init__(self, number: int | None, frame: Frame | None = None, where: str = "") -> None:
        shown = f" ({number:.3g})" if number is not None else ""
        super().__init__(
            f"a whole number goes beyond what a file holds{shown}, where Python goes on: the file would wrap around or "
            "round it",
            hint="take the remainder of smaller products (n % m * (k % m) % m), or compute the number in a table that "
            "is indexed with the size",
            where=where,
        )
        self.frame = frame


@contextmanager
def within_64_bits() -> Iterator[None]:
    """A product of sizes that the user's code computes asks whether it is beyond 64 bits, for the time of the block.

    Where it is at the sizes of the run, BeyondIntegersError is raised. That it is not is a condition of the path.
    """
    import torch

    def checked(method: Callable[[Any, Any], Any], limits: Callable[[Any, Any], int]) -> Callable[[Any, Any], Any]:
        def compute(own: Any, other: Any) -> Any:
            result = method(own, other)
            frame = sys._getframe(1)
            if isinstance(result, torch.SymInt) and is_user_code(frame):
                _require_within(result, limits(own, other), (frame.f_code.co_filename, frame.f_lineno))
            return result

        return compute

    limits = {
        "__mul__": _of_integers, "__rmul__": _of_integers, "__lshift__": _of_integers, "__rlshift__": _of_integers,
        "__pow__": _of_a_power, "__rpow__": _of_a_moving_power,
    }  # fmt: skip
    with ExitStack() as stack:
        for name, limit in limits.items():
            original = getattr(torch.SymInt, name, None)
            if original is not None:
                stack.enter_context(mock.patch.object(torch.SymInt, name, checked(original, limit)))
        yield


def _of_integers(own: Any, other: Any) -> int:
    return LARGEST


def _of_a_moving_power(own: Any, other: Any) -> int:
    """Of `2 ** n`, which ONNX Runtime and TensorRT compute in floats: powers of two are floats, others are not."""
    power_of_two = isinstance(other, int) and other > 0 and other & (other - 1) == 0
    return LARGEST if power_of_two else LARGEST_OF_FLOATS


def _of_a_power(own: Any, other: Any) -> int:
    return LARGEST if isinstance(other, int) else LARGEST_OF_FLOATS


def _require_within(number: Any, limit: int, frame: Frame) -> None:
    from torch.utils._sympy.value_ranges import bound_sympy

    node = number.node
    if type(node.hint) is not int:
        return
    bounds = bound_sympy(node.expr, node.shape_env.var_to_range)
    if -limit <= bounds.lower and bounds.upper <= limit:
        return
    if bool(number > limit) or bool(number < -limit):
        raise BeyondIntegersError(node.hint, frame)
