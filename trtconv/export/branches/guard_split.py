"""A branch on a condition other than a bound of one dim (`H % 2 == 0`, `W / H > 1.5`): both sides, and an If on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.model.size_nodes import SizeWriter, UnwritableSizeError
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.branches.guards import MOST_FAILING, Guard, Region, unproved_guards, without_special_sizes
from trtconv.export.branches.turning_sizes import NoTableError, TurningSizes, turning_sizes

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


class NoConditionError(Exception):
    """The guard cannot be written as nodes, or does not part the space in two."""


@dataclass(frozen=True)
class GuardCut:
    """The sizes at which the guard holds, and the others; at `elsewhere` it fails.

    `fixed` are the sizes of dims that have no other where it fails.
    """

    guard: Guard
    elsewhere: tuple[tuple[str, int], ...]
    fixed: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return f"where {self.guard.text}"

    @property
    def turn(self) -> dict[str, int]:
        """Sizes at which it fails."""
        return dict(self.elsewhere)

    def other_space(self, space: ShapeSpace) -> ShapeSpace:
        """The space in which to export the other side: one size of a dim where it fails there alone."""
        return space.merged(ShapeSpace(tuple((n, DimRange(v, v, v)) for n, v in self.fixed)))

    def other_region(self) -> Region:
        """The other side within that space."""
        fixed = {n for n, _ in self.fixed}
        return () if fixed.issuperset(self.guard.names) else ((self.guard, False),)


def find_guard(text: str, space: ShapeSpace, region: Region = ()) -> GuardCut:
    """A guard in torch's message that fails at some sizes of the space, in its region.

    Of several the one from which all others follow (`H < W`, whose bounds of H and W torch states as well), or one of
    few dims. The others often fail with it: of one window, what is asked of windows. Raises NoConditionError.
    """
    try:
        failing = [g for g in dict.fromkeys(unproved_guards(text)) if g.fails_at(space, region) is not None]
    except ValueError as error:
        raise NoConditionError(f"the condition {error} cannot be read") from error
    if not failing:
        raise NoConditionError("no condition on sizes at which the branch turns could be read")
    guard = next((g for g in failing if len(g.names) > 1 and _implies_others(g, failing, space, region)), None)
    return _cut_by(guard or min(failing, key=lambda g: len(g.names)), space, region)


def cut_of_one_size(name: str, size: int, space: ShapeSpace, region: Region) -> GuardCut:
    """The other sizes of a dim and that one, where a module that asks `t == 11` was traced at 11.

    Raises NoConditionError where one size was cut off before: a module may keep whichever it is traced at.
    """
    guard = Guard(f"{name} != {size}", (name,))
    is_cut = any(g.names == guard.names and g.text.startswith(f"{name} != ") for g, _ in region)
    if is_cut or name not in space or guard.fails_at(space, region) is None or len(space[name].values()) < 2:
        raise NoConditionError(f"{name} keeps the size that it is traced at")
    return _cut_by(guard, space, region)


def _cut_by(guard: Guard, space: ShapeSpace, region: Region) -> GuardCut:
    failing = list(guard.failing(space, region))
    chosen = without_special_sizes(failing)
    return GuardCut(guard, tuple(chosen.items()), tuple(_fixed(guard, failing, space, region)))


def _fixed(guard: Guard, failing: list[dict[str, int]], space: ShapeSpace, region: Region) -> Iterator[tuple[str, int]]:
    """The dims that have one size where the guard fails. Of many failing sizes only some are given."""
    for name, size in failing[0].items():
        if all(sizes[name] == size for sizes in failing):
            elsewhere = (Guard(f"{name} == {size}", (name,)), False)
            if len(failing) < MOST_FAILING or guard.fails_at(space, (*region, elsewhere)) is None:
                yield name, size


def _implies_others(guard: Guard, failing: list[Guard], space: ShapeSpace, region: Region) -> bool:
    try:
        return all(g.fails_at(space, (*region, (guard, True))) is None for g in failing if g is not guard)
    except ValueError:
        return False


def condition_nodes(
    cut: GuardCut, specs: tuple[TensorSpec, ...], space: ShapeSpace, graph: onnx.GraphProto, result: str
) -> list[onnx.NodeProto]:
    """Nodes that compute the guard from the inputs' shapes into the boolean scalar `result`.

    One on fractions of sizes, which Python computes in FP64, is looked up. Raises NoConditionError for a guard that
    can be neither written nor looked up.
    """
    writer = _Writer(specs, graph, "trtconv_guard_")
    try:
        last = writer.expression(cut.guard.text)
    except SyntaxError as error:
        raise NoConditionError(cut.guard.text) from error
    except UnwritableSizeError as reason:
        writer = _Writer(specs, graph, "trtconv_guard_")
        try:
            last = writer.looked_up(turning_sizes(cut.guard, space))
        except NoTableError as error:
            raise NoConditionError(f"{reason} ({error})") from error
    writer.nodes[-1].output[0] = result
    assert last
    return writer.nodes


class _Writer(SizeWriter):
    """Writes conditions; those that no operator gives are looked up in a table of the sizes at which they turn."""

    def looked_up(self, turns: TurningSizes) -> str:
        """Whether the size has passed an odd number of those at which the guard turns."""
        import onnx

        size, table = self.size(turns.dim), self.array(turns.table)
        row = self.constant(0)
        if turns.by is not None:
            # Inside an If that stands before its condition is known, another size may come here.
            first, step, last = turns.rows
            index = self.node("Div", self.node("Sub", self.size(turns.by), self.constant(first)), self.constant(step))
            row = self.node("Min", self.node("Max", index, row), self.constant(last))
        passed = self.node("LessOrEqual", self.node("Gather", table, row), size)
        count = self.node("ReduceSum", self.node("Cast", passed, to=onnx.TensorProto.INT64), keepdims=0)
        return self.node("Equal", self.node("Mod", count, self.constant(2)), self.constant(1))

    def array(self, values: Array) -> str:
        """The name of a weight."""
        import onnx

        name = f"trtconv_turns_{len(self.graph.initializer)}"
        self.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        return name
