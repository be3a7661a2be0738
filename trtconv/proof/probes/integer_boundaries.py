"""Integer inputs at which the comparisons of a graph turn: `ids == n * 7 % 31` is true of one number in a million.

Random whole numbers hardly ever meet such a boundary, and another number in the file would not show. Here elements of
an integer input are set to where a comparison is even, to one less and one more, each element for one comparison. So
are those that index a table, to the rows that stand out, and those of which a difference becomes a float, to where it
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.proof.probes.boundaries import MOST_DECISIONS, Boundaries, Feed, Open, leading_to, probe_boundaries
from trtconv.proof.probes.decisions import BLIND, COMPARING, INTEGERS, leaves_floats
from trtconv.proof.probes.table_rows import looked_up

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# Feeds for the turns of integers at one set of sizes.
MOST_FEEDS = 6


def probe_comparisons(
    model: onnx.ModelProto,
    base: Mapping[str, Array],
    open_model: Open,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    turns: Sequence[Turn] | None = None,
) -> Boundaries:
    """What `probe_boundaries` gives for floats, with feeds for what turns by integers: the model's, where not given."""
    return with_integers(probe_boundaries(model, base, open_model, bounds), model, base, open_model, bounds, turns)


def with_integers(
    probes: Boundaries,
    model: onnx.ModelProto,
    base: Mapping[str, Array],
    open_model: Open,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    turns: Sequence[Turn] | None = None,
) -> Boundaries:
    """The boundaries with a feed for the comparisons of integers, where an element of an input turns one.

    `base` and `bounds` are what `probe_boundaries` takes. Nothing is added for a graph that cannot be run in parts.
    """
    import numpy as np

    turns = (integer_turns(model.graph) if turns is None else turns)[:MOST_DECISIONS]
    inputs = [n for n, v in base.items() if v.dtype.kind in "iu" and v.size]
    if not turns or not inputs:
        return probes
    try:
        run = open_model(leading_to(model, list(dict.fromkeys(v for t in turns for v in t.values))))

        def levels(feed: Mapping[str, Array]) -> list[Array]:
            values = {name: np.asarray(value).astype(np.int64) for name, value in run(feed).items()}
            return [np.asarray(values[t.value] - (values[t.other] if t.other else t.at)) for t in turns]

        feeds = []
        # Of few elements each can be at one turn, so further ones follow in feeds of their own.
        for first in range(0, min(len(turns), MOST_FEEDS), max(base[n].size for n in inputs)):
            feed = dict(base)
            for name in inputs:
                led = _led(feed, name, levels, (bounds or {}).get(name), first)
                if led is not None:
                    feed[name] = led
            if any(feed[name] is not base[name] for name in inputs):
                feeds.append(feed)
    except TrtconvError:
        return probes
    pinned: list[dict[str, Array]] = [{} for _ in feeds]
    return replace(probes, feeds=(*probes.feeds, *feeds), pinned=(*probes.pinned, *pinned)) if feeds else probes


@dataclass(frozen=True)
class Turn:
    """Something turns where a whole number is another value, or is the number `at`."""

    value: str
    other: str = ""
    at: int = 0

    @property
    def values(self) -> tuple[str, ...]:
        """The values that have to be known for it."""
        return (self.value, self.other) if self.other else (self.value,)


def integer_turns(graph: onnx.GraphProto) -> tuple[Turn, ...]:
    """What turns in the main graph by integer inputs and no other values: comparisons, rows of tables, differences."""
    constants = {t.name for t in graph.initializer}
    inputs = {v.name: v.type.tensor_type.elem_type for v in graph.input if v.name not in constants}
    whole = {name for name, kind in inputs.items() if kind in INTEGERS}
    others = set(inputs) - whole
    turns: list[Turn] = []
    differences: set[str] = set()
    for node in graph.node:
        if node.op_type in BLIND:
            continue
        if any(i in others for i in node.input):
            others.update(node.output)
        elif any(i in whole for i in node.input):
            whole.update(node.output)
            if node.op_type in COMPARING:
                turns.append(Turn(node.input[0], node.input[1]))
            elif node.op_type in ("Sub", "Add"):
                differences.update(node.output)
            elif node.op_type == "Cast" and node.input[0] in differences and not leaves_floats(node):
                turns.append(Turn(node.input[0]))
    turns += [Turn(index, at=row) for index, row in looked_up(graph, whole)]
    return tuple(dict.fromkeys(turns))


Levels = Callable[[Mapping[str, "Array"]], list["Array"]]


def _led(feed: Feed, name: str, levels: Levels, bound: tuple[float, float] | None, first: int) -> Array | None:
    """The input with elements at, under and over the boundaries; None where no comparison follows its elements.

    The `first` comparison is that of the first element.
    """
    import numpy as np

    value = feed[name]
    flat = value.reshape(-1).astype(np.int64)
    info = np.iinfo(value.dtype)
    low, high = bound if bound is not None else (info.min, info.max)
    step = np.where(flat < high, 1, -1)
    before = levels(feed)
    after = levels({**feed, name: (flat + step).astype(value.dtype).reshape(value.shape)})
    half = np.random.default_rng(flat.size).random(flat.size) < 0.5
    # An input of one element, and any other, has one that moves.
    half[0] = True
    moved = levels({**feed, name: (flat + np.where(half, step, 0)).astype(value.dtype).reshape(value.shape)})
    targets = []
    for at, beyond, partly in zip(before, after, moved, strict=True):
        rows = _by_element(at, flat.size, partly, half)
        if rows is None:
            continue
        level, slope = rows(at), (rows(beyond) - rows(at)) * step[:, None]
        column = np.arange(flat.size) % level.shape[1]
        level, slope = (part[np.arange(flat.size), column] for part in (level, slope))
        with np.errstate(all="ignore"):
            targets.append((flat - level // np.where(slope == 0, 1, slope), slope != 0))
    turn = np.arange(flat.size)
    result, changed = flat.copy(), False
    for index, (even, follows) in enumerate(targets):
        # At the boundary first: an input of few elements may have no room for its sides.
        side = np.asarray((0, -1, 1))[turn // len(targets) % 3]
        aim = even + side
        take = ((turn + first) % len(targets) == index) & follows & (aim >= low) & (aim <= high)
        result[take] = aim[take]
        changed |= bool(take.any())
    return result.astype(value.dtype).reshape(value.shape) if changed else None


def _by_element(level: Array, size: int, partly: Array, half: Array) -> Callable[[Array], Array] | None:
    """How a comparison's elements lie by those of the input: a function to [size, K], or None where they do not.

    They do where none changes but with the element of its own.
    """
    import numpy as np

    if not level.size or level.size % size:
        return None

    def leading(values: Array) -> Array:
        return values.reshape(size, -1)

    def trailing(values: Array) -> Array:
        return np.moveaxis(values.reshape(-1, size), 1, 0)

    for rows in (leading, trailing):
        changed = (rows(partly) != rows(level)).any(axis=1)
        if changed.any() and not (changed & ~half).any():
            return rows
    return None
