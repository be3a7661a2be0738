"""Integer inputs at which the comparisons of a graph turn: `ids == n * 7 % 31` is true of one number in a million.

Random whole numbers hardly ever meet such a boundary, and another number in the file would not show. Here elements of
an integer input are set to where a comparison is even, to one less and one more, each element for one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.proof.probes.boundaries import MOST_DECISIONS, Boundaries, Feed, Open, leading_to, probe_boundaries
from trtconv.proof.probes.decisions import BLIND, COMPARING, INTEGERS

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


def probe_comparisons(
    model: onnx.ModelProto,
    base: Mapping[str, Array],
    open_model: Open,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Boundaries:
    """What `probe_boundaries` gives for floats, with a feed for the comparisons of integers."""
    return with_integers(probe_boundaries(model, base, open_model, bounds), model, base, open_model, bounds)


def with_integers(
    probes: Boundaries,
    model: onnx.ModelProto,
    base: Mapping[str, Array],
    open_model: Open,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Boundaries:
    """The boundaries with a feed for the comparisons of integers, where an element of an input turns one.

    `base` and `bounds` are what `probe_boundaries` takes. Nothing is added for a graph that cannot be run in parts.
    """
    import numpy as np

    decisions = integer_comparisons(model.graph)[:MOST_DECISIONS]
    inputs = [n for n, v in base.items() if v.dtype.kind in "iu" and v.size]
    if not decisions or not inputs:
        return probes
    try:
        run = open_model(leading_to(model, list(dict.fromkeys(i for d in decisions for i in d.input))))

        def levels(feed: Mapping[str, Array]) -> list[Array]:
            values = run(feed)
            pairs = [[values[i].astype(np.int64) for i in d.input] for d in decisions]
            return [np.asarray(first - other) for first, other in pairs]

        feed = dict(base)
        for name in inputs:
            led = _led(feed, name, levels, (bounds or {}).get(name))
            if led is not None:
                feed[name] = led
    except TrtconvError:
        return probes
    if all(feed[name] is base[name] for name in inputs):
        return probes
    return replace(probes, feeds=(*probes.feeds, feed), pinned=(*probes.pinned, {}))


def integer_comparisons(graph: onnx.GraphProto) -> tuple[onnx.NodeProto, ...]:
    """The comparisons of the main graph that depend on integer inputs and on no other values, in its order."""
    constants = {t.name for t in graph.initializer}
    inputs = {v.name: v.type.tensor_type.elem_type for v in graph.input if v.name not in constants}
    whole = {name for name, kind in inputs.items() if kind in INTEGERS}
    others = set(inputs) - whole
    comparisons = []
    for node in graph.node:
        if node.op_type in BLIND:
            continue
        if any(i in others for i in node.input):
            others.update(node.output)
        elif any(i in whole for i in node.input):
            whole.update(node.output)
            if node.op_type in COMPARING:
                comparisons.append(node)
    return tuple(comparisons)


Levels = Callable[[Mapping[str, "Array"]], list["Array"]]


def _led(feed: Feed, name: str, levels: Levels, bound: tuple[float, float] | None) -> Array | None:
    """The input with elements at, under and over the boundaries; None where no comparison follows its elements."""
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
    for first, second, partly in zip(before, after, moved, strict=True):
        rows = _by_element(first, flat.size, partly, half)
        if rows is None:
            continue
        level, slope = rows(first), (rows(second) - rows(first)) * step[:, None]
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
        take = (turn % len(targets) == index) & follows & (aim >= low) & (aim <= high)
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
