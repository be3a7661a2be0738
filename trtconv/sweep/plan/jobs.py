"""Jobs: what has to be done for the cells, each shared part once, as a directed acyclic graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trtconv.core.precision import FP32
from trtconv.core.requests.rewrite import precision_decides_rules
from trtconv.core.sizes import parse_bytes
from trtconv.core.targets import parse_target
from trtconv.sweep.plan.cells import NO_GPU, Cell, Matrix, Model
from trtconv.sweep.plan.configs import read_config
from trtconv.sweep.plan.sections import ResourceSection, SweepContractSection, SweepFile

DEFAULTS: Mapping[str, ResourceSection] = {
    "export": ResourceSection(),
    "rewrite": ResourceSection(),
    "type": ResourceSection(),
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

    An export is shared by all cells of a model and shape space, a rewrite by those of a target, a typed graph and its
    check by those of a target and precision, and what TensorRT-RTX builds by all GPUs, since it builds on the CPU.
    """
    resources = {**DEFAULTS, **sweep.resources}
    plugins = {name: _plugins(model) for name, model in matrix.models.items()}
    jobs: dict[str, Job] = {}
    of_cell: dict[Cell, tuple[str, ...]] = {}
    for cell in matrix.cells:
        chain: list[str] = []
        contract = sweep.contracts.get(cell.precision)
        kinds = kinds_of(cell, contract is not None, plugins[cell.model])
        for kind in kinds:
            part = _part(kind, cell, typed="type" in kinds)
            job = _job(kind, part, tuple(chain), resources[kind], contract if kind == "tune" else None)
            jobs.setdefault(job.id, job)
            chain.append(job.id)
        of_cell[cell] = tuple(chain)
    return JobGraph(jobs, of_cell)


def kinds_of(cell: Cell, has_contract: bool, plugins: str) -> tuple[str, ...]:
    """What is done for a cell: without a GPU an engine of TensorRT-RTX is built but not run, and no other is built.

    A precision is the types of the FP32 rewrite, unless it decides with the model's `plugins` which rules fire. A
    contract is searched for and judged by `trtconv tune`, engine included.
    """
    if has_contract:
        return ("export", "tune", "bench") if cell.gpu != NO_GPU else ("export", "tune")
    target = parse_target(cell.target)
    own = cell.precision == FP32.name or precision_decides_rules(cell.precision, plugins, target)
    graph = ("export", "rewrite", *(() if own else ("type",)), "check")
    if cell.gpu != NO_GPU:
        return (*graph, "build", "engine", "bench")
    return (*graph, *(("build",) if target.is_rtx else ()))


def _plugins(model: Model) -> str:
    """The plugins that a model's rewrite uses, as `--plugins` takes them."""
    section = read_config(model.config).get("rewrite", {}) if model.config else {}
    return str(section.get("plugins", "")) if isinstance(section, dict) else ""


def _part(kind: str, cell: Cell, *, typed: bool) -> Cell:
    """What of a cell matters to a job; `typed` cells start from the rewrite in FP32."""
    if kind == "export":
        return Cell(cell.model, cell.space, "", "", "")
    if _on_gpu(kind, cell):
        return cell
    return replace(cell, precision=FP32.name if kind == "rewrite" and typed else cell.precision, gpu="")


def _on_gpu(kind: str, cell: Cell) -> bool:
    measures = kind in ("engine", "tune", "bench") or (kind == "build" and not parse_target(cell.target).is_rtx)
    return measures and cell.gpu not in (NO_GPU, "")


def _job(
    kind: str, part: Cell, needs: tuple[str, ...], section: ResourceSection, contract: SweepContractSection | None
) -> Job:
    words = [kind, *(w for w in (part.model, part.space, part.target, part.precision, part.gpu) if w)]
    # Checks and measurements hand no file on, but what they refuse is not taken further; a typed graph stands for the
    # rewrite that it was made from.
    unread = ("check", "engine", *(("rewrite",) if "type" in map(jobs_kind, needs) else ()))
    reads = tuple(n for n in needs if jobs_kind(n) not in unread)
    return Job(
        "/".join(words),
        kind,
        part,
        needs,
        reads,
        section.cpus,
        parse_bytes(section.memory) if section.memory else 0,
        section.seconds,
        part.gpu,
        contract,
    )


def jobs_kind(job_id: str) -> str:
    """The kind that a job's id begins with."""
    return job_id.partition("/")[0]
