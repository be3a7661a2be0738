"""How the outputs' sizes follow from the padded dims, found by looking at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.shape_space.padding import CroppedAxis
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec

Shapes = Mapping[str, tuple[int, ...]]
# The outputs' shapes at given sizes; raises TrtconvError where they cannot be found.
Observe = Callable[[Mapping[str, int]], Shapes]
STEPS = 3


def cropped_axes(
    observe: Observe, specs: tuple[TensorSpec, ...], covered: ShapeSpace, multiples: Mapping[str, int]
) -> tuple[CroppedAxis, ...]:
    """The output axes that are a constant ratio of a padded dim. `covered` is the space after padding.

    Raises InvalidRequestError for an axis that depends on a padded dim in another way: it cannot be cut back.
    """
    base = covered.pick("min")
    first = observe(base)
    shapes_by_dim = {name: _varied(observe, base, name, _step(covered, multiples, name)) for name in covered}
    unobserved = next((n for n in multiples if not shapes_by_dim[n]), None)
    if unobserved is not None:
        raise InvalidRequestError(
            f"cannot tell how the outputs depend on {unobserved}: {base[unobserved]} is defined after padding, and the "
            f"multiples of {multiples[unobserved]} above are not",
            hint="use --align",
        )
    cropped = []
    for output, shape in first.items():
        for axis, size in enumerate(shape):
            growing = [n for n, at in shapes_by_dim.items() if any(s[output][axis] != size for s in at.values())]
            padded = [n for n in growing if n in multiples]
            if not padded:
                continue
            dim = padded[0]
            ratios = {Fraction(s[output][axis], v) for v, s in {base[dim]: first, **shapes_by_dim[dim]}.items()}
            if len(growing) > 1 or len(ratios) > 1:
                sizes = {f"{dim}={v}": s[output][axis] for v, s in {base[dim]: first, **shapes_by_dim[dim]}.items()}
                raise _no_ratio(output, axis, growing, sizes)
            owner, input_axis = next((s.name, s.dims.index(dim)) for s in specs if dim in s.dims)
            ratio = ratios.pop()
            cropped.append(CroppedAxis(output, axis, owner, input_axis, ratio.numerator, ratio.denominator))
    return tuple(cropped)


def _step(covered: ShapeSpace, multiples: Mapping[str, int], name: str) -> int:
    return multiples.get(name, covered[name].multiple)


def _varied(observe: Observe, base: Mapping[str, int], name: str, step: int) -> dict[int, Shapes]:
    """The shapes at the next sizes of one dim; above its range too, where only that tells how an output grows."""
    shapes_by_size: dict[int, Shapes] = {}
    for times in range(1, STEPS):
        size = base[name] + times * step
        try:
            shapes_by_size[size] = observe({**base, name: size})
        except TrtconvError:
            break
    return shapes_by_size


def _no_ratio(output: str, axis: int, growing: list[str], sizes: Mapping[str, int]) -> InvalidRequestError:
    shown = ", ".join(f"{v} at {k}" for k, v in sizes.items())
    dims = " and ".join(growing)
    return InvalidRequestError(
        f"output '{output}' cannot be cut back after padding: its axis {axis} is not proportional to one dim but "
        f"follows {dims} ({shown})",
        hint="use --align, or return outputs that keep the layout of the input",
    )
