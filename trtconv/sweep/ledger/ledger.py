"""The ledger: an SQLite file that only the driver writes.

WAL with synchronous=FULL: a transaction that was committed is on disk, one that was not leaves no trace, whenever the
process or the machine ends (sqlite.org/wal.html, sqlite.org/pragma.html#pragma_synchronous). WAL needs shared memory,
so that the atlas has to lie on a disk of the driver's machine and not on NFS.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from trtconv.core.errors import InvalidRequestError
from trtconv.sweep.workers.outcome import JobResult, result_from

NAME = "ledger.db"
SCHEMA = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS sweeps (
  id INTEGER PRIMARY KEY, started REAL NOT NULL, ended REAL, state TEXT NOT NULL, plan TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS jobs (
  sweep INTEGER NOT NULL, job TEXT NOT NULL, attempts INTEGER NOT NULL, running INTEGER NOT NULL,
  started REAL, ended REAL, result TEXT, PRIMARY KEY (sweep, job)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
  sweep INTEGER NOT NULL, job TEXT NOT NULL, number INTEGER NOT NULL, ended REAL NOT NULL, outcome TEXT NOT NULL,
  seconds REAL NOT NULL, node TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (sweep, job, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS verdicts (
  sweep INTEGER NOT NULL, cell TEXT NOT NULL, state TEXT NOT NULL, latency TEXT NOT NULL, PRIMARY KEY (sweep, cell)
) WITHOUT ROWID;
"""
_TIMINGS = "SELECT job, seconds FROM attempts WHERE outcome = 'ok' AND seconds > 0 ORDER BY sweep, number"


@dataclass(frozen=True)
class SweepRecord:
    """A sweep: when it began and ended (seconds since the epoch), `running`, `ended` or `interrupted`, its plan."""

    id: int
    started: float
    ended: float | None
    state: str
    plan: Mapping[str, Any]


