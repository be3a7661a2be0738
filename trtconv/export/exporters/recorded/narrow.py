"""Orders and choices of narrow whole numbers in a recorded file: runtimes have few of int16, int8 and bool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtconv.export.exporters.recorded import values
from trtconv.export.symbolic.arithmetic.small_integers import is_narrow

Form = Callable[..., Any]
REDUCED, OF_TWO = ("amax", "amin"), ("max", "min")
PLACES = ("argmax", "argmin")
POINTWISE = ("maximum", "minimum", "relu", "clamp", "clamp_min", "clamp_max")


def forms(opset: int) -> dict[str, Form]:
    """The forms by aten's names."""
    makers: tuple[tuple[Callable[[Form], Form], tuple[str, ...]], ...] = (
        (_reduced, REDUCED), (_reduced_or_of_two, OF_TWO), (_place, PLACES), (_pointwise, POINTWISE),
        (_filled, ("masked_fill",)), (_chosen, ("where",)),
    )  # fmt: skip
    return {name: make(values.plain_form(name, opset)) for make, names in makers for name in names}


def _reduced_or_of_two(plain: Form) -> Form:
    reduced, pointwise = _reduced(plain), _pointwise(plain)

    def form(graph: Any, x: Any, *rest: Any) -> Any:
        """The extreme of all or of an axis, or of two tensors."""
        of_two = len(rest) == 1 and values.is_tensor(rest[0])
        return (pointwise if of_two else reduced)(graph, x, *rest)

    return form


def _reduced(plain: Form) -> Form:
    def form(graph: Any, x: Any, *rest: Any) -> Any:
        """The extreme of some axes, which may come with its place."""
        import torch

        if not _is_narrow(x, booleans=True):
            return plain(graph, x, *rest)
        results = plain(graph, values.cast_to(graph, x, torch.int32), *rest)
        if isinstance(results, (tuple, list)):
            return (values.cast(graph, results[0], values.kind_of(x)), *results[1:])
        return values.cast(graph, results, values.kind_of(x))

    return form


def _place(plain: Form) -> Form:
    def form(graph: Any, x: Any, *rest: Any) -> Any:
        """The place of an extreme."""
        import torch

        return plain(graph, values.cast_to(graph, x, torch.int32) if _is_narrow(x, booleans=True) else x, *rest)

    return form


def _pointwise(plain: Form) -> Form:
    def form(graph: Any, *operands: Any) -> Any:
        """A number for each element, in int32 where all of them are narrow."""
        import torch

        numbers = [v for v in operands if not values.is_none(v)]
        kind = values.promoted_kind(*numbers)
        if kind is None or not is_narrow(kind.dtype()):
            return plain(graph, *operands)
        wide = [v if values.is_none(v) else values.cast_to(graph, v, torch.int32) for v in operands]
        return values.cast(graph, plain(graph, *wide), kind)

    return form


def _filled(plain: Form) -> Form:
    def masked_fill(graph: Any, x: Any, mask: Any, value: Any) -> Any:
        """x, and the value in its type where the mask says so."""
        import torch

        if not _is_narrow(x):
            return plain(graph, x, mask, value)
        wide = plain(graph, values.cast_to(graph, x, torch.int32), mask, values.cast(graph, value, values.kind_of(x)))
        return values.cast(graph, wide, values.kind_of(x))

    return masked_fill


def _chosen(plain: Form) -> Form:
    def where(graph: Any, condition: Any, *rest: Any, **named: Any) -> Any:
        """One of two values; the places where the condition holds where none are given, one output for each axis."""
        if not rest or not values.is_tensor(rest[0]):
            return plain(graph, condition, *rest, **named)
        return _pointwise(lambda _, *choices: plain(graph, condition, *choices, *rest[2:]))(graph, *rest[:2])

    return where


def _is_narrow(value: Any, *, booleans: bool = False) -> bool:
    import torch

    dtype = values.dtype_of(values.kind_of(value))
    return is_narrow(dtype) or (booleans and dtype == torch.bool)
