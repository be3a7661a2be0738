"""What a worker does: fetch the files of the jobs before, run the commands, keep what they wrote.

Everything goes in and out as plain data, so that a worker's own installation reads it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.python_child import run_module
from trtconv.sweep.plan.commands import REPRO_SECONDS, TIMINGS, TUNED
from trtconv.sweep.store.storage import open_storage
from trtconv.sweep.store.store import DamagedResultError, Store
from trtconv.sweep.store.timings import fetch_timings, publish_timings
from trtconv.sweep.workers.facts import read_facts, read_sources
from trtconv.sweep.workers.outcome import OK, JobResult, message_of, outcome_of
from trtconv.sweep.workers.process import run_command

LOG = "log.txt"


@dataclass(frozen=True)
class Task:
    """A job as a worker gets it. `program` stands before the words of each step; `upstream` are the keys of results.

    `base` is the folder from which the commands run. `seconds` is the limit of each command. `timings` is the scope of
    the timing caches that a build may use, or empty. `inputs` is the folder, below that of the job, for the files of
    `upstream`.
    """

    job: str
    kind: str
    key: str
    program: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    upstream: tuple[str, ...]
    store: str
    base: str
    seconds: float
    variables: Mapping[str, str]
    timings: str = ""
    inputs: str = ""


def run_task(task: Task) -> JobResult:
    """Run a job to its end; what the machines do to it is an outcome, not an exception."""
    start = time.monotonic()
    node = platform.node()
    try:
        storage = open_storage(task.store)
        store = Store(storage)
        stored = store.result(task.key) if task.kind != "export" else None
        if stored is not None:
            files = tuple((f.name, f.sha256, f.size) for f in stored.files)
            return JobResult(task.job, OK, task.key, files=files, facts=stored.facts, node=node, cached=True)
        with private_temporary_folder("job") as name:
            folder = Path(name)
            merged = fetch_timings(storage, task.timings, folder / TIMINGS) if task.timings else ()
            result = _run_steps(task, store, folder)
            if task.timings and result.ok:
                publish_timings(storage, task.timings, folder / TIMINGS, merged)
    except DamagedResultError as error:
        return JobResult(task.job, "store", task.key, error.message, node=node)
    except OSError as error:
        text = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        return JobResult(task.job, outcome_of_error(error), task.key, text, node=node)
    return JobResult(**{**vars(result), "seconds": time.monotonic() - start, "node": node})


def outcome_of_error(error: OSError) -> str:
    """`disk` for a full one, else `store`."""
    from trtconv.core.artifacts import out_of_space

    return "disk" if out_of_space(error) else "store"


def _run_steps(task: Task, store: Store, folder: Path) -> JobResult:
    inputs = folder / task.inputs
    inputs.mkdir(exist_ok=True)
    for key in task.upstream:
        store.fetch(key, inputs)
    # What a build updates is no part of its result.
    before = {*os.listdir(folder), TIMINGS, f"{TIMINGS}.lock"}
    outcome, message, code = OK, "", None
    for step in task.steps:
        if step["when"] == "difference" and outcome != "accuracy":
            continue
        ended = run_command(
            [*task.program, *_placed(step["words"], folder)],
            folder=Path(task.base),
            log=folder / LOG,
            seconds=task.seconds if step["when"] == "always" else min(task.seconds, REPRO_SECONDS),
            variables={"TRTCONV_CACHE": "off", **task.variables, "TRTCONV_JOB": task.job},
            stdout=folder / step["output"] if step["output"] else None,
        )
        if step["when"] != "always":
            continue
        code = ended.code
        outcome = "hung" if code is None else outcome_of(code, ended.output)
        if outcome != OK:
            message = f"over {task.seconds:g} s" if outcome == "hung" else message_of(ended.output)
    facts = read_facts(task.kind, folder)
    if task.kind in ("check", "engine") and outcome not in (OK, "died", "hung", "disk"):
        message = str(facts.get("problem", "")) or message
    written = sorted(p for p in folder.iterdir() if p.is_file() and p.name not in before)
    written += sorted(p for p in folder.glob(f"{TUNED}/*") if p.is_file())
    files = store.keep_files(written if outcome == OK else [p for p in written if _is_evidence(p)])
    key = task.key
    if outcome == OK:
        if task.kind == "export":
            key = store.add_sources(task.key, read_sources(folder, Path(task.base)))
        store.publish(key, files, facts)
    listed = tuple((f.name, f.sha256, f.size) for f in files)
    return JobResult(task.job, outcome, key, message, code, files=listed, facts=facts)


def _placed(words: tuple[str, ...], folder: Path) -> list[str]:
    """The words with the job's files (`model.onnx`) seen from where the command runs."""
    from trtconv.sweep.plan import commands

    names = {
        commands.MODEL,
        commands.REWRITTEN,
        commands.REWRITE_MODEL,
        commands.REWRITE_REWRITTEN,
        commands.ENGINE,
        commands.REPORT,
        commands.PAGE,
        commands.LATENCY,
        commands.REPRO,
        commands.TIMINGS,
        commands.TUNED,
    }
    return [str(folder / word) if word in names else word for word in words]


def _is_evidence(path: Path) -> bool:
    """What is kept of a job that failed: reports, the reproduction and the log, not models and engines."""
    return path.suffix in (".json", ".html", ".zip", ".txt")


def probe() -> dict[str, str]:
    """What decides results where this runs: versions, the GPU and its driver, trtconv's own files."""
    from trtconv.backends.cuda.driver import probe_cuda
    from trtconv.sweep.workers.installation import source_digest

    state = probe_cuda()
    gpu = f"{state.gpus[0].name}, driver {state.driver}" if state.gpus else ""
    # Not the kernel's release, in which the nodes of a cluster differ.
    return {"platform": f"{platform.system()}-{platform.machine()}", "gpu": gpu, "source": source_digest()}


def probe_program(program: tuple[str, ...], variables: Mapping[str, str]) -> dict[str, str]:
    """`probe` with the versions of the installation that `program` belongs to. Raises OSError when it does not run."""
    with private_temporary_folder("job") as name:
        folder = Path(name)
        output = folder / "version.json"
        ended = run_command(
            [*program, "version", "--json"],
            folder=folder,
            log=folder / LOG,
            seconds=120.0,
            variables=variables,
            stdout=output,
        )
        if ended.code != 0:
            raise OSError(f"'{' '.join(program)} version --json' ended with {ended.code}: {message_of(ended.output)}")
        versions: dict[str, str] = json.loads(output.read_text())
    return {**probe(), **versions}


# The trtconv of the worker itself.
OWN_PROGRAM = run_module("trtconv")
