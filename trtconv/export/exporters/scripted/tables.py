"""Numbers of a script that FP32 would round otherwise than Python, as tables: rounded once, looked up by the counter.

`t * 0.3` is 0.9 at 3 in Python, and 0.90000004 where 0.3 is FP32; `x[:, t] >= t * 0.3` decides otherwise at 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.exporters.scripted.evaluation import Leaf, Numbers, UndefinedNumberError
from trtconv.export.exporters.scripted.rounding import Rounding, is_number, is_pure, roundings, walk
from trtconv.export.sizes.exact.floats import MOST_ENTRIES

if TYPE_CHECKING:
    import torch

# A table by two numbers may be larger: 2 MiB.
MOST_OF_TWO = 8 * MOST_ENTRIES
# aten::to(..., dtype=float16), float64, bfloat16.
OTHER_FLOATS = (5, 7, 15)
CASTS = ("aten::half", "aten::double", "aten::bfloat16")
READS = {"FloatType": "aten::Float", "NumberType": "aten::Float", "IntType": "aten::Int", "BoolType": "aten::Bool"}


def write_tables(graph: Any, module: Any, lengths: TableLengths) -> None:
    """Look up the numbers of an inlined graph that meet tensors or conditions and that FP32 rounds twice, in place.

    One that is computed from a value, or from more than two numbers, stays: `rounded_twice` tells it.
    """
    numbers = Numbers(graph, module)
    # The file's Loop would start a float that it carries on from FP64, and go on in FP32.
    states = list(numbers.floats_carried_on())
    # Each is worked out before the graph changes; without users stands for all of them.
    waiting = [*rounded_twice(graph), *((state.value, []) for state in states)]
    tables = [(*pair, table) for pair in waiting if (table := _table(numbers, pair[0], lengths)) is not None]
    for value, users, table in tables:
        read = _look_up(graph, value, table)
        for user in users or [use.user for use in value.uses()]:
            user.replaceInputWith(value, read)
    for state in states:
        if not list(state.value.uses()):
            state.body.returnNode().replaceInput(state.index + 1, state.start)


class TableLengths:
    """As many entries as a table needs: no loop takes more steps than twice an input's elements, and no size is longer.

    A file that looks further fails to run, and is refused.
    """

    def __init__(self, specs: Sequence[TensorSpec], space: ShapeSpace) -> None:
        shapes = [[space[d].max if isinstance(d, str) else d for d in s.dims] for s in specs]
        self.single = min(MOST_ENTRIES, 2 * max((prod(s) for s in shapes), default=0) + 64)
        self.each = max((n for s in shapes for n in s), default=0) + 2

    def of(self, leaves: Sequence[Leaf]) -> tuple[int, ...] | None:
        """The lengths of a table by these; None where it would be too large."""
        if len(leaves) > 2:
            return None
        if len(leaves) == 2:
            open_ended = any(leaf.open_ended for leaf in leaves)
            return None if open_ended or self.each**2 > MOST_OF_TWO else (self.each, self.each)
        return tuple(MOST_ENTRIES if leaf.open_ended else self.single for leaf in leaves)


def rounded_twice(graph: Any, mixed: bool = False) -> Iterator[tuple[Any, list[Any]]]:
    """The numbers that FP32 rounds twice, with the nodes that compute with tensors or decide by them.

    `mixed`: they may go to tensors of another type, for which FP32 is once too often.
    """
    least = Rounding.ONCE if mixed else Rounding.TWICE
    levels = roundings(graph)
    nodes = list(walk(graph))
    parameters = [v for n in nodes if n.kind() == "prim::Loop" for b in n.blocks() for v in b.inputs()]
    for value in (*parameters, *(o for n in nodes for o in n.outputs())):
        if not is_number(value) or levels.get(value.unique(), Rounding.SHORT) < least:
            continue
        if value.node().kind() == "prim::Constant":
            continue  # exporters write it in the type of its tensor
        users = [use.user for use in value.uses() if _decides(use, value)]
        if users:
            yield value, users


def _decides(use: Any, value: Any) -> bool:
    """True for a use beyond numbers; what a block gives has a rounding of its own behind the block."""
    user, condition = use.user, value.type().kind() == "BoolType"
    if user.kind() == "prim::Return":
        owner = user.owningBlock().owningNode()
        # The first result of a loop's body is whether it goes on.
        return owner is None or bool(owner.kind() == "prim::Loop" and use.offset == 0)
    if user.kind() in ("prim::Loop", "prim::If"):
        return bool(condition and use.offset < 2) or bool(user.kind() == "prim::Loop" and use.offset == 0)
    return not is_pure(user)


def mixes_floats(graph: Any, module: Any, specs: Sequence[TensorSpec]) -> bool:
    """True where tensors may be FP64, to which numbers go as they are, or FP16, to which they are rounded at once."""
    import torch

    others = (torch.float16, torch.bfloat16, torch.float64)
    held = any(t.dtype in others for t in (*module.parameters(), *module.buffers()))
    fed = any(spec.dtype.name in ("float16", "bfloat16", "float64") for spec in specs)
    return held or fed or any(n.kind() in CASTS or _dtype_of(n) in OTHER_FLOATS for n in walk(graph))


def _dtype_of(node: Any) -> Any:
    """The type that an operator is told to give, in the numbers of torch's."""
    if not node.kind().startswith("aten::"):
        return None
    parameters = node.schema().partition("(")[2].partition(") ->")[0].split(", ")
    names = [p.partition("=")[0].split(" ")[-1] for p in parameters if p != "*"]
    return list(node.inputs())[names.index("dtype")].toIValue() if "dtype" in names else None


