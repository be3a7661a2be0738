"""Where a graph ranks values that tie within their own rounding: which of them comes first is an accident.

The proof lets such rows change places, since the original's own do. Who serves the model meets it nevertheless: another
index, another row of a detector. So it is told, with the margin and the noise. Values that are equal in every run
(zeros of a ReLU) are no accident of rounding: a file takes the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.proof.noise.rounding import moved
from trtconv.proof.original import Perturbing, Run
from trtconv.proof.probes.boundaries import leading_to
from trtconv.proof.probes.decisions import depend_on_values

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Open = Callable[["onnx.ModelProto"], Run]

# Runs with inputs moved by a rounding; the largest move of a value is its noise.
MOVES = 3
# A value's noise is not taken for more than so many times what most of them stay under.
BEYOND, USUAL = 4.0, 0.9


@dataclass(frozen=True)
class Ranking:
    """A node that ranks `operand` along `axis`. A top-k's `values` tell how many it takes; `in_order` says that their
    order is handed on, and not their choice alone.
    """

    node: str
    op: str
    operand: str
    axis: int
    largest: bool
    values: str = ""
    in_order: bool = True

    @property
    def needed(self) -> tuple[str, ...]:
        """The values that have to be known for it."""
        return (self.operand, self.values) if self.values else (self.operand,)


@dataclass(frozen=True)
class NearTie:
    """The narrowest margin of a ranking: two neighbours that part by less than they are off, in the operand's units.

    `count` is how many such pairs the ranking has. `cut`: which of the two is taken at all is decided there.
    """

    ranking: Ranking
    first: float
    second: float
    noise: float
    count: int
    cut: bool

    @property
    def margin(self) -> float:
        """How far the two values part."""
        return abs(self.first - self.second)


def find_rankings(graph: onnx.GraphProto) -> tuple[Ranking, ...]:
    """The top-ks, sorts and choices of the largest in the main graph whose indices are read, and depend on values."""
    read = {i for n in graph.node for i in n.input} | {o.name for o in graph.output}
    return tuple(r for n in depend_on_values(graph) for r in _ranked_by(n, read))


def _ranked_by(node: onnx.NodeProto, read: set[str]) -> Iterator[Ranking]:
    numbers = {a.name: int(a.i) for a in node.attribute}
    if node.op_type in ("ArgMax", "ArgMin") and node.output[0] in read:
        yield Ranking(node.name, node.op_type, node.input[0], numbers.get("axis", 0), node.op_type == "ArgMax")
    elif node.op_type == "TopK" and len(node.output) > 1 and node.output[1] in read:
        largest, in_order = bool(numbers.get("largest", 1)), bool(numbers.get("sorted", 1))
        yield Ranking(node.name, "TopK", node.input[0], numbers.get("axis", -1), largest, node.output[0], in_order)


def near_ties(model: onnx.ModelProto, feed: Mapping[str, Array], open_model: Open) -> tuple[NearTie, ...]:
    """The rankings of a model that tie within their noise at one set of inputs. Raises TrtconvError as a run does."""
    rankings = find_rankings(model.graph)
    if not rankings:
        return ()
    run = open_model(leading_to(model, list(dict.fromkeys(v for r in rankings for v in r.needed))))
    values, others = run(feed), list(_beside(run, feed))
    ties = (_tie(r, values, [o[r.operand] for o in others]) for r in rankings)
    return tuple(t for t in ties if t is not None)


def _tie(ranking: Ranking, values: Mapping[str, Array], others: Sequence[Array]) -> NearTie | None:
    import numpy as np

    operand = values[ranking.operand]
    count = values[ranking.values].shape[ranking.axis] if ranking.values else 1
    comparable = bool(others) and all(o.shape == operand.shape for o in others)
    if not comparable or not operand.size or operand.shape[ranking.axis] < 2 or not count:
        return None
    sign = -1.0 if ranking.largest else 1.0
    ordered, *moved_orders = (sign * np.sort(sign * _along_last(a, ranking.axis), axis=-1) for a in (operand, *others))
    noise = _noise(ordered, moved_orders)[:, : count + 1]
    ordered = ordered[:, : count + 1]
    margins, limits = np.abs(np.diff(ordered, axis=-1)), noise[:, 1:] + noise[:, :-1]
    tied = np.isfinite(margins) & np.isfinite(limits) & (margins < limits)
    if not ranking.in_order:
        tied[:, : count - 1] = False
    if not tied.any():
        return None
    row, at = np.unravel_index(np.argmin(np.where(tied, margins, np.inf)), margins.shape)
    first, second = (float(v) for v in ordered[row, at : at + 2])
    return NearTie(ranking, first, second, float(limits[row, at]), int(tied.sum()), bool(tied[:, count - 1 :].any()))


def _noise(ordered: Array, others: Sequence[Array]) -> Array:
    """By rank, how far the values of that rank move. An earlier ranking that falls otherwise moves whole rows, which is
    no noise of the values.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        noise = np.nan_to_num(np.max([np.abs(o - ordered) for o in others], axis=0), nan=0.0, posinf=0.0)
    some = noise[noise > 0.0]
    return np.asarray(np.minimum(noise, BEYOND * np.quantile(some, USUAL)) if some.size else noise)


def _beside(run: Run, feed: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Runs beside the inputs by a rounding. Tokens and bytes have no last place: there the weights move."""
    floats = any(v.dtype.kind == "f" for v in feed.values())
    for seed in range(MOVES):
        other = run if floats else run.perturbed(seed) if isinstance(run, Perturbing) else None
        if other is not None:
            yield other(moved(feed, seed))


def _along_last(array: Array, axis: int) -> Array:
    """FP64 [rows, length of the axis]."""
    import numpy as np

    last = np.moveaxis(array.astype(np.float64), axis, -1)
    return last.reshape(-1, last.shape[-1])
