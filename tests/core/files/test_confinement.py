"""What a process can no longer do once it is confined, shown in a process of its own: it is for good."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trtconv.core.files.confinement import landlock_version

pytestmark = pytest.mark.skipif(landlock_version() < 4, reason="needs Linux with Landlock 4 (network) or later")
ROOT = Path(__file__).parents[3]

# Tries everything, from the process, a thread and a child of it; prints what was possible.
ATTACK = """
import os, socket, subprocess, sys, threading
from pathlib import Path

def possible(step):
    try:
        step()
    except OSError:
        return False
    return True

def attack(inside, outside):
    child = [sys.executable, "-S", "-c", "import sys; open(sys.argv[1], 'w')"]
    in_thread = []
    thread = threading.Thread(target=lambda: in_thread.append(possible((outside / "t").touch)))
    thread.start()
    thread.join()
    steps = {
        "write inside": lambda: (inside / "new").write_text("x"),
        "replace inside": lambda: os.replace(inside / "new", inside / "model"),
        "read outside": lambda: (outside / "secret").read_text(),
        "devices": lambda: Path("/dev/null").write_text("x"),
        "write outside": lambda: (outside / "new").write_text("x"),
        "change outside": lambda: (outside / "secret").write_text("x"),
        "truncate outside": lambda: os.truncate(outside / "secret", 0),
        "remove outside": lambda: (outside / "secret").unlink(),
        "move out": lambda: os.rename(inside / "model", outside / "model"),
        "fifo inside": lambda: os.mkfifo(inside / "fifo"),
        "network": lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close(),
        "child": lambda: subprocess.run([*child, outside / "c"], check=True, capture_output=True),
    }
    successes = []
    for name, step in steps.items():
        try:
            if possible(step):
                successes.append(name)
        except subprocess.CalledProcessError:
            pass
    return successes + ["thread"] * any(in_thread)
"""
ALLOWED = ["write inside", "replace inside", "read outside", "devices"]
CONFINED = """
from trtconv.core.files.confinement import confine
inside, outside = Path(sys.argv[2]), Path(sys.argv[3])
assert confine([inside]) is (sys.argv[4] == "yes")
print(*attack(inside, outside), sep="\\n")
"""
# The program, whose reader of ONNX files was taken over by the file.
PROGRAM = """
import trtconv.core.model.facts as facts
from trtconv.cli.main import main
folders, port, words = [Path(w) for w in sys.argv[2:4]], sys.argv[1], sys.argv[4:]
def taken_over(path, **_):
    sys.argv[1:] = [port]
    return {"possible": attack(*folders)}
facts.onnx_facts = taken_over
sys.argv[1:] = words
main()
"""


@pytest.fixture
def port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def folders(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    return inside, outside


def run(script, *words, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "TRTCONV_CACHE": "off"}
    process = subprocess.run(
        [sys.executable, "-c", ATTACK + script, *map(str, words)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split("\n")[:-1]


def test_a_confined_process_writes_in_its_folders_alone(folders, port):
    inside, outside = folders
    assert run(CONFINED, port, inside, outside, "yes", folder=inside) == ALLOWED
    assert [p.name for p in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_without_confinement_the_same_attack_would_go_through(folders, port):
    """The attack is one: every step of it works in a process that is not confined."""
    inside, outside = folders
    script = CONFINED.replace("confine([inside])", "False")
    assert len(run(script, port, inside, outside, "no", folder=inside)) == 13


def test_the_command_that_reads_a_file_is_confined(folders, port):
    inside, outside = folders
    (inside / "model.onnx").write_bytes(b"")
    lines = run(PROGRAM, port, inside, outside, "inspect", inside / "model.onnx", folder=inside)
    assert [line.strip() for line in lines if line.strip() not in ("", "possible")] == ALLOWED
    assert (outside / "secret").read_text() == "secret"


KERNEL_FILES = """
child = "import threading; open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('worker')"
confined = sys.argv[1] == "yes"
if confined:
    from trtconv.core.files.confinement import confine
    assert confine([Path(sys.argv[2])])
Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("main")
subprocess.run([sys.executable, "-S", "-c", child], check=True)
for path in ("/proc/sys/kernel/core_pattern", f"/proc/{os.getppid()}/mem"):
    print(possible(lambda: open(path, "r+b", buffering=0).close()))
assert Path("/proc/meminfo").read_text()
"""


def test_threads_are_named_and_the_kernel_is_not_changed(folders):
    """CUDA names its threads, also in the process that builds, and does not start where that is denied."""
    assert run(KERNEL_FILES, "yes", folders[0], folder=folders[0]) == ["False"] * 2


@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/proc/sys/kernel/core_pattern", os.W_OK), reason="needs root")
def test_root_could_change_the_kernel_without_confinement(folders):
    assert run(KERNEL_FILES, "no", folders[0], folder=folders[0]) == ["True"] * 2
