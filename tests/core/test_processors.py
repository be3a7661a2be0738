import gc
import os
import subprocess
import sys

import pytest

from trtconv.core import processors
from trtconv.core.processors import granted_processors, seldom_collected, thread_variables


@pytest.fixture
def eight_processors(monkeypatch):
    monkeypatch.setattr(processors, "_present", lambda: 8)


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("-", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("max 100000", 0),
        ("200000 100000", 2),
        ("250000 100000", 3),
        ("50000 100000", 1),
        ("1600000 100000", 0),
        ("", 0),
    ],
)
def test_what_version_2_grants(tmp_path, eight_processors, limit, count):
    write(tmp_path, **{"cpu-max": limit})
    assert granted_processors(tmp_path) == count


@pytest.mark.parametrize(("quota", "count"), [("-1", 0), ("400000", 4)])
def test_what_version_1_grants(tmp_path, eight_processors, quota, count):
    write(tmp_path, **{"cpu__cpu-cfs_quota_us": quota, "cpu__cpu-cfs_period_us": "100000"})
    assert granted_processors(tmp_path) == count


def test_without_control_groups_nothing_is_limited(tmp_path):
    assert granted_processors(tmp_path) == 0
    assert thread_variables({}, tmp_path) == {"OMP_WAIT_POLICY": "PASSIVE"}


def test_what_the_user_set_stays(tmp_path, eight_processors):
    write(tmp_path, **{"cpu-max": "200000 100000"})
    assert thread_variables({}, tmp_path) == {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "2"}
    assert thread_variables({"OMP_NUM_THREADS": "5", "GOMP_SPINCOUNT": "7"}, tmp_path) == {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("own", [None, "ACTIVE"])
def test_the_program_tells_openmp_how_to_wait_before_torch_is_there(tmp_path, own):
    script = tmp_path / "net.py"
    script.write_text(
        "import os, sys\nfrom torch import nn\n"
        "def make():\n    print('waits', os.environ.get('OMP_WAIT_POLICY'), file=sys.stderr)\n    return nn.ReLU()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": own} if own else {}
    command = [sys.executable, "-m", "trtconv", "export", f"{script}:make", "-o", str(tmp_path / "m.onnx")]
    finished = subprocess.run(
        [*command, "--input", "x:float32[2,3]"], capture_output=True, text=True, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert f"waits {own or 'PASSIVE'}" in finished.stderr + finished.stdout


@pytest.fixture
def often_collected():
    own = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*own)


@pytest.mark.usefixtures("often_collected")
def test_garbage_is_looked_for_less_often_in_the_block_and_as_before_after_it():
    with seldom_collected():
        assert gc.get_threshold() == (20_000, 10, 10)
        with seldom_collected():
            assert gc.get_threshold() == (20_000, 10, 10)
        assert gc.get_threshold() == (20_000, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("youngest", [0, 100_000])
def test_a_process_that_asks_for_fewer_looks_keeps_its_own(youngest):
    before = gc.get_threshold()
    gc.set_threshold(youngest, 5, 7)
    try:
        with seldom_collected():
            assert gc.get_threshold() == (youngest, 5, 7)
        assert gc.get_threshold() == (youngest, 5, 7)
    finally:
        gc.set_threshold(*before)