@dataclass(frozen=True)
class Table:
    """A number by the leaves that it is computed from, an axis for each."""

    leaves: tuple[Leaf, ...]
    entries: torch.Tensor


def _table(numbers: Numbers, value: Any, lengths: TableLengths) -> Table | None:
    """The number's table, where it has one; NaN or 0 where Python raises, which no run comes to."""
    import torch

    read = numbers.leaves(value)
    leaves = tuple(read.values()) if read is not None else ()
    counts = lengths.of(leaves)
    if read is None or counts is None:
        return None
    kind = value.type().kind()
    floating = kind in ("FloatType", "NumberType")
    dtype = torch.float32 if floating else torch.bool if kind == "BoolType" else torch.int64
    undefined = math.nan if floating else 0

    def entries(fixed: Mapping[int, Any], rest: Sequence[tuple[Leaf, int]]) -> Any:
        if rest:
            (leaf, length), *others = rest
            steps = [entries({**fixed, **step}, others) for step in numbers.steps(leaf, length)]
            return steps + [_filled(undefined, [n for _, n in others])] * (length - len(steps))
        try:
            return numbers.value(value, fixed)
        except UndefinedNumberError:
            return undefined

    # FP64 is rounded to FP32 as torch rounds a number that meets a tensor.
    values = entries({}, list(zip(leaves, counts, strict=True)))
    return Table(leaves, torch.tensor(values, dtype=torch.float64 if floating else dtype).to(dtype))


def _filled(value: Any, lengths: Sequence[int]) -> Any:
    return [_filled(value, lengths[1:])] * lengths[0] if lengths else value


def _look_up(graph: Any, value: Any, table: Table) -> Any:
    """A number of the same type that is read from the table, behind the one that is computed."""
    import torch

    types = torch._C
    constant, axis = graph.create("prim::Constant", [], 1), graph.create("prim::Constant", [], 1)
    constant.t_("value", table.entries)
    constant.output().inferTypeFrom(table.entries)
    axis.i_("value", 0)
    axis.output().setType(types.IntType.get())
    nodes, row = [constant, axis], constant.output()
    for leaf in table.leaves:
        nodes.append(graph.create("aten::select", [row, axis.output(), leaf.value], 1))
        row = nodes[-1].output()
    nodes.append(graph.create(READS[value.type().kind()], [row], 1))
    kind = value.type().kind()
    nodes[-1].output().setType(value.type() if kind != "NumberType" else types.FloatType.get())
    _insert_behind(value, nodes)
    return nodes[-1].output()


def _insert_behind(value: Any, nodes: Sequence[Any]) -> None:
    node = value.node()
    if node.kind() == "prim::Param":
        first = next(iter(node.owningBlock().nodes()))
        for new in nodes:
            new.insertBefore(first)
        return
    for new in nodes:
        new.insertAfter(node)
        node = new
