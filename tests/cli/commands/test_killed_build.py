"""SIGKILL of the command line in the middle of a build: no orphan goes on, and the next run cleans up."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.backends.onnx_models import conv_net
from trtconv.core.files.private_folder import start_time

pytest.importorskip("tensorrt_rtx")
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


def children(pid):
    rows = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] not in "ZX":
            rows.append(int(path.parent.name))
    return rows


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return value


def building(temporary):
    """The child has taken its work: the file is gone, and the answer is not there yet."""
    folders = [f for f in temporary.glob("trtconv-build-*") if (f / "log").exists()]
    return bool(folders) and not list(folders[0].glob("*.result"))


def test_no_orphan_and_no_folder_stay(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o700)
    conv_net(tmp_path / "m.onnx", depth=40)
    words = [sys.executable, "-m", "trtconv", "build", tmp_path / "m.onnx", "--backend", "tensorrt-rtx", "--no-cache"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    parent = subprocess.Popen(list(map(str, words)), env=environment, stderr=subprocess.DEVNULL)
    (child,) = wait_for(lambda: children(parent.pid) if building(temporary) else None)
    # Past the start of Python, at which the child asks the kernel for the signal.
    wait_for(
        lambda: (
            "nvinfer" in Path(f"/proc/{child}/maps").read_text()
            or "tensorrt" in Path(f"/proc/{child}/maps").read_text()
        )
    )
    # A stopped child cannot end by itself, only by what its parent's death sends.
    os.kill(child, signal.SIGSTOP)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    try:
        wait_for(lambda: start_time(child) is None, 5)
    finally:
        if start_time(child) is not None:
            os.kill(child, signal.SIGKILL)
    assert len(list(temporary.glob("trtconv-build-*"))) == 1
    subprocess.run(list(map(str, words)), env=environment, check=True, capture_output=True)
    assert list(temporary.iterdir()) == []
    assert (tmp_path / "m.engine").stat().st_size > 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
