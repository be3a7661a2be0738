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
    seen = {name: _varied(observe, base, name, _step(covered, multiples, name)) for name in covered}
    unseen = next((n for n in multiples if not seen[n]), None)
    if unseen is not None:
        raise InvalidRequestError(
            f"how the outputs follow {unseen} cannot be told: {base[unseen]} is defined after padding, and the "
            f"multiples of {multiples[unseen]} above are not",
            hint="use --align",
        )
    found = []
    for output, shape in first.items():
        for axis, size in enumerate(shape):
            growing = [n for n, at in seen.items() if any(s[output][axis] != size for s in at.values())]
            padded = [n for n in growing if n in multiples]
            if not padded:
                continue
            dim = padded[0]
            ratios = {Fraction(s[output][axis], v) for v, s in {base[dim]: first, **seen[dim]}.items()}
            if len(growing) > 1 or len(ratios) > 1:
                sizes = {f"{dim}={v}": s[output][axis] for v, s in {base[dim]: first, **seen[dim]}.items()}
                raise _no_ratio(output, axis, growing, sizes)
            owner, place = next((s.name, s.dims.index(dim)) for s in specs if dim in s.dims)
            ratio = ratios.pop()
            found.append(CroppedAxis(output, axis, owner, place, ratio.numerator, ratio.denominator))
    return tuple(found)


def _step(covered: ShapeSpace, multiples: Mapping[str, int], name: str) -> int:
    return multiples.get(name, covered[name].multiple)


def _varied(observe: Observe, base: Mapping[str, int], name: str, step: int) -> dict[int, Shapes]:
    """The shapes at the next sizes of one dim; above its range too, where only that tells how an output grows."""
    found: dict[int, Shapes] = {}
    for times in range(1, STEPS):
        size = base[name] + times * step
        try:
            found[size] = observe({**base, name: size})
        except TrtconvError:
            break
    return found


def _no_ratio(output: str, axis: int, growing: list[str], sizes: Mapping[str, int]) -> InvalidRequestError:
    shown = ", ".join(f"{v} at {k}" for k, v in sizes.items())
    dims = " and ".join(growing)
    return InvalidRequestError(
        f"output '{output}' cannot be cut back after padding: its axis {axis} is no constant multiple of one dim but "
        f"follows {dims} ({shown})",
        hint="use --align, or return outputs that keep the layout of the input",
    )
