"""Reading a support table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.core.targets import Target

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
    """A way to use operators that a target refuses (`refused`) or computes wrongly without a word (`wrong`).

    `before` is the first version in which that is over.
    """

    ops: tuple[str, ...]
    when: tuple[Mapping[str, Any], ...]
    effect: str
    problem: str
    remedy: str
    evidence: str
    before: tuple[int, ...] = ()


@dataclass(frozen=True)
class SupportTable:
    """Everything that is known of one target."""

    name: str
    max_opset: int
    ops: Mapping[str, OperatorSupport]
    constructs: tuple[Construct, ...]

    def of(self, op: str) -> tuple[Construct, ...]:
        """The constructs of one operator, and those of all (`*`)."""
        return tuple(c for c in self.constructs if op in c.ops or "*" in c.ops)


def table_name(target: Target) -> str:
    """`tensorrt-8.6`, `tensorrt-10`, `tensorrt-11` or `tensorrt-rtx`."""
    return "tensorrt-rtx" if target.is_rtx else f"tensorrt-{'8.6' if target.generation == 8 else target.generation}"


def load_table(target: Target) -> SupportTable:
    """The table of a target; a bare major version means its first minor one, the least that is promised."""
    path = Path(__file__).with_name(table_name(target) + ".json")
    data = json.loads(path.read_text(encoding="utf-8"))
    ops = {
        name: OperatorSupport(o["supported"], o["evidence"], tuple(o.get("since", ())), o.get("plugin", ""))
        for name, o in data["ops"].items()
    }
    constructs = tuple(
        Construct(
            tuple(c["ops"]), tuple(c["when"]), c["effect"], c["problem"], c["remedy"], c["evidence"],
            tuple(c.get("before", ())),
        )
        for c in data["constructs"]
    )  # fmt: skip
    return SupportTable(data["table"], int(data["max_opset"]), ops, constructs)
