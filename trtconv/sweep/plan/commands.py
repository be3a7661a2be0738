"""What a job runs: trtconv's own commands, in a folder that holds the files of the jobs before it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from trtconv.core.targets import parse_target
from trtconv.sweep.plan.cells import OWN_SPACE, Model
from trtconv.sweep.plan.jobs import Job

MODEL, REWRITTEN, ENGINE = "model.onnx", "model.trt.onnx", "model.engine"
REPORT, PAGE, LATENCY, REPRO = "report.json", "report.html", "bench.json", "repro.zip"
SUMMARY = "summary.json"
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
        words = ("rewrite", MODEL, "-o", REWRITTEN, "--target", cell.target, "--precision", cell.precision)
        return (Step((*words, *config, "--json"), SUMMARY),)
    if job.kind == "build":
        backend = "tensorrt-rtx" if parse_target(cell.target).is_rtx else "tensorrt"
        words = ("build", REWRITTEN, "-o", ENGINE, "--dynamic", "--backend", backend, "--no-cache")
        return (Step((*words, *config, "--json"), SUMMARY),)
    if job.kind == "bench":
        return (
            Step(
                ("bench", ENGINE, "--json", LATENCY, "-q"),
            ),
        )
    subject, kind = (ENGINE, "engine") if job.kind == "engine" else (REWRITTEN, "auto")
    check = ("check", subject, "--no-source-check", "--json", REPORT, "--html", PAGE, "-q", *config)
    repro = ("repro", subject, "--no-source-check", "--kind", kind, "-o", REPRO, "-q")
    return (Step(check), Step(repro, when="difference"))


def _export_words(job: Job, model: Model, config: tuple[str, ...]) -> tuple[str, ...]:
    words = ["export", *([model.spec] if model.spec else []), "-o", MODEL, *config]
    for text in model.inputs:
        words += ["--input", text]
    if job.cell.space != OWN_SPACE:
        words += ["--dynamic", *job.cell.space.split()]
    if model.weights:
        words += ["--weights", str(model.weights)]
    return (*words, *model.options, "--json")
