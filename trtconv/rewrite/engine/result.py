"""What a rewrite gives back: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.ledger.records import LedgerEntry, Proof, Rejected, Skipped
from trtconv.core.text.brief import brief_repr

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class RewrittenGraph:
    """What the rules made of a model, before it is typed. Its weights on disk lie beside `file`.

    `float64_nodes` computed in FP64 in the original; `start` holds opset, number of nodes and shape space before the
    rules.
    """

    file: Path
    model: onnx.ModelProto
    entries: tuple[LedgerEntry, ...]
    skipped: tuple[Skipped, ...]
    rejected: tuple[Rejected, ...]
    whole: Proof | None
    notes: tuple[str, ...]
    float64_nodes: tuple[str, ...]
    start: Mapping[str, Any]


@dataclass(frozen=True)
class RewriteResult:
    """What `rewrite_model` did. `whole` is the comparison of the two whole graphs.

    `reference` is what a quantised model is checked with in the place of its export's; None for others.
    """

    model: Path
    ledger: Path
    entries: tuple[LedgerEntry, ...]
    skipped: tuple[Skipped, ...]
    rejected: tuple[Rejected, ...]
    seconds: float
    whole: Proof | None = None
    notes: tuple[str, ...] = ()
    reference: Path | None = None

    __repr__ = brief_repr
