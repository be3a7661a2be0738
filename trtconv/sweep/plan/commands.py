"""What a job runs: trtconv's own commands, in a folder that holds the files of the jobs before it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from trtconv.core.targets import parse_target
from trtconv.sweep.plan.cells import OWN_SPACE, Model, searched_precisions
from trtconv.sweep.plan.jobs import Job

MODEL, REWRITTEN, ENGINE = "model.onnx", "model.trt.onnx", "model.engine"
REPORT, PAGE, LATENCY, REPRO = "report.json", "report.html", "bench.json", "repro.zip"
# The folder of what a typed graph is made from, and its files.
REWRITE = "rewrite"
REWRITE_MODEL, REWRITE_REWRITTEN = f"{REWRITE}/{MODEL}", f"{REWRITE}/{REWRITTEN}"
# A folder whose files are results as those beside it are.
TUNED = "tuned"
TUNE_PAGE, TUNE_LEDGER = "model.report.html", "model.tune.json"
SUMMARY, TIMINGS = "summary.json", "timing.cache"
# The seconds that a search for the smallest failing part may take.
REPRO_SECONDS = 300.0


@dataclass(frozen=True)
class Step:
    """One command. `output` is the file that its stdout goes to, or empty.

    `when`: `always` decides the verdict by its exit code; `difference` runs where the verdict is an accuracy one, and
    decides nothing.
    """

    words: tuple[str, ...]
    output: str = ""
    when: Literal["always", "difference"] = "always"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a worker."""
        return dataclasses.asdict(self)


def steps_of(job: Job, model: Model) -> tuple[Step, ...]:
    """The commands of a job, without the program's own name."""
    config = ("--config", str(model.config)) if model.config else ()
    cell = job.cell
    if job.kind == "export":
        return (Step(_export_words(job, model, config), SUMMARY),)
    if job.kind == "rewrite":
        return (Step(("rewrite", MODEL, *_rewrite_words(job), *config, "--json"), SUMMARY),)
    if job.kind == "type":
        words = ("rewrite", REWRITE_MODEL, *_rewrite_words(job), "--rewritten", REWRITE_REWRITTEN)
        return (Step((*words, *config, "--json"), SUMMARY),)
    if job.kind == "build":
        backend = "tensorrt-rtx" if parse_target(cell.target).is_rtx else "tensorrt"
        # The cell's own: a config names the precision of a single conversion.
        words = ("build", REWRITTEN, "-o", ENGINE, "--precision", cell.precision, "--dynamic", "--backend", backend)
        timings = ("--timing-cache", TIMINGS) if uses_timings(job) else ()
        return (Step((*words, "--no-cache", *timings, *config, "--json"), SUMMARY),)
    if job.kind == "tune":
        return (Step((*_tune_words(job, model), *config, "--json"), SUMMARY),)
    if job.kind == "bench":
        return (Step(("bench", ENGINE, "--json", LATENCY, "-q")),)
    subject, kind = (ENGINE, "engine") if job.kind == "engine" else (REWRITTEN, "auto")
    check = ("check", subject, "--no-source-check", "--json", REPORT, "--html", PAGE, "-q", *config)
    repro = ("repro", subject, "--kind", kind, "-o", REPRO, "-q")
    return (Step(check), Step(repro, when="difference"))


def inputs_of(job: Job) -> str:
    """The folder below a job's own that takes the files of the jobs before; empty for its own.

    A typed graph has the name of the one that it is made from.
    """
    return REWRITE if job.kind == "type" else ""


def _rewrite_words(job: Job) -> tuple[str, ...]:
    return ("-o", REWRITTEN, "--target", job.cell.target, "--precision", job.cell.precision)


def uses_timings(job: Job) -> bool:
    """True for jobs that measure kernels on a GPU; TensorRT-RTX does that where an engine runs."""
    return job.kind in ("build", "tune") and bool(job.accelerator) and not parse_target(job.cell.target).is_rtx


def _tune_words(job: Job, model: Model) -> tuple[str, ...]:
    contract = job.contract
    assert contract is not None, "a tune job has a contract"
    words = ["tune", MODEL, "-o", TUNED, "--target", job.cell.target]
    space = model.dynamic if job.cell.space == OWN_SPACE else job.cell.space
    if space:
        words += ["--dynamic", *space.split()]
    for name in ("metric", "max_drop", "data", "preprocess", "calibration"):
        if value := getattr(contract, name):
            words += [f"--{name.replace('_', '-')}", value]
    if contract.precisions:
        words += ["--precisions", ",".join(searched_precisions(contract, job.cell.target))]
    if contract.minutes:
        words += ["--minutes", f"{contract.minutes:g}"]
    return (*words, *(("--timing-cache", TIMINGS) if uses_timings(job) else ()))


def _export_words(job: Job, model: Model, config: tuple[str, ...]) -> tuple[str, ...]:
    words = ["export", *([model.spec] if model.spec else []), "-o", MODEL, *config]
    for text in model.inputs:
        words += ["--input", text]
    space = model.dynamic if job.cell.space == OWN_SPACE else job.cell.space
    if space:
        words += ["--dynamic", *space.split()]
    if model.weights:
        words += ["--weights", str(model.weights)]
    return (*words, *model.options, "--json")
