"""What the jobs of a cell say about it: green, amber, red or open, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trtconv.core.precision import FP32
from trtconv.sweep.plan.cells import Cell
from trtconv.sweep.plan.jobs import JobGraph, jobs_kind
from trtconv.sweep.workers.outcome import FAULTS, JobResult

State = Literal["green", "amber", "red", "open"]
# Exit codes of a sweep with red cells, the first that applies; what only faults caused is a plain failure.
CODES = {"accuracy": 3, "unsupported": 4, "budget": 6, "environment": 5, "usage": 2, "failed": 1}


@dataclass(frozen=True)
class CellVerdict:
    """A cell's verdict. `job` is the one that decided, `kind` an outcome; `latency_s` in seconds by sample point."""

    cell: Cell
    state: State
    reason: str
    job: str = ""
    kind: str = ""
    message: str = ""
    latency_s: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """True when the engine itself was run and equals the reference."""
        return self.state == "green"


def judge_cells(graph: JobGraph, results: Mapping[str, JobResult]) -> tuple[CellVerdict, ...]:
    """The verdict of each cell, in the order of the matrix."""
    return tuple(judge_cell(cell, chain, results) for cell, chain in graph.of_cell.items())


def judge_cell(cell: Cell, chain: Sequence[str], results: Mapping[str, JobResult]) -> CellVerdict:
    """The verdict of one cell from the results of its jobs.

    Green: the engine ran and equals the reference. Amber: nothing is wrong, but the engine was not run, or what was
    compared shows little. Red: a job did not succeed. Open: a job has not run.
    """
    seconds = sum(results[job].seconds for job in chain if job in results)
    facts: dict[str, Any] = {}
    for job in chain:
        result = results.get(job)
        if result is None:
            return CellVerdict(cell, "open", "not run", job, seconds=seconds)
        facts[jobs_kind(job)] = result.facts
        if not result.ok:
            return CellVerdict(
                cell, "red", _red_reason(result), job, result.outcome, result.message, facts=facts, seconds=seconds
            )
    latency = facts.get("bench", {}).get("latency_s", {})
    decisive, state, reason = _outcome(chain, facts)
    return CellVerdict(cell, state, reason, decisive, "ok", latency_s=latency, facts=facts, seconds=seconds)


def _outcome(chain: Sequence[str], facts: Mapping[str, Any]) -> tuple[str, State, str]:
    """The job that decides a cell of which no job failed, with the state and the reason."""
    if "tune" in facts:
        return (next(job for job in chain if jobs_kind(job) == "tune"), *_contract_reason(facts["tune"]))
    decisive = next((job for job in reversed(chain) if jobs_kind(job) in ("engine", "check")), chain[-1])
    compared = facts.get("engine") or facts.get("check") or {}
    if "engine" not in facts:
        what = "built, not run (no GPU)" if "build" in facts else "graph only (no GPU)"
        return decisive, "amber", f"the graph is equal; {what}"
    if compared.get("weak"):
        return decisive, "amber", "equal, but the check shows little"
    return decisive, "green", f"equal at {compared.get('points', 0)} sample points"


def _red_reason(result: JobResult) -> str:
    kind = jobs_kind(result.job)
    if kind == "tune" and result.outcome == "accuracy":
        return "contract: it cannot be kept"
    if kind == "tune" and result.outcome == "budget":
        return (
            "contract: nothing that keeps it is faster" if "is faster" in result.message else "contract: no time left"
        )
    return f"{kind}: {FAULTS.get(result.outcome, result.outcome)}"


def _contract_reason(facts: Mapping[str, Any]) -> tuple[State, str]:
    """Green where the engine itself was judged on the data; without a GPU its graph was, by emulation."""
    text = f"contract kept: {facts['chosen']}, {facts['metric']} {facts['value']:.4f}, fp32 {facts[FP32.name]:.4f}"
    if not facts["engine"]:
        return "amber", f"{text}; by emulation (no GPU)"
    ours, theirs = facts["seconds"], facts["fp32_seconds"]
    return "green", text + (f"; {theirs / ours:.2f} times as fast" if ours and theirs else "")


def exit_code(verdicts: Sequence[CellVerdict]) -> int:
    """0 without red cells; else the exit code of their worst kind, 1 for faults and cells that were not run."""
    kinds = {v.kind for v in verdicts if v.state == "red"}
    for kind, code in CODES.items():
        if kind in kinds:
            return code
    return 1 if kinds or any(v.state == "open" for v in verdicts) else 0
