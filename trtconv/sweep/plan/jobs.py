"""Jobs: what has to be done for the cells, each shared part once, as a directed acyclic graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtconv.core.sizes import parse_bytes
from trtconv.core.targets import parse_target
from trtconv.sweep.plan.cells import NO_GPU, Cell, Matrix
from trtconv.sweep.plan.sections import ResourceSection, SweepContractSection, SweepFile

DEFAULTS: Mapping[str, ResourceSection] = {
    "export": ResourceSection(),
    "rewrite": ResourceSection(),
    "check": ResourceSection(),
    "build": ResourceSection(seconds=7200.0),
    "engine": ResourceSection(),
    # Each candidate is an engine of its own on a GPU; on CPUs each is emulated.
    "tune": ResourceSection(seconds=4 * 3600.0),
    "bench": ResourceSection(seconds=900.0),
}


@dataclass(frozen=True)
class Job:
    """One job. It waits for the jobs in `needs`, and reads the files of those in `reads`, in the order given.

    `cell` names the parts that matter to it, the others are empty. `accelerator` is the kind of the one GPU that it
    has for itself, or empty. `memory` in bytes (0: not stated); after `seconds` it counts as hung.
    """

    id: str
    kind: str
    cell: Cell
    needs: tuple[str, ...]
    reads: tuple[str, ...]
    cpus: float
    memory: int
    seconds: float
    accelerator: str = ""
    contract: SweepContractSection | None = None

    @property
    def resource_class(self) -> str:
        """Where it runs: `cpu`, or the kind of the GPU."""
        return self.accelerator or "cpu"


@dataclass(frozen=True)
class JobGraph:
    """All jobs by id, each after those that it needs, and by cell the ids of its jobs, in order."""

    jobs: Mapping[str, Job]
    of_cell: Mapping[Cell, tuple[str, ...]]


def make_jobs(sweep: SweepFile, matrix: Matrix) -> JobGraph:
    """The jobs of all cells.

    An export is shared by all cells of a model and shape space, a rewrite and the check of its graph by those of a
    target and precision, and what TensorRT-RTX builds by all GPUs, since it builds on the CPU.
    """
    resources = {**DEFAULTS, **sweep.resources}
    jobs: dict[str, Job] = {}
    of_cell: dict[Cell, tuple[str, ...]] = {}
    for cell in matrix.cells:
        chain: list[str] = []
        contract = sweep.contracts.get(cell.precision)
        for kind in kinds_of(cell, contract is not None):
            job = _job(kind, cell, tuple(chain), resources[kind], contract if kind == "tune" else None)
            jobs.setdefault(job.id, job)
            chain.append(job.id)
        of_cell[cell] = tuple(chain)
    return JobGraph(jobs, of_cell)


def kinds_of(cell: Cell, has_contract: bool) -> tuple[str, ...]:
    """What is done for a cell: without a GPU an engine of TensorRT-RTX is built but not run, and no other is built.

    A contract is searched for and judged by `trtconv tune`, engine included.
    """
    if has_contract:
        return ("export", "tune", "bench") if cell.gpu != NO_GPU else ("export", "tune")
    if cell.gpu != NO_GPU:
        return ("export", "rewrite", "check", "build", "engine", "bench")
    return ("export", "rewrite", "check", *(("build",) if parse_target(cell.target).is_rtx else ()))


def _job(
    kind: str, cell: Cell, needs: tuple[str, ...], section: ResourceSection, contract: SweepContractSection | None
) -> Job:
    measures = kind in ("engine", "tune", "bench") or (kind == "build" and not parse_target(cell.target).is_rtx)
    on_gpu = measures and cell.gpu != NO_GPU
    if kind == "export":
        part = Cell(cell.model, cell.space, "", "", "")
    elif on_gpu:
        part = cell
    else:
        part = Cell(cell.model, cell.space, cell.target, cell.precision, "")
    words = [kind, *(w for w in (part.model, part.space, part.target, part.precision, part.gpu) if w)]
    # Checks and measurements hand no file on, but what they refuse is not taken further.
    reads = tuple(n for n in needs if jobs_kind(n) not in ("check", "engine"))
    return Job(
        "/".join(words),
        kind,
        part,
        needs,
        reads,
        section.cpus,
        parse_bytes(section.memory) if section.memory else 0,
        section.seconds,
        part.gpu if on_gpu else "",
        contract,
    )


def jobs_kind(job_id: str) -> str:
    """The kind that a job's id begins with."""
    return job_id.partition("/")[0]
