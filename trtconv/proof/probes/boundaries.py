"""Inputs at which the operands of a graph's decisions lie on their boundaries, and on both sides.

Where an operand is computed from one input element by element, every element is led to a boundary of its own: the
graph is run at levels from -1e4 to 1e4, and between two of them on both sides of the boundary the interval is halved.
What is fed is a number as people write them (0.7 for the seventh step of 0.1) where the operand is within rounding of
the boundary there, and else the two sides, further from it than rounding is. Exactly at a boundary that is no such
number two right graphs may differ: (x - mean) / std and x * a + b have boundaries some roundings apart.

Where it is computed from many elements, the whole input is scaled until the operand has passed a boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.model import bodies
from trtconv.proof.points import BOUNDARY, SamplePoint
from trtconv.proof.probes.decisions import Decision, find_decisions
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Run = Callable[[Mapping[str, "Array"]], dict[str, "Array"]]
Feed = dict[str, "Array"]
Open = Callable[["onnx.ModelProto"], Run]

MOST_DECISIONS = 24
MOST_POINTS = 4
LEVELS = tuple(
    sign * size
    for sign, sizes in (
        (-1, (1e4, 1e3, 300, 100, 30, 10, 3, 1, 0.3, 0.1, 0.01, 1e-3)),
        (1, (0.0, 1e-3, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1e3, 1e4)),
    )
    for size in sizes
)
SCALES = (0.0, 1e-3, 0.01, 0.1, 0.3, 3.0, 10.0, 100.0, -0.1, -1.0, -10.0, -100.0)
# The boundaries asked for, by their number.
NUMBERS = (0, 1, -1, 2, 3, -2, 5, 7, -3, 4, 6, 10, -5, 12, 17, 20, -10, 33, 50, 100, -50, 127, 200, 255)
HALVINGS = 34
DIGITS = 4
# An operand within so many roundings of a boundary is on it; sides are so many away.
ON, AWAY = 8 * 2.0**-24, 256 * 2.0**-24


@dataclass(frozen=True)
class Boundaries:
    """The inputs made, and how many decisions were probed of how many; `missed` names the others.

    `pinned` says of each of the feeds which elements a decision compares as they are, by input.
    """

    feeds: tuple[Feed, ...]
    decisions: int
    missed: tuple[str, ...]
    pinned: tuple[Feed, ...] = ()

    def samples(self, run: Run, at: SamplePoint, before: int = 0) -> list[ReferenceSample]:
        """What an original gives there, at points like `at` numbered after so many before them.

        Those inputs for which it raises are left out.
        """
        samples: list[ReferenceSample] = []
        for feed, pinned in zip(self.feeds, self.pinned, strict=True):
            point = replace(at, label=f"boundary-{before + len(samples) + 1}", values=BOUNDARY)
            with suppress(TrtconvError):
                samples.append(ReferenceSample(point, feed, run(feed), pinned=pinned))
        return samples

    def __str__(self) -> str:
        """`decisions probed: 12 of 14`."""
        return f"decisions probed: {self.decisions - len(self.missed)} of {self.decisions}"


def probe_boundaries(
    model: onnx.ModelProto,
    base: Mapping[str, Array],
    open_model: Open,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Boundaries:
    """Inputs of the shapes of `base` for the decisions of a model; `bounds` are value ranges of inputs.

    Nothing is made of a graph that cannot be run with its inner values as outputs.
    """
    every = find_decisions(model.graph)
    decisions = every[:MOST_DECISIONS]
    left = tuple(d.node for d in every[MOST_DECISIONS:])
    floats = [n for n, v in base.items() if v.dtype.name in ("float32", "float16") and v.size]
    if not decisions or not floats:
        return Boundaries((), len(every), tuple(d.node for d in every))
    try:
        probe = _Probe(model, open_model, decisions, base, dict(bounds or {}))
        feeds, pinned, reached = probe.elementwise(floats)
        more, crossed = probe.scaled(floats, [d for d in decisions if d not in reached], MOST_POINTS - len(feeds))
    except TrtconvError:
        return Boundaries((), len(every), tuple(d.node for d in every))
    missed = tuple(d.node for d in decisions if d not in reached and d not in crossed)
    return Boundaries((*feeds, *more), len(every), (*missed, *left), (*pinned, *({} for _ in more)))


def leading_to(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The part of the model that leads to the values of these names, which are its outputs."""
    import onnx

    graph = model.graph
    nodes = bodies.leading_to(graph.node, names)
    needed = {*names, *(value for node in nodes for value in bodies.values_read(node))}
    weights = [t for t in graph.initializer if t.name in needed]
    part = onnx.helper.make_graph(nodes, graph.name, list(graph.input), [], weights)
    part.sparse_initializer.extend(graph.sparse_initializer)
    part.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    cut = onnx.helper.make_model(part, opset_imports=list(model.opset_import), ir_version=model.ir_version)
    cut.functions.extend(model.functions)
    return cut


