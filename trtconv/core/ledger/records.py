"""What a ledger holds: plain frozen data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trtconv.core.files.artifact_set import FileDigest
from trtconv.core.model.provenance import Origin
from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target


@dataclass(frozen=True)
class NodeText:
    """One node as people read it: `attributes` is text like `axes=[2] keepdims=1`."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: str = ""

    def __str__(self) -> str:
        attributes = f" {{{self.attributes}}}" if self.attributes else ""
        return f"{', '.join(self.outputs)} = {self.op}({', '.join(self.inputs)}){attributes}"


@dataclass(frozen=True)
class Proof:
    """The comparison of a matched part before and after, in ONNX Runtime or the reference evaluator.

    `shapes` are the shapes of the part's inputs at each point that ran, `runner` says what ran them, `note` says
    what could not be run and why. `passed` is None when nothing was compared. `node` is the node at which it was
    made: equal parts elsewhere share it, and there the names in `shapes` are those of this node's inputs. `infinity`
    says what differs with one infinity among the inputs; it does not count in `passed`. `sizes` says at how many joint
    sizes a part that computes with sizes was compared. `nan` is true where infinities of both signs met and the sides
    differ in what became of them; it is not written down.
    """

    passed: bool | None
    runner: str = ""
    points: tuple[str, ...] = ()
    shapes: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()
    comparisons: tuple[OutputComparison, ...] = ()
    note: str = ""
    node: str = ""
    infinity: str = ""
    sizes: str = ""
    nan: bool = False

    @property
    def max_abs(self) -> float | None:
        """The largest absolute error at any point, or None when nothing was compared."""
        errors = [c.max_abs for c in self.comparisons if c.max_abs is not None]
        return max(errors) if errors else None

    @property
    def max_rel(self) -> float | None:
        """The largest relative error at any point, or None when nothing was compared."""
        errors = [c.max_rel for c in self.comparisons if c.max_rel is not None]
        return max(errors) if errors else None


@dataclass(frozen=True)
class LedgerEntry:
    """A rewrite that stands: which rule, at which node, why, what it replaced, and its proof."""

    rule: str
    why: str
    node: str
    origin: Origin
    scope: str
    before: tuple[NodeText, ...]
    after: tuple[NodeText, ...]
    proof: Proof
    note: str = ""

    @property
    def shared_with(self) -> str:
        """The node whose proof this is, when an equal part was proved there; empty when it was proved here."""
        return self.proof.node if self.proof.node != self.node else ""


@dataclass(frozen=True)
class Skipped:
    """A rule that looked at a node and left it, with its reason."""

    rule: str
    node: str
    reason: str
    origin: Origin = field(default_factory=Origin)


@dataclass(frozen=True)
class Rejected:
    """A rewrite that was tried and taken back, because the proof found a difference or could not be made."""

    rule: str
    node: str
    reason: str
    origin: Origin = field(default_factory=Origin)
    proof: Proof | None = None


@dataclass(frozen=True)
class RewriteLedger:
    """A rewrite: of which model, for what, with which options, and what became of it.

    `read` are the files that decided it, `options` those of the request (`recorded_options`). `opset` and `nodes` are
    numbers before and after. `float64_nodes` computed in FP64 in the original. `sha256` is that of the graph that was
    written. `whole` is the comparison of the two whole graphs.
    """

    trtconv: str
    model: str
    read: tuple[FileDigest, ...]
    target: Target
    options: Mapping[str, Any]
    opset: tuple[int, int]
    nodes: tuple[int, int]
    space: ShapeSpace
    float64_nodes: tuple[str, ...]
    sha256: str
    entries: tuple[LedgerEntry, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    whole: Proof | None = None
    notes: tuple[str, ...] = ()

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The proofs of the entries, each once."""
        return distinct_proofs(self.entries)


def distinct_proofs(entries: Iterable[LedgerEntry]) -> tuple[Proof, ...]:
    """A network repeats its blocks, and equal blocks share one proof: it stands here once."""
    return tuple({id(e.proof): e.proof for e in entries}.values())
