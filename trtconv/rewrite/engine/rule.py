"""What a rewrite rule is. A rule lives in one file of `rules/`, from which the list of rules is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtconv.core.tolerance import Tolerance

if TYPE_CHECKING:
    from trtconv.core.targets import Target
    from trtconv.rewrite.graph.index import Graph, Node
    from trtconv.rewrite.graph.replacement import Replacement, Values


@dataclass(frozen=True)
class Skip:
    """The rule does not fire here. An empty reason means that the node was never a candidate; it is not reported.

    `opset` is the one from which the rule would fire, where the graph's own is what keeps it from that.
    """

    reason: str = ""
    opset: int = 0


NOT_THIS = Skip()


@dataclass(frozen=True)
class Found:
    """A match: `build` takes a graph-surgeon graph and returns one tensor per output of the last node in `nodes`.

    `nodes` are the matched nodes; the last one is the root whose outputs are replaced. Matched nodes whose values
    are used elsewhere too stay. `ranges` bounds the sample values of integer values that enter the match (for
    example indices); `note` is a sentence for the ledger.
    """

    nodes: tuple[Node, ...]
    build: Callable[[Replacement], Values]
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    note: str = ""

    @property
    def root(self) -> Node:
        """The node whose outputs are replaced."""
        return self.nodes[-1]


def every_target(target: Target) -> bool:
    """Needed everywhere."""
    return True


def only_tensorrt_8(target: Target) -> bool:
    """Needed for TensorRT 8.6 alone."""
    return target.generation == 8


def only_with_plugins(target: Target) -> bool:
    """For what a plugin computes: RTX has none."""
    return target.has_plugins


@dataclass(frozen=True)
class Rule:
    """A rewrite rule.

    `ops` are the op types of the root node (`domain::Op` outside the default domain): `find` is called for those
    nodes only. `why` is one sentence for users. `needed` retires the rule by target. `before` and `after` are short
    texts for the page of rules. `tolerance` is what the proof holds it to; without one it is the noise floor.
    `judged_as_float32` is for rules that mend overflow in half precision: the graph before is run in FP32 then. A rule
    with `plugin` makes nodes of that plugin and is used when the user asked for it; one with `native_of` takes such
    nodes apart when he did not. `unproved` says why nothing can run the part before, for the few rules of which that
    is true. A rule with `precisions` pays in those alone (`fp16`) and fires when the graph is about to be typed so.
    `after_rules` names rules of the same group that come first; otherwise a group is in the order of names.
    `keeps_infinities` is false for products with matrices of zeros and the like, where 0 times an infinity is NaN: a
    difference with an infinity among the inputs is told to the user then, of other rules it is an error.
    """

    name: str
    why: str
    ops: tuple[str, ...]
    find: Callable[[Graph, Node], Found | Skip]
    needed: Callable[[Target], bool] = every_target
    before: str = ""
    after: str = ""
    tolerance: Tolerance | None = None
    judged_as_float32: bool = False
    unproved: str = ""
    keeps_infinities: bool = True
    plugin: str = ""
    native_of: str = ""
    precisions: tuple[str, ...] = ()
    after_rules: tuple[str, ...] = ()
