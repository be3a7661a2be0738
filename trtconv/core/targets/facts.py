"""What the rooms ask of a target as a whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLES = Path(__file__).with_name("tables")


@dataclass(frozen=True)
class TargetFacts:
    """Facts of one target.

    `generation` is the TensorRT major whose rules hold (TensorRT-RTX 1.5 and later have 11's semantics); `max_opset`
    is the newest ONNX opset that graphs for it are written in. `strongly_typed`: the network carries its types and no
    precision flag exists. `drops_newer_opsets`: what a later opset brought is dropped silently, where others name
    what they do not know. `int8_is_quantised`: an int8 input or output is a quantised value, never an integer.
    `branches_of_one_size`: of an If whose branches give other sizes it takes those of one for the other, silently.
    `precisions` are those of `trtconv.core.precision` that the target computes in.
    """

    generation: int
    max_opset: int
    strongly_typed: bool
    has_plugins: bool
    drops_newer_opsets: bool
    int8_is_quantised: bool
    branches_of_one_size: bool
    precisions: tuple[str, ...]


@cache
def read_facts(table: str) -> TargetFacts:
    """The facts in the table of that name."""
    facts = read_table(table)["facts"]
    return TargetFacts(**{**facts, "precisions": tuple(facts["precisions"])})


def read_table(table: str) -> dict[str, Any]:
    """A table as plain data."""
    data: dict[str, Any] = json.loads((TABLES / f"{table}.json").read_text(encoding="utf-8"))
    return data
