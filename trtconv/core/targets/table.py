"""Reading a support table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trtconv.core.targets.conditions import GraphView, NodeView, holds
from trtconv.core.targets.facts import read_table
from trtconv.core.targets.target import Target

SCHEMA = 1


@dataclass(frozen=True)
class OperatorSupport:
    """Whether there is an importer; `since` is (major, minor), `plugin` what the importer makes of the node."""

    supported: bool
    evidence: str
    since: tuple[int, ...] = ()
    plugin: str = ""


@dataclass(frozen=True)
class Construct:
    """A way to use operators that a target refuses (`refused`) or silently computes wrongly (`wrong`).

    `before` is the first version in which that is over.
    """

    ops: tuple[str, ...]
    when: tuple[Mapping[str, Any], ...]
    effect: str
    problem: str
    remedy: str
    evidence: str
    before: tuple[int, ...] = ()

    def matches(self, node: NodeView, graph: GraphView) -> bool:
        """True when a node uses its operator in this way."""
        return all(holds(condition, node, graph) for condition in self.when)


@dataclass(frozen=True)
class SupportTable:
    """Everything known about one target."""

    name: str
    max_opset: int
    ops: Mapping[str, OperatorSupport]
    constructs: tuple[Construct, ...]

    def of(self, op: str) -> tuple[Construct, ...]:
        """The constructs of one operator, and those of all (`*`)."""
        return tuple(c for c in self.constructs if op in c.ops or "*" in c.ops)

    def silently_wrong(self, node: NodeView, graph: GraphView) -> Construct | None:
        """The first construct by which the target takes a node of ONNX's own domain and computes something else."""
        wrong = (c for c in self.of(node.op) if c.effect == "wrong")
        return next((c for c in wrong if c.matches(node, graph)), None)


def load_table(target: Target) -> SupportTable:
    """The table of a target; a bare major version means its first minor one, the least that is promised."""
    data = read_table(target.table)
    ops = {
        name: OperatorSupport(o["supported"], o["evidence"], tuple(o.get("since", ())), o.get("plugin", ""))
        for name, o in data["ops"].items()
    }
    constructs = tuple(
        Construct(
            tuple(c["ops"]),
            tuple(c["when"]),
            c["effect"],
            c["problem"],
            c["remedy"],
            c["evidence"],
            tuple(c.get("before", ())),
        )
        for c in data["constructs"]
    )
    return SupportTable(data["table"], target.max_opset, ops, constructs)
