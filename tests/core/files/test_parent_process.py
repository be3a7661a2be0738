"""Children of a parent that is really killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from trtconv.core.files.private_folder import start_time

PARENT = """
import subprocess, sys, threading, time
from trtconv.core.files.parent_process import parent_arguments

def start():
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1], *parent_arguments()], stdin=subprocess.PIPE, text=True)
    child.stdin.write("work\\n")
    child.stdin.flush()
    print(child.pid, flush=True)
    time.sleep(60)

if sys.argv[2] == "thread":
    threading.Thread(target=start).start()
else:
    start()
"""
CHILD = """
import sys, time
from trtconv.core.files.parent_process import end_with_parent, lines_from_parent
{first}
for line in lines_from_parent(sys.stdin) if {pipe} else ["work"]:
    print("working", flush=True)
    time.sleep(60)
"""
BY_SIGNAL = CHILD.format(first="end_with_parent(sys.argv[1:])", pipe=False)
BY_PIPE = CHILD.format(first="", pipe=True)


def ended(pid, seconds=5.0):
    end = time.monotonic() + seconds
    while start_time(pid) is not None and time.monotonic() < end:
        time.sleep(0.02)
    return start_time(pid) is None


def start(child, where="main"):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, child, where], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert parent.stdout.readline() == "working\n"
    return parent, pid


@pytest.mark.parametrize(
    ("child", "where"),
    [
        pytest.param(BY_SIGNAL, "main", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux alone")),
        (BY_PIPE, "main"),
        (BY_PIPE, "thread"),
    ],
)
def test_the_child_dies_with_a_parent_that_is_killed(child, where):
    parent, pid = start(child, where)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    try:
        assert ended(pid)
    finally:
        if start_time(pid) is not None:
            os.kill(pid, signal.SIGKILL)
        parent.stdout.close()


def test_a_child_that_starts_after_its_parent_died_ends_at_once():
    code = (
        "import sys\nfrom trtconv.core.files.parent_process import end_with_parent\n"
        "end_with_parent(sys.argv[1:])\nprint(1)"
    )
    child = subprocess.run([sys.executable, "-c", code, "999999999", "signal"], capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (1, "")
    child = subprocess.run([sys.executable, "-c", code, str(os.getpid()), "signal"], capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (0, "1\n")


def test_a_pipe_that_ends_between_two_lines_ends_the_child_in_order():
    code = (
        "import sys, time\nfrom trtconv.core.files.parent_process import lines_from_parent\n"
        "for line in lines_from_parent(sys.stdin):\n    print(line, flush=True)\nprint('end')"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for word in ("one", "two"):
        child.stdin.write(word + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == word + "\n"
    time.sleep(0.2)
    child.stdin.close()
    assert child.stdout.read() == "end\n"
    assert child.wait(5) == 0
