"""A command with a limit, that ends with its worker."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trtconv.sweep.workers import child
from trtconv.sweep.workers.outcome import JobResult, message_of, outcome_of, result_from
from trtconv.sweep.workers.process import run_command

PYTHON = (sys.executable, "-I", "-S")


def run(tmp_path, code, seconds=30.0, stdout=None):
    return run_command(
        [*PYTHON, "-c", code],
        folder=tmp_path,
        log=tmp_path / "log",
        seconds=seconds,
        variables={"A": "1"},
        stdout=stdout,
    )


def test_output_and_code(tmp_path):
    ended = run(
        tmp_path,
        "import os,sys; print('out'); print(os.environ['A'], file=sys.stderr); sys.exit(3)",
        stdout=tmp_path / "out",
    )
    assert ended.code == 3
    assert ended.output == "1\n"
    assert (tmp_path / "out").read_text() == "out\n"
    assert run(tmp_path, "print('second')").output == "second\n", "what the log held before is not this command's"


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def assert_ends(pid):
    """A process that was killed is gone a moment later."""
    end = time.monotonic() + 50
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(pid)


def test_what_runs_over_its_time_ends_with_all_its_children(tmp_path):
    code = (
        "import subprocess, time; p = subprocess.Popen(['sleep', '60'])\n"
        "open('pid.part', 'w').write(str(p.pid)); import os; os.rename('pid.part', 'pid'); time.sleep(60)"
    )
    # On a busy machine Python takes longer than a second to begin.
    for seconds in (1.0, 5.0, 25.0):
        assert run(tmp_path, code, seconds=seconds).code is None
        if (tmp_path / "pid").exists():
            break
    assert_ends(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
def test_a_command_ends_with_a_worker_that_is_killed(tmp_path):
    code = (
        "from trtconv.sweep.workers.process import run_command\nfrom pathlib import Path\nimport sys\n"
        f"run_command(['sh', '-c', 'echo $$ > pid; exec sleep 60'], folder=Path({str(tmp_path)!r}), "
        f"log=Path({str(tmp_path / 'log')!r}), seconds=60, variables={{}})"
    )
    worker = subprocess.Popen([sys.executable, "-c", code])
    file = tmp_path / "pid"
    while not (file.exists() and file.read_text().strip()):
        time.sleep(0.02)
        assert worker.poll() is None
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert_ends(int(file.read_text()))


def test_a_child_whose_parent_is_gone_does_not_begin(tmp_path):
    ended = subprocess.run([*PYTHON, child.__file__, "1", "--", "touch", str(tmp_path / "begun")], check=False)
    assert ended.returncode == 1
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [(0, "", "ok"), (1, "", "failed"), (2, "", "usage"), (3, "", "accuracy"), (4, "", "unsupported"),
     (5, "", "environment"), (6, "", "budget"), (-9, "", "died"), (-11, "", "died"), (130, "", "died"),
     (143, "", "died"), (2, f"error: cannot be written: {os.strerror(28)}", "disk"), (77, "", "failed")],
)  # fmt: skip
def test_outcomes(code, output, outcome):
    result = JobResult("a", outcome_of(code, output), files=(("a", "b", 1),))
    assert result.outcome == outcome
    assert result.is_fault is (outcome in ("died", "disk"))
    assert result_from(result.as_dict()) == result


def test_the_message_begins_with_the_error():
    assert message_of("noise\nerror: no\n  -> do\n\n") == "error: no\n  -> do"
    assert message_of("a\nb\nc\nd\n") == "b\nc\nd"
    assert len(message_of("error: " + "x" * 5000)) < 700
