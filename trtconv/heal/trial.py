"""What is tried on an engine that its builder got wrong, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from trtconv.core.precision import FP32

# The kinds of cures, in the order in which they are tried.
KINDS = ("fusion", "form", FP32.name, "opt level", "moving sizes", "tactics", "all fp32")


@dataclass(frozen=True)
class Variant:
    """How a build differs from that of the wrong engine; what is empty stays as it was.

    `skip` names rewrite rules to leave out, `also` those to apply although the target does not need them, and
    `keep_fp32` nodes to keep in FP32; for all three the graph is rewritten again. `options` and `opt_level` are the
    builder's.
    """

    kind: str
    what: str
    options: tuple[tuple[str, str], ...] = ()
    opt_level: int | None = None
    precision: str = ""
    skip: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    keep_fp32: tuple[str, ...] = ()

    @property
    def rewrites(self) -> bool:
        """True where another graph is built."""
        return bool(self.skip or self.also or self.keep_fp32 or self.precision)


@dataclass(frozen=True)
class CureTrial:
    """A variant that was built and compared with the reference; `reason` says why it does not hold.

    `seconds` is the median of one run on the device, None where it was not measured; `folder` holds its files.
    """

    variant: Variant
    holds: bool
    reason: str = ""
    seconds: float | None = None
    folder: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data; where its files lay for a while is left out."""
        return {"variant": asdict(self.variant), "holds": self.holds, "reason": self.reason, "seconds": self.seconds}


@dataclass(frozen=True)
class Diagnosis:
    """Where an engine leaves its graph: a node, the tensor that it makes, and whether only a fusion around it is wrong.

    `rule` made the node, if one did; `forms` are the rules that would write its operator in another form. `groups` are
    the modules that compute in half precision, with their nodes, in the order of the graph. `precision` and `tf32` are
    those of the build; `sources` the tactic sources that it knows; `generation` that of TensorRT.
    """

    node: str = ""
    tensor: str = ""
    fused: bool = False
    rule: str = ""
    forms: tuple[str, ...] = ()
    source: str = ""
    precision: str = FP32.name
    tf32: bool = False
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    words: str = ""
    generation: int = 0


class Workbench(Protocol):
    """Builds variants of one engine and proves them."""

    def diagnose(self) -> Diagnosis:
        """Find the place. Raises AccuracyError where the graph itself is wrong, and what building raises."""

    def try_variant(self, variant: Variant) -> CureTrial:
        """Build, compare at all sample points, and measure where it holds. A failing build is a trial, no error."""

    def baseline_seconds(self) -> float | None:
        """Seconds of one run of the wrong engine; None where it was not measured."""
