"""The ledger: what was committed is there after a kill -9, what was not leaves no trace."""

import os
import signal

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.sweep.ledger.ledger import Ledger, read_timings
from trtconv.sweep.workers.outcome import JobResult


def test_attempts_and_results(tmp_path):
    with Ledger(tmp_path) as ledger:
        sweep = ledger.begin({"name": "a"}, 1.0)
        ledger.start(sweep, ["x", "y"], 2.0)
        ledger.record(sweep, [JobResult("x", "died", seconds=1.0, node="n1", message="gone")], 3.0)
        ledger.start(sweep, ["x"], 4.0)
        result = JobResult("x", "ok", "k", seconds=7.0, files=(("a", "b", 3),), facts={"n": [1]})
        ledger.record(sweep, [result], 5.0)
    with Ledger(tmp_path) as ledger:
        assert ledger.results(sweep) == {"x": result}
        assert ledger.attempts(sweep) == {"x": [("died", 1.0, "n1", "gone"), ("ok", 7.0, "", "")]}
        assert read_timings(tmp_path) == {"x": 7.0}
        assert ledger.sweeps()[0].state == "running"
        ledger.end(sweep, "ended", 9.0)
        assert (ledger.sweeps()[0].ended, ledger.sweeps()[0].plan) == (9.0, {"name": "a"})


def test_the_verdicts_before(tmp_path):
    with Ledger(tmp_path) as ledger:
        for state, latency in (("green", {"opt": 1.0}), ("red", {}), ("open", {})):
            ledger.record_verdicts(ledger.begin({}, 0.0), [("c", state, latency)])
        assert ledger.verdicts_before(1) == {}
        assert ledger.verdicts_before(2) == {"c": ("green", {"opt": 1.0})}
        # One that was not run says nothing.
        assert ledger.verdicts_before(4) == {"c": ("red", {})}


def test_a_killed_writer_loses_nothing_that_was_recorded(tmp_path):
    """The writer tells of each transaction that returned; all of those, and whole ones only, are there later."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with Ledger(tmp_path) as ledger:
                sweep = ledger.begin({}, 0.0)
                for i in range(100_000):
                    ledger.record(sweep, [JobResult(f"a{i}", "ok"), JobResult(f"b{i}", "ok")], 0.0)
                    os.write(write, b".")
        finally:
            os._exit(1)
    os.close(write)
    messages = len(os.read(read, 1))
    while messages < 25:
        messages += len(os.read(read, 1 << 16))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while chunk := os.read(read, 1 << 16):
        messages += len(chunk)
    os.close(read)
    with Ledger(tmp_path) as ledger:
        results = ledger.results(1)
    assert len(results) in (2 * messages, 2 * messages + 2)
    assert all(f"b{name[1:]}" in results for name in results if name.startswith("a"))


def test_what_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "ledger.db").write_text("no database, but long enough to have a header of its own" * 20)
    with pytest.raises(InvalidRequestError, match="cannot be used as a ledger"), Ledger(tmp_path):
        pass
    (tmp_path / "ledger.db").unlink()
    with Ledger(tmp_path) as ledger:
        ledger._db.execute("PRAGMA user_version = 99")
    with pytest.raises(InvalidRequestError, match="another trtconv"), Ledger(tmp_path):
        pass
