"""The files behind a verdict, copied out of the store: reports, the smallest failing part, the log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from trtconv.sweep.engine.verdicts import CellVerdict
from trtconv.sweep.plan.commands import PAGE, REPORT, REPRO, TUNE_LEDGER, TUNE_PAGE
from trtconv.sweep.store.store import DamagedResultError, Store, StoredFile
from trtconv.sweep.workers.outcome import JobResult
from trtconv.sweep.workers.task import LOG

# What a link to each is called.
TITLES = {PAGE: "report", TUNE_PAGE: "report", TUNE_LEDGER: "search", REPRO: "repro", LOG: "log"}
_SHOWN = (*TITLES, REPORT)


def copy_evidence(
    atlas: Path, verdicts: tuple[CellVerdict, ...], results: Mapping[str, JobResult], store: Store
) -> dict[str, dict[str, str]]:
    """Copy the evidence of every verdict into `reports/`; returns the links by cell: title -> path below the atlas.

    What is there already is left; what is gone from the store has no link.
    """
    copied: dict[str, dict[str, str]] = {}
    links = {}
    for verdict in verdicts:
        result = results.get(verdict.job)
        if result is not None and verdict.job not in copied:
            copied[verdict.job] = _copy_files(atlas, result, store)
        links[verdict.cell.id] = copied.get(verdict.job, {})
    return links


def _copy_files(atlas: Path, result: JobResult, store: Store) -> dict[str, str]:
    links = {}
    for name, sha256, size in result.files:
        if name not in _SHOWN:
            continue
        relative = Path("reports", file_name(result.job), f"{sha256[:12]}-{name}")
        target = atlas / relative
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}")
            try:
                store.fetch_file(StoredFile(name, sha256, size), temporary)
                temporary.replace(target)
            except (OSError, DamagedResultError):
                continue
        if name in TITLES:
            links[TITLES[name]] = relative.as_posix()
    return links


def file_name(job: str) -> str:
    """A job's id as the name of a file: readable, and another one for another job."""
    plain = re.sub(r"[^A-Za-z0-9._=-]+", "_", job)[:100]
    return f"{plain}-{hashlib.sha256(job.encode()).hexdigest()[:8]}"
