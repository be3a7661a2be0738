"""The command runs in a child: its crash, and a native call that never returns, are one error of the parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trtconv.core.limits import MEMORY, TIME

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a command is supervised on Linux only")

# The program with another command. PyDLL calls a C function with Python's lock held, as many bindings do.
PROGRAM = """
import ctypes, os, signal, sys, tempfile
from pathlib import Path
import click
from trtconv.cli import main, supervision
from trtconv.core.files.private_folder import private_temporary_folder
supervision.GRACE_S = supervision._PATIENCE_S = 0.2
library = ctypes.PyDLL(None)

def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    print("started", flush=True)
    library.pause()

def crash():
    folder = private_temporary_folder("build")
    ctypes.string_at(8)

def memory():
    content = bytearray(b"x") * (1 << 29)
    deaf()

def loading():
    signal.signal(signal.SIGINT, lambda *_: ctypes.string_at(8))
    print("started", flush=True)
    signal.pause()

def prints():
    os.write(1, b"of native code")
    print("result")

work = {"prints": prints, "loading": loading,
        "crash": crash, "abort": os.abort, "deaf": deaf, "memory": memory, "exit": lambda: 6,
        "leave": lambda: os._exit(0), "leave red": lambda: os._exit(3),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "divide": lambda: os.kill(os.getpid(), signal.SIGFPE)}[sys.argv[1]]
command = click.Command("inspect", callback=lambda **_: work())
main.LazyGroup.get_command = lambda self, context, name: command
sys.argv[1:] = ["inspect"]
main.main()
"""


def start(kind, folder, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind],
        env={**os.environ, "TMPDIR": str(folder), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("kind", "variables", "code", "message"),
    [
        ("crash", {}, 1, "error: native code ended the command by signal 11 (SIGSEGV)"),
        ("abort", {}, 1, "error: native code ended the command by signal 6 (SIGABRT)"),
        ("divide", {}, 1, "signal 8 (SIGFPE): whole numbers were divided by zero"),
        ("kill", {}, 1, "error: the command was killed (SIGKILL)"),
        ("deaf", {TIME: "0.3"}, 1, "error: the time limit of 0.3 s is over"),
        ("memory", {MEMORY: "256MiB"}, 1, "error: more than 256.0 MiB of memory are needed"),
        ("exit", {}, 6, ""),
        ("leave", {}, 1, "ended the process with exit code 0 before there was a verdict"),
        ("leave red", {}, 1, "ended the process with exit code 3 before there was a verdict"),
    ],
)
def test_a_child_that_ends(kind, variables, code, message, tmp_path):
    with start(kind, tmp_path, **variables) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.count("error: ") == bool(message)
    assert message in errors
    assert "Traceback" not in errors
    assert "Fatal Python error" not in errors
    assert not list(tmp_path.glob("trtconv-*"))


def test_results_stand_alone_on_stdout(tmp_path):
    with start("prints", tmp_path) as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "result\n", "of native code")


def test_a_crash_names_the_line_that_called_native_code(tmp_path):
    with start("crash", tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert "ctypes/__init__.py:" in errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_child_that_hears_nothing_ends_with_its_parent(number, code, tmp_path):
    with start("deaf", tmp_path) as process:
        assert process.stdout.readline() == "started\n"
        children = [int(c) for c in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        process.send_signal(number)
        assert process.wait(timeout=60) == code
    assert len(children) == 1
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{children[0]}") and "Z" not in state(children[0]) and time.monotonic() < end:
        time.sleep(0.01)
    assert state(children[0]) in ("", "Z")


def test_a_library_that_crashes_when_it_is_interrupted_was_interrupted(tmp_path):
    with start("loading", tmp_path) as process:
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "interrupted; nothing was left half written\n")


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
