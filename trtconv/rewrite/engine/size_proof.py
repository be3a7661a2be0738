"""The proof of a rewrite at the sizes of the range: a part that computes with sizes may be wrong at 3 of 1,025 pairs.

Parts are small, and a run takes a fraction of a millisecond. So a part that computes with sizes is run at all joint
sizes of the dims that its inputs have, small ones first, as long as its share of the budget lasts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from trtconv.core.ledger.records import Proof
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.proof.joint_sizes import count_sizes, covering_sizes
from trtconv.rewrite.graph.fragment import Fragment

# What a part may cost, and all parts of a model together: runs, and of large ones more. Not seconds, of which a busy
# machine has fewer, for equal inputs give equal ledgers.
MOST_COST = 1200.0
TOTAL_COST = 5000.0
ELEMENTS_OF_A_RUN = 1 << 16
# Where the sides differ by more than a rounding, their noise is measured: further runs, and the work of comparing.
COST_OF_NOISE = 12.0
# Up to so many joint sizes are put in order; of more the order is the one made for coverage.
MOST_SORTED = 1 << 14
MOST_ELEMENTS = 1 << 18
COMPUTES_WITH_SIZES = frozenset({"Shape", "Size", "Range", "Resize", "Upsample", "EyeLike", "ConstantOfShape"})

Shapes = dict[str, tuple[int, ...]]
# The comparison at a label and shapes; None where both sides are alike at a glance.
Compare = Callable[[str, Shapes], Proof | None]


@dataclass
class SizeBudget:
    """What is left for the parts of one model."""

    cost: float = TOTAL_COST


def computes_with_sizes(fragment: Fragment) -> bool:
    """True when the values of the part depend on its shapes by more than their extent, on either side."""
    models = (fragment.before, fragment.after)
    return any(n.op_type in COMPUTES_WITH_SIZES for m in models for n in m.graph.node)


def prove_sizes(
    proof: Proof,
    space: ShapeSpace,
    shapes_at: Callable[[Mapping[str, int]], Shapes | None],
    compare: Compare,
    budget: SizeBudget,
) -> Proof:
    """A proof that passed, with what was covered; the failing comparison where a size differs.

    `space` has the dims that the part depends on; `shapes_at` gives its inputs' shapes, or None where the names of dims
    do not tell them.
    """
    total = count_sizes(space)
    if shapes_at(space.pick("min")) is None:
        return replace(proof, sizes=f"{len(proof.points)} points; the names of dims do not tell its shapes")
    allowed = min(MOST_COST, budget.cost)
    spent = 0.0
    tried = 0
    for sizes in _in_order(space, total):
        shapes = shapes_at(sizes)
        elements = sum(math.prod(s) for s in shapes.values()) if shapes else MOST_ELEMENTS + 1
        spent += 1.0 + elements / ELEMENTS_OF_A_RUN
        if spent > allowed:
            break
        if shapes is None or elements > MOST_ELEMENTS:
            continue
        label = "sizes (" + " ".join(f"{n}={v}" for n, v in sizes.items()) + ")"
        at = compare(label, shapes)
        if at is not None:
            spent += COST_OF_NOISE
        if at is not None and at.passed is False:
            budget.cost -= spent
            return at
        # Where the part before does not run nothing is said of the size.
        tried += at is None or bool(at.passed)
    budget.cost -= spent
    return replace(proof, sizes=f"{tried:,} of {total:,} joint sizes of {', '.join(space)}")


def _in_order(space: ShapeSpace, total: int) -> Iterator[dict[str, int]]:
    if total > MOST_SORTED:
        return covering_sizes(space, ())
    joint = itertools.product(*(r.values() for _, r in space.dims))
    return iter([dict(zip(space, values, strict=True)) for values in sorted(joint, key=math.prod)])
