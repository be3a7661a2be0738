"""Writing the atlas of a sweep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import trtconv
from trtconv.check.reporters.html.report import render
from trtconv.core.artifacts import write_json, write_text
from trtconv.core.text.display import displayable
from trtconv.sweep.atlas.badge import badge_svg, count_states
from trtconv.sweep.atlas.changes import CellChange, find_changes
from trtconv.sweep.atlas.evidence import copy_evidence
from trtconv.sweep.atlas.plots import latency_bars, latency_of, pareto_points
from trtconv.sweep.engine.verdicts import CellVerdict
from trtconv.sweep.ledger.ledger import Ledger
from trtconv.sweep.plan.jobs import Job
from trtconv.sweep.plan.sections import SweepFile
from trtconv.sweep.store.store import Store
from trtconv.sweep.workers.outcome import FAULTS

SCHEMA = 1
INDEX, DATA, BADGE = "index.html", "sweep.json", "badge.svg"


@dataclass(frozen=True)
class Atlas:
    """What was written: the page, the same as JSON, the badge, and what changed since the sweep before."""

    index: Path
    data: Path
    badge: Path
    changes: tuple[CellChange, ...]


def write_atlas(
    folder: Path,
    sweep: SweepFile,
    jobs: Mapping[str, Job],
    verdicts: tuple[CellVerdict, ...],
    ledger: Ledger,
    number: int,
    store: Store,
) -> Atlas:
    """Write the page and its companions into `folder`, and the verdicts into the ledger for the next sweep."""
    changes = find_changes(verdicts, ledger.verdicts_before(number))
    ledger.record_verdicts(number, [(v.cell.id, v.state, dict(v.latency_s)) for v in verdicts])
    links = copy_evidence(folder, verdicts, ledger.results(number), store)
    attempts = ledger.attempts(number)
    faults = {job: sum(outcome in FAULTS for outcome, *_ in tries) for job, tries in attempts.items()}
    shown = {
        "name": sweep.sweep.name,
        "number": number,
        "written": time.strftime("%Y-%m-%d %H:%M"),
        "version": trtconv.__version__,
        "counts": count_states(verdicts),
        "changes": changes,
        "tables": tables(verdicts, links),
        "bars": latency_bars(verdicts),
        "plots": pareto_points(verdicts),
        "jobs_run": sum(any(seconds for _, seconds, *_ in tries) for tries in attempts.values()),
        "faults": sorted((job, count) for job, count in faults.items() if count),
        "costs": costs(jobs, attempts, sweep.prices),
    }
    write_text(folder / INDEX, page_text(shown))
    write_json(folder / DATA, _data(sweep, number, verdicts, changes, links))
    write_text(folder / BADGE, badge_svg(verdicts))
    return Atlas(folder / INDEX, folder / DATA, folder / BADGE, changes)


def page_text(facts: Mapping[str, Any]) -> str:
    """The page; names and messages of models can neither break out of it nor hide anything."""
    return render("index.html.jinja", package="trtconv.sweep.atlas", **displayable(facts))


def tables(verdicts: Sequence[CellVerdict], links: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """The matrix: a table per GPU kind, a row per model and shape space, a column per target and precision."""
    result = []
    for gpu in dict.fromkeys(v.cell.gpu for v in verdicts):
        members = [v for v in verdicts if v.cell.gpu == gpu]
        columns = list(dict.fromkeys((v.cell.target, v.cell.precision) for v in members))
        rows: dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]] = {}
        for verdict in members:
            cell = verdict.cell
            rows.setdefault((cell.model, cell.space), {})[cell.target, cell.precision] = {
                "state": verdict.state,
                "reason": verdict.reason,
                "message": verdict.message,
                "latency": latency_of(verdict),
                "links": links.get(cell.id, {}),
            }
        lines = [{"model": m, "space": s, "cells": [cells.get(c) for c in columns]} for (m, s), cells in rows.items()]
        result.append({"gpu": gpu, "columns": columns, "rows": lines})
    return result


def costs(
    jobs: Mapping[str, Job], attempts: Mapping[str, Sequence[tuple[str, float, str, str]]], prices: Mapping[str, float]
) -> list[tuple[str, float, float | None]]:
    """Hours of CPUs and of each GPU kind that all attempts took, as a plan counts them, and their price if it is known.

    What several cells share counts once, and nothing counts that was in the store.
    """
    hours: dict[str, float] = {}
    for job in jobs.values():
        seconds = sum(seconds for _, seconds, *_ in attempts.get(job.id, ()))
        units = 1.0 if job.accelerator else job.cpus
        hours[job.resource_class] = hours.get(job.resource_class, 0.0) + units * seconds / 3600
    return [(name, h, h * prices[name] if name in prices else None) for name, h in hours.items()]


def _data(
    sweep: SweepFile,
    number: int,
    verdicts: Sequence[CellVerdict],
    changes: Sequence[CellChange],
    links: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA, "kind": "sweep", "name": sweep.sweep.name, "number": number,
        "counts": count_states(verdicts), "changes": [asdict(c) for c in changes],
        "cells": [
            {**asdict(v.cell), "id": v.cell.id, "state": v.state, "reason": v.reason, "message": v.message,
             "job": v.job, "latency_s": dict(v.latency_s), "seconds": round(v.seconds, 3),
             "links": dict(links.get(v.cell.id, {}))}
            for v in verdicts
        ],
    }  # fmt: skip
