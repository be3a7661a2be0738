"""What an export returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.text.brief import brief_repr
from trtconv.proof.joint_sizes import SizeCoverage
from trtconv.proof.points import SamplePoint


@dataclass(frozen=True)
class ExportResult:
    """The files written, which exporter made the model, and every comparison with the module (all passed).

    `notes` are what the user should know; `messages` are what torch and the exporters said meanwhile.
    `seconds` has the wall time of the steps (`load`, `module`, `export`, `compare`, ...) and of the `total`; `sizes`
    says how much of the shape space was tried.
    """

    model: Path
    reference: Path
    manifest: Path
    exporter: str
    space: ShapeSpace
    points: tuple[SamplePoint, ...]
    comparisons: tuple[OutputComparison, ...]
    notes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    sizes: SizeCoverage | None = None

    __repr__ = brief_repr