class _Probe:
    """Runs the operands of decisions."""

    def __init__(
        self,
        model: onnx.ModelProto,
        open_model: Open,
        decisions: Sequence[Decision],
        base: Mapping[str, Array],
        bounds: Mapping[str, tuple[float, float]],
    ) -> None:
        self._model, self._open, self._decisions = model, open_model, decisions
        self._base, self._bounds = base, bounds
        self._run = open_model(leading_to(model, list(dict.fromkeys(v for d in decisions for v in d.values))))

    def _of(self, decisions: Sequence[Decision]) -> _Probe:
        """The same of fewer decisions, for which less of the graph has to run."""
        if len(decisions) == len(self._decisions):
            return self
        return _Probe(self._model, self._open, decisions, self._base, self._bounds)

    def _levels(self, feed: Mapping[str, Array]) -> dict[Decision, Array]:
        """By decision, how far each operand is over the boundary number 0, in the operand's units."""
        import numpy as np

        values = self._run(feed)
        levels = {}
        with np.errstate(all="ignore"):
            for decision in self._decisions:
                first = values[decision.operand].astype(np.float64)
                other = values[decision.other].astype(np.float64) if decision.other else decision.offset
                levels[decision] = np.asarray(first - other)
        return levels

    def elementwise(self, floats: Sequence[str]) -> tuple[list[Feed], list[Feed], set[Decision]]:
        """One set of inputs in which elements of each input are shared among the decisions that follow them.

        With it, which of its elements exact decisions compare, and the decisions that have elements at a boundary.
        """
        import numpy as np

        at_base = self._levels(self._base)
        feed, reached, pinned = dict(self._base), set[Decision](), Feed()
        for name in floats:
            following = self._following(name, at_base)
            if not following:
                continue
            values, exact = np.array(feed[name]), np.zeros(feed[name].shape, bool)
            reached |= self._of(following)._lead(name, following, values, exact)
            feed[name] = values
            if exact.any():
                pinned[name] = exact
        return ([feed], [pinned], reached) if reached else ([], [], reached)

    def _following(self, name: str, at_base: Mapping[Decision, Array]) -> list[Decision]:
        """The decisions whose operand's elements follow the elements of an input, one by one in the same order."""
        import numpy as np

        value = self._base[name]
        chance = np.random.default_rng(value.size)
        chosen = chance.random(value.size) < 0.5 if value.size > 1 else np.ones(1, bool)
        moved = value.reshape(-1).copy()
        moved[chosen] += np.where(moved[chosen] > 0, -0.37, 0.37).astype(np.float32)
        after = self._levels({**self._base, name: moved.reshape(value.shape)})
        following = []
        for decision, level in at_base.items():
            if level.size != value.size:
                continue
            with np.errstate(all="ignore"):
                changed = (after[decision] != level).reshape(-1)
            if changed.any() and not (changed & ~chosen).any():
                following.append(decision)
        return following

    def _lead(self, name: str, following: Sequence[Decision], values: Array, exact: Array) -> set[Decision]:
        """Set the elements of `values` in turn for the decisions; returns those that have elements at a boundary.

        Those of exact decisions are set in `exact`.
        """
        import numpy as np

        flat, flat_exact = values.reshape(-1), exact.reshape(-1)
        turn = np.arange(flat.size)
        at = np.asarray(LEVELS if name not in self._bounds else np.linspace(*self._bounds[name], len(LEVELS)))
        steps = [self._at_level(name, level) for level in at]
        reached = set()
        for index, decision in enumerate(following):
            mine = turn % len(following) == index
            numbers = _reachable([s[decision] for s in steps], decision.step)
            target = numbers[(turn // (3 * len(following))) % len(numbers)] * decision.step
            bracket = _bracket([s[decision].reshape(-1) for s in steps], at, target)
            if bracket is None:
                continue
            below, above, crossing = bracket
            solved = self._halve(name, decision, target, below, above)
            chosen, good = self._written(name, decision, target, solved, turn // len(following) % 3)
            take = mine & crossing & good
            flat[take], flat_exact[take] = chosen[take], decision.exact
            if take.any():
                reached.add(decision)
        return reached

    def _at_level(self, name: str, level: Any) -> dict[Decision, Array]:
        import numpy as np

        return self._levels({**self._base, name: np.full_like(self._base[name], level)})

    def _level_of(self, name: str, decision: Decision, flat: Array) -> Array:
        base = self._base[name]
        feed = {**self._base, name: flat.astype(base.dtype).reshape(base.shape)}
        return self._levels(feed)[decision].reshape(-1)

    def _halve(self, name: str, decision: Decision, target: Array, below: Array, above: Array) -> tuple[Array, Array]:
        """The elements' last input whose operand is under the target, and the first that is not; by halving."""
        import numpy as np

        for _ in range(HALVINGS):
            middle = (below + above) / 2
            under = self._level_of(name, decision, middle) < target
            below, above = np.where(under, middle, below), np.where(under, above, middle)
        return below, above

    def _written(
        self, name: str, decision: Decision, target: Array, solved: tuple[Array, Array], side: Array
    ) -> tuple[Array, Array]:
        """The numbers to feed, and which of them are where they should be.

        In turn (`side` 0, 1, 2) on the boundary, under it, and over it.
        """
        import numpy as np

        below, above = solved
        unit = np.maximum(np.abs(target), decision.step or 1.0)
        written = _rounded(above)
        on = np.abs(self._level_of(name, decision, written) - target) <= ON * np.maximum(unit, np.abs(above))
        on &= (side == 0) & (not decision.near)
        away = AWAY * np.maximum(np.abs(above), 1e-3)
        over = np.where(above >= below, 1.0, -1.0)
        sides = np.where(side == 2, above + over * away, below - over * away)
        level = self._level_of(name, decision, sides) - target
        beside = (np.abs(level) > ON * unit) & (np.abs(level) < 0.05 * unit)
        chosen = np.where(on, written, sides).astype(self._base[name].dtype)
        low, high = self._bounds.get(name, (-np.inf, np.inf))
        return chosen, (on | beside) & (chosen >= low) & (chosen <= high)

    def scaled(
        self, floats: Sequence[str], decisions: Sequence[Decision], most: int
    ) -> tuple[list[dict[str, Array]], set[Decision]]:
        """Inputs scaled as a whole so that operands pass a boundary; decisions with both sides at `base` need none."""
        import numpy as np

        sides = {d: _sides(d, level) for d, level in self._levels(self._base).items() if d in decisions}
        crossed = {d for d in decisions if len(sides[d]) > 1}
        feeds: list[dict[str, Array]] = []
        for scale in SCALES:
            waiting = [d for d in decisions if d not in crossed]
            if not waiting or len(feeds) >= most:
                break
            scaled = {n: (self._base[n] * np.float32(scale)).astype(self._base[n].dtype) for n in floats}
            feed = {**self._base, **{n: self._within(n, v) for n, v in scaled.items()}}
            levels = self._levels(feed)
            new = {d for d in waiting if _sides(d, levels[d]) - sides[d]}
            if new:
                crossed |= new
                feeds.append(feed)
        return feeds, crossed

    def _within(self, name: str, values: Array) -> Array:
        import numpy as np

        return np.clip(values, *self._bounds[name]) if name in self._bounds else values


def _sides(decision: Decision, level: Array) -> set[int]:
    """On which sides of its boundaries the elements of an operand lie."""
    import numpy as np

    finite = level[np.isfinite(level)].reshape(-1)[:100_000]
    sides = np.sign(finite) if not decision.step else np.floor(finite / decision.step)
    return {int(s) for s in np.unique(sides)[:64]}


def _reachable(levels: Sequence[Array], step: float) -> Array:
    """The numbers of boundaries between the lowest and the highest level."""
    import numpy as np

    finite = [level[np.isfinite(level)] for level in levels]
    finite_levels = np.concatenate([f.reshape(-1) for f in finite])
    if not step or not finite_levels.size:
        return np.zeros(1)
    low, high = np.ceil(finite_levels.min() / step), np.floor(finite_levels.max() / step)
    numbers = np.asarray([n for n in NUMBERS if low <= n <= high], np.float64)
    return numbers if numbers.size else np.unique(np.round(np.linspace(low, max(low, high), len(NUMBERS))))


def _bracket(levels: Sequence[Array], at: Array, target: Array) -> tuple[Array, Array, Array] | None:
    """By element, inputs under and not under the target, and where there are such; None when there are none."""
    import numpy as np

    below, above = np.zeros(target.shape), np.zeros(target.shape)
    crossing = np.zeros(target.shape, bool)
    middle = len(at) // 2
    # The pairs of levels nearest to zero first.
    for index in sorted(range(len(at) - 1), key=lambda i: abs(i - middle)):
        first, second = levels[index] < target, levels[index + 1] < target
        new = ~crossing & (first != second) & np.isfinite(levels[index]) & np.isfinite(levels[index + 1])
        below = np.where(new, np.where(first, at[index], at[index + 1]), below)
        above = np.where(new, np.where(first, at[index + 1], at[index]), above)
        crossing |= new
    return (below, above, crossing) if crossing.any() else None


def _rounded(values: Array) -> Array:
    """Rounded to four decimal digits, as people write numbers."""
    import numpy as np

    with np.errstate(all="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.maximum(np.abs(values), 1e-30))))
        result: Array = np.round(values * scale) / scale
    return result
