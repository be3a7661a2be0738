"""A command that goes beyond its memory or time ends with one error, whatever its main thread does."""

import os
import subprocess
import sys
import time

import pytest

from trtconv.core.errors import InvalidRequestError, LimitError
from trtconv.core.limits import MEMORY, TIME, Limits, limited, machine_bytes, own_bytes, read_limits

# The command line with a command that never ends: in Python, in a native call that keeps Python's lock for a while at
# a time, or by taking memory.
COMMAND = """
import sys, time
import click
from trtconv.cli import main
kind = sys.argv.pop(1)
def work(*_, **__):
    print("started", flush=True)
    while True:
        if kind == "sleep":
            time.sleep(600)
        elif kind == "native":
            sum(range(10**7))
            sorted(range(3 * 10**6), key=lambda v: -v)
        else:
            held = [bytearray(b"x") * (32 << 20) for _ in range(12)]
            time.sleep(600)
def stubborn(*_, **__):
    while True:
        try:
            work()
        except KeyboardInterrupt:
            pass
command = click.Command("inspect", callback=stubborn if kind == "stubborn" else work)
main.LazyGroup.get_command = lambda self, ctx, name: command
main.run(["inspect"])
"""


@pytest.mark.parametrize(
    ("kind", "variables", "message"),
    [
        ("sleep", {TIME: "1"}, "error: the time limit of 1 s is over"),
        ("stubborn", {TIME: "1"}, "error: the time limit of 1 s is over"),
        ("native", {TIME: "1"}, "error: the time limit of 1 s is over"),
        ("memory", {MEMORY: "256MiB"}, "error: more than 256.0 MiB of memory are needed"),
    ],
)
def test_a_command_beyond_its_limits(kind, variables, message):
    started = time.monotonic()
    process = subprocess.run(
        [sys.executable, "-c", COMMAND, kind],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 1
    assert message in process.stderr
    assert "Traceback" not in process.stderr
    assert "is the file to be trusted?" in process.stderr
    assert time.monotonic() - started < 120


def test_limits_of_the_environment():
    assert read_limits({}).seconds is None
    assert 0.9 * machine_bytes() < read_limits({}).memory < machine_bytes()
    assert read_limits({MEMORY: "2GiB", TIME: "90"}) == Limits(2 << 30, 90.0)
    for wrong in ({MEMORY: "many"}, {TIME: "soon"}, {TIME: "nan"}, {TIME: "-1"}, {MEMORY: "-1GiB"}):
        with pytest.raises(InvalidRequestError):
            read_limits(wrong)


def test_a_limit_that_cannot_be_read_is_one_error(trtconv, monkeypatch):
    monkeypatch.setenv(TIME, "soon")
    code, _, err = trtconv("version")
    assert code == 2
    assert f"{TIME} must be a finite number" in err
    monkeypatch.delenv(TIME)
    monkeypatch.setenv(MEMORY, "lots")
    code, _, err = trtconv("version")
    assert code == 2
    assert f"{MEMORY}: cannot read the size 'lots'" in err


def test_a_block_within_its_limits_is_left_alone():
    errors = []
    with limited(Limits(own_bytes() + (1 << 30), 60.0), errors.append):
        time.sleep(0.3)
    with limited(Limits(None, 0.05), errors.append):
        time.sleep(0.4)
    assert [type(e) for e in errors] == [LimitError]
