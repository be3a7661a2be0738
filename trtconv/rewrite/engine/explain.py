"""The ledger for people: what fired and why, what did not and why not, and the nodes before and after."""

from __future__ import annotations

from trtconv.core.ledger.records import LedgerEntry, Proof
from trtconv.core.model.provenance import Origin
from trtconv.rewrite.engine.result import RewriteResult


def explain_lines(result: RewriteResult) -> list[str]:
    """What `trtconv rewrite --explain` prints."""
    lines: list[str] = []
    for entry in result.entries:
        lines.append(f"rewrote  {entry.rule}: {_location(entry.node, entry.origin)}")
        lines.append(f"         why: {entry.why}")
        shared = f"; the same part as at {entry.shared_with}, proved there" if entry.shared_with else ""
        lines.append(f"         {_count(entry)}; {proof_text(entry.proof)}{shared}")
        if entry.note:
            lines.append(f"         note: {entry.note}")
    for rejected in result.rejected:
        lines.append(f"rejected {rejected.rule}: {_location(rejected.node, rejected.origin)}")
        lines.append(f"         {rejected.reason}")
    for skipped in result.skipped:
        lines.append(f"skipped  {skipped.rule}: {_location(skipped.node, skipped.origin)}: {skipped.reason}")
    if not lines:
        lines.append("no rule found anything to do")
    lines += [f"note     {note}" for note in result.notes]
    if result.whole is not None:
        lines.append(f"whole graph: {proof_text(result.whole)}")
    return lines


def diff_lines(result: RewriteResult) -> list[str]:
    """What `trtconv rewrite --diff` prints: nodes taken out with `-`, put in with `+`."""
    lines: list[str] = []
    for entry in result.entries:
        lines.append(f"@@ {entry.rule} at {_location(entry.node, entry.origin)} @@")
        lines += [f"- {node}" for node in entry.before]
        lines += [f"+ {node}" for node in entry.after]
    return lines or ["nothing changed"]


def proof_text(proof: Proof) -> str:
    """One line on a proof."""
    if proof.passed is None:
        return f"not proved: {proof.note}"
    worst = (proof.max_abs, proof.max_rel)
    errors = "" if worst[0] is None else f", largest error {worst[0]:.2g} absolute, {worst[1]:.2g} relative"
    verdict = "equal" if proof.passed else f"different ({proof.note})"
    sizes = f", {proof.sizes}" if proof.sizes else ""
    return f"{verdict} at {len(proof.points)} points{sizes} in {proof.runner}{errors}"


def _location(node: str, origin: Origin) -> str:
    return f"{node} [{origin}]" if origin else node


def _count(entry: LedgerEntry) -> str:
    return f"{len(entry.before)} node{'s' * (len(entry.before) != 1)} into {len(entry.after)}"
