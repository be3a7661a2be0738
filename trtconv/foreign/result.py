"""What taking over a foreign file hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.text.brief import brief_repr
from trtconv.proof.points import SamplePoint


@dataclass(frozen=True)
class ForeignResult:
    """The files written: `model` is `original` with named dims; `comparisons` of the two have all passed.

    `runner` is what ran the original, `seconds` the wall time by step.
    """

    original: Path
    model: Path
    reference: Path
    manifest: Path
    runner: str
    space: ShapeSpace
    points: tuple[SamplePoint, ...]
    comparisons: tuple[OutputComparison, ...]
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    __repr__ = brief_repr