class Ledger:
    """The ledger of an atlas, for one driver at a time; a context manager.

    Raises InvalidRequestError when another driver has it, and when the file is not a ledger of this trtconv.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / ".sweep.lock")
        self._path = folder / NAME
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Ledger:
        # The system drops the lock with the process, however that ends.
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise InvalidRequestError(
                f"another sweep is writing into '{self._path.parent}'", hint="wait for it, or name another folder"
            ) from error
        try:
            self._connection = _open(self._path)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.release()

    @property
    def _db(self) -> sqlite3.Connection:
        assert self._connection is not None, "the ledger is not open"
        return self._connection

    def begin(self, plan: Mapping[str, Any], now: float) -> int:
        """A new sweep; returns its number."""
        with self._db as db:
            cursor = db.execute(
                "INSERT INTO sweeps (started, state, plan) VALUES (?, 'running', ?)", (now, json.dumps(plan))
            )
        return int(cursor.lastrowid or 0)

    def resume(self, sweep: int, plan: Mapping[str, Any]) -> None:
        """Go on with a sweep: what was running when its driver ended is not running any more."""
        with self._db as db:
            db.execute(
                "UPDATE sweeps SET state = 'running', ended = NULL, plan = ? WHERE id = ?", (json.dumps(plan), sweep)
            )
            db.execute("UPDATE jobs SET running = 0 WHERE sweep = ?", (sweep,))

    def end(self, sweep: int, state: str, now: float) -> None:
        """A sweep is over: `ended` or `interrupted`."""
        with self._db as db:
            db.execute("UPDATE sweeps SET state = ?, ended = ? WHERE id = ?", (state, now, sweep))
            db.execute("UPDATE jobs SET running = 0 WHERE sweep = ?", (sweep,))

    def start(self, sweep: int, jobs: Iterable[str], now: float) -> None:
        """Jobs were handed to workers."""
        with self._db as db:
            db.executemany(
                "INSERT INTO jobs (sweep, job, attempts, running, started) VALUES (?, ?, 0, 1, ?) "
                "ON CONFLICT (sweep, job) DO UPDATE SET running = 1, started = excluded.started",
                [(sweep, job, now) for job in jobs],
            )

    def record(self, sweep: int, results: Iterable[JobResult], now: float) -> None:
        """Attempts ended; all of them are on disk when this returns. The last one of a job is its result."""
        with self._db as db:
            for result in results:
                row = db.execute("SELECT attempts FROM jobs WHERE sweep = ? AND job = ?", (sweep, result.job))
                number = (row.fetchone() or (0,))[0] + 1
                db.execute(
                    "INSERT INTO jobs (sweep, job, attempts, running, ended, result) VALUES (?, ?, ?, 0, ?, ?) "
                    "ON CONFLICT (sweep, job) DO UPDATE SET attempts = excluded.attempts, running = 0, "
                    "ended = excluded.ended, result = excluded.result",
                    (sweep, result.job, number, now, json.dumps(result.as_dict())),
                )
                db.execute(
                    "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (sweep, result.job, number, now, result.outcome, result.seconds, result.node, result.message),
                )

    def sweeps(self) -> tuple[SweepRecord, ...]:
        """All sweeps, the newest first."""
        rows = self._db.execute("SELECT id, started, ended, state, plan FROM sweeps ORDER BY id DESC")
        return tuple(SweepRecord(r[0], r[1], r[2], r[3], json.loads(r[4])) for r in rows)

    def results(self, sweep: int) -> dict[str, JobResult]:
        """The last result of each job of a sweep that has one."""
        rows = self._db.execute("SELECT job, result FROM jobs WHERE sweep = ? AND result IS NOT NULL", (sweep,))
        return {job: result_from(json.loads(text)) for job, text in rows}

    def attempts(self, sweep: int) -> dict[str, list[tuple[str, float, str, str]]]:
        """Outcome, seconds, node and message of all attempts of a sweep by job, in order."""
        attempts: dict[str, list[tuple[str, float, str, str]]] = {}
        rows = self._db.execute(
            "SELECT job, outcome, seconds, node, message FROM attempts WHERE sweep = ? ORDER BY job, number", (sweep,)
        )
        for job, *facts in rows:
            attempts.setdefault(job, []).append((facts[0], facts[1], facts[2], facts[3]))
        return attempts

    def record_verdicts(self, sweep: int, verdicts: Iterable[tuple[str, str, Mapping[str, float]]]) -> None:
        """Cell, state and latencies of what a sweep found, for the next one."""
        with self._db as db:
            db.executemany(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)",
                [(sweep, cell, state, json.dumps(latency)) for cell, state, latency in verdicts],
            )

    def verdicts_before(self, sweep: int) -> dict[str, tuple[str, dict[str, float]]]:
        """State and latencies of each cell in the last sweep before this one in which it was run."""
        rows = self._db.execute(
            "SELECT cell, state, latency FROM verdicts WHERE sweep < ? AND state != 'open' ORDER BY sweep", (sweep,)
        )
        return {cell: (state, json.loads(latency)) for cell, state, latency in rows}


def read_timings(folder: Path) -> dict[str, float]:
    """Seconds that each job took when it last did its work, over all sweeps; empty where there is no atlas.

    A sweep may be running in it. Nothing is written.
    """
    path = folder / NAME
    if not path.is_file():
        return {}
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return dict(connection.execute(_TIMINGS).fetchall())
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise InvalidRequestError(f"'{path}' cannot be read: {error}", hint="name another folder") from error


def _open(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level="IMMEDIATE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            connection.close()
            raise InvalidRequestError(
                f"'{path}' is the ledger of another trtconv (schema {version})", hint="name another folder"
            )
        with connection:
            connection.executescript(_TABLES + f"PRAGMA user_version = {SCHEMA};")
    except sqlite3.DatabaseError as error:
        raise InvalidRequestError(
            f"'{path}' cannot be used as a ledger: {error}", hint="name another folder"
        ) from error
    return connection
