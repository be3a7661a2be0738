"""Which values of two sides are one, which come of the same operation, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of
from trtconv.export.branches.joined.numbering import ALONE, form_of
from trtconv.export.branches.joined.outputs import CommonDims
from trtconv.export.branches.joined.sides import Side

if TYPE_CHECKING:
    import onnx

# A value of each side.
Pair = tuple[str, str]
# So many values are chosen for what comes behind them to be written once.
MOST_CHOSEN = 4
# A second value that is chosen has to save so many nodes in a row.
NODES_PER_CHOICE = 4
# Pairs looked at, by node of both sides.
MOST_PAIRS = 6
# Nodes by which one side may go further than the other.
MOST_STEPS = 6
# Operators of which an input beyond the first says sizes: it cannot come out of an If.
READING_SIZES = {"Reshape", "Expand", "Resize", "Upsample", "Slice", "Pad", "Tile", "TopK", "Unsqueeze", "Squeeze"}
ALL_SIZES = {"ConstantOfShape", "Range"}
# What the second input of these says, the sizes of their outputs say as well.
BY_OUTPUT_SIZES = {"Reshape", "Expand"}


class PairKind(Enum):
    """What becomes of a pair of values."""

    SHARED = "computed once, before anything is chosen"
    MERGED = "one operation, on pairs of inputs"
    BLENDED = "sizes, of which arithmetic takes one"
    CHOSEN = "an output of an If"
    APART = "none of these: what reads it is chosen"


@dataclass(frozen=True)
class Aligned:
    """A pair with its kind, the pairs that are chosen for it, and the number of merged nodes in a row up to it.

    `values` are those of `chosen` whose values it has, and not their sizes alone. `sizes_of` is the side whose sizes
    are right on both, where a merged node takes its second input from there.
    """

    kind: PairKind
    chosen: frozenset[Pair] = frozenset()
    depth: int = 0
    values: frozenset[Pair] = frozenset()
    sizes_of: int | None = None


@dataclass
class Alignment:
    """All pairs that were looked at; `roots` are those of the outputs, `inner` are merged inside of chosen ones."""

    low: Side
    high: Side
    roots: list[Pair]
    common: CommonDims
    pairs: dict[Pair, Aligned] = field(default_factory=dict)
    inner: list[Pair] = field(default_factory=list)

    def inputs(self, pair: Pair) -> list[Pair]:
        """The pairs that the nodes of a pair read."""
        first, second = self.low.makers[pair[0]], self.high.makers[pair[1]]
        reads = zip(first.input, second.input, strict=True)
        return [(self.low.through(a), self.high.through(b)) for a, b in reads if a]


def align(low: Side, high: Side, common: CommonDims, *, merge: bool = True) -> Alignment:
    """Pair the values of two sides, from their outputs on; without `merge` what differs is chosen at the outputs."""
    outputs = zip(low.body.output, high.body.output, strict=True)
    alignment = Alignment(low, high, [(low.through(a.name), high.through(b.name)) for a, b in outputs], common)
    _look_at(alignment, alignment.roots, merge=merge)
    for root in alignment.roots:
        if alignment.pairs[root].kind in (PairKind.APART, PairKind.BLENDED):
            alignment.pairs[root] = _chosen(root)
    waiting = [pair for root in alignment.roots for pair in alignment.pairs[root].chosen] if merge else []
    looked_at = set(waiting)
    while waiting:
        inner = _shifted(alignment, waiting.pop())
        if inner is not None and inner not in alignment.inner:
            alignment.inner.append(inner)
            waiting += alignment.pairs[inner].chosen - looked_at
            looked_at |= alignment.pairs[inner].chosen
    return alignment


def _look_at(alignment: Alignment, pairs: Iterable[Pair], *, merge: bool = True) -> None:
    """Say what becomes of pairs, and of all that they lead to."""
    low, high = alignment.low.order, alignment.high.order
    all_pairs = _pairs(alignment, pairs) if merge else set(pairs)
    for pair in sorted(all_pairs, key=lambda p: (low.get(p[0], -1), high.get(p[1], -1))):
        alignment.pairs[pair] = _aligned(alignment, pair, merge=merge)


def _shifted(alignment: Alignment, pair: Pair) -> Pair | None:
    """A merged pair inside of one that is chosen: one side goes some steps further (`x[:, :t]`) than the other."""
    low, high = alignment.low, alignment.high
    shifted = [(pair[0], other) for other in _earlier(high, pair[1])]
    shifted += [(own, pair[1]) for own in _earlier(low, pair[0])]
    for candidate in shifted:
        if candidate not in alignment.pairs:
            _look_at(alignment, [candidate])
        aligned = alignment.pairs[candidate]
        if aligned.kind is PairKind.MERGED and aligned.depth >= NODES_PER_CHOICE:
            return candidate
    return None


def is_shared(alignment: Alignment, pair: Pair) -> bool:
    """True where both sides compute the value alike, or take the same from outside."""
    return alignment.low.numbering.of(pair[0]) == alignment.high.numbering.of(pair[1])


def _earlier(side: Side, name: str) -> Iterator[str]:
    """The values that a value comes from by the first inputs of a few nodes."""
    for _ in range(MOST_STEPS):
        node = side.makers.get(name)
        if node is None or not node.input or name not in side.order:
            return
        name = side.through(node.input[0])
        yield name


def _pairs(alignment: Alignment, roots: Iterable[Pair]) -> set[Pair]:
    """All pairs that some lead to; those that were looked at before are left out."""
    most = MOST_PAIRS * (len(alignment.low.order) + len(alignment.high.order)) + len(alignment.roots)
    waiting = [p for p in roots if p not in alignment.pairs]
    pairs = set(waiting)
    while waiting and len(pairs) < most:
        pair = waiting.pop()
        if is_shared(alignment, pair) or not _are_alike(alignment, pair):
            continue
        further = [p for p in alignment.inputs(pair) if p not in pairs and p not in alignment.pairs]
        pairs.update(further)
        waiting += further
    return pairs


def _are_alike(alignment: Alignment, pair: Pair) -> bool:
    """True for the same output of nodes of one form that may stand for each other."""
    name, other = pair
    if name not in alignment.low.order or other not in alignment.high.order:
        return False
    first, second = alignment.low.makers[name], alignment.high.makers[other]
    if first.op_type in ALONE or any(True for n in (first, second) for _ in bodies_of(n)):
        return False
    if len(first.input) != len(second.input) or any(
        bool(a) != bool(b) for a, b in zip(first.input, second.input, strict=True)
    ):
        return False
    if first.op_type in BY_OUTPUT_SIZES and first.op_type == second.op_type and not (first.domain or second.domain):
        return True
    return list(first.output).index(name) == list(second.output).index(other) and form_of(first) == form_of(second)


def _aligned(alignment: Alignment, pair: Pair, *, merge: bool) -> Aligned:
    if is_shared(alignment, pair):
        return Aligned(PairKind.SHARED)
    merged = _merged(alignment, pair) if merge and _are_alike(alignment, pair) else None
    if merged is not None:
        return merged
    if _is_blendable(alignment, pair):
        return Aligned(PairKind.BLENDED)
    return _chosen(pair) if _can_be_chosen(alignment, pair) else Aligned(PairKind.APART)


def _chosen(pair: Pair) -> Aligned:
    return Aligned(PairKind.CHOSEN, frozenset((pair,)), values=frozenset((pair,)))


def _merged(alignment: Alignment, pair: Pair) -> Aligned | None:
    chosen: frozenset[Pair] = frozenset()
    values: frozenset[Pair] = frozenset()
    depth = 0
    node = alignment.low.makers[pair[0]]
    sizes_of = _side_of_sizes(alignment, pair, node)
    if sizes_of is None and form_of(node) != form_of(alignment.high.makers[pair[1]]):
        return None
    slots = [index for index, name in enumerate(node.input) if name]
    for slot, read in zip(slots, alignment.inputs(pair), strict=True):
        if slot == 1 and sizes_of is not None:
            continue
        aligned = alignment.pairs.get(read)
        if aligned is None or aligned.kind is PairKind.APART:
            return None
        says_sizes = node.op_type in ALL_SIZES or (node.op_type in READING_SIZES and slot > 0)
        if says_sizes and aligned.values:
            return None
        if aligned.kind is PairKind.BLENDED and not _is_said_plainly(alignment, read, node):
            return None
        chosen |= aligned.chosen
        values |= aligned.values
        depth = max(depth, aligned.depth)
    if len(chosen) > MOST_CHOSEN or depth + 1 < NODES_PER_CHOICE * (len(chosen) - 1):
        return None
    if node.op_type in ("Shape", "Size"):
        values = frozenset()
    return Aligned(PairKind.MERGED, chosen, depth + 1, values, sizes_of)


def _side_of_sizes(alignment: Alignment, pair: Pair, node: onnx.NodeProto) -> int | None:
    """The side whose sizes a Reshape or Expand takes on both; None where both have the same, or neither is right."""
    if node.op_type not in BY_OUTPUT_SIZES or node.domain:
        return None
    sides = (alignment.low, alignment.high)
    sizes = tuple(side.makers[name].input[1] for side, name in zip(sides, pair, strict=True))
    types = [side.types.get(name) for side, name in zip(sides, pair, strict=True)]
    if sides[0].numbering.of(sizes[0]) == sides[1].numbering.of(sizes[1]) or None in types:
        return None
    dims = [list(t.dims) for t in types if t is not None]
    if len(dims[0]) != len(dims[1]):
        return None
    common = alignment.common.of(*dims)
    for side in (0, 1):
        if common == dims[side] and "" not in common and sides[side].is_of_sizes(sizes[side], sides[1 - side]):
            return side
    return None


def _is_said_plainly(alignment: Alignment, pair: Pair, reader: onnx.NodeProto) -> bool:
    """False where one of two sizes may be a sign for another, between which no arithmetic chooses."""
    if reader.op_type == "Slice":
        return True
    return not (alignment.low.has_wildcard(pair[0]) or alignment.high.has_wildcard(pair[1]))


def _is_blendable(alignment: Alignment, pair: Pair) -> bool:
    import onnx

    types = [side.types.get(name) for side, name in zip((alignment.low, alignment.high), pair, strict=True)]
    first, second = types
    if first is None or second is None or first != second or first.element != onnx.TensorProto.INT64:
        return False
    if len(first.dims) > 1 or not all(isinstance(d, int) for d in first.dims):
        return False
    low, high = alignment.low, alignment.high
    return low.is_of_sizes(pair[0], high) and high.is_of_sizes(pair[1], low)


def _can_be_chosen(alignment: Alignment, pair: Pair) -> bool:
    first, second = alignment.low.types.get(pair[0]), alignment.high.types.get(pair[1])
    if first is None or second is None or first.element != second.element or len(first.dims) != len(second.dims):
        return False
    low, high = alignment.low, alignment.high
    # Sizes that come out of an If are what no TensorRT takes.
    return not (low.is_of_sizes(pair[0], high) or high.is_of_sizes(pair[1], low))
