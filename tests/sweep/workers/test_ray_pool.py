"""Ray itself: one small sweep in a Ray of our own, and what is asked of it for a GPU."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trtconv.core.errors import TrtconvError
from trtconv.sweep.workers.pool import TaskPlacement
from trtconv.sweep.workers.ray_pool import PREFIX, RayPool, remove_marked

NEEDS_RAY = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install ray")


@NEEDS_RAY
@pytest.mark.slow
def test_a_sweep_in_a_ray_of_our_own(bench, capsys):
    """A fault is tried again; Ray is gone afterwards, and SIGTERM is ours again."""
    bench.write(["flaky"], targets=("tensorrt==10",))
    marker = bench.atlas / ".ray"
    bench.atlas.mkdir()
    before = signal.getsignal(signal.SIGTERM)
    pool = RayPool(None, 2, marker)
    folder = Path(marker.read_text().splitlines()[-1])
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert signal.getsignal(signal.SIGTERM) is before
    result = bench.run(pool=pool)
    assert [v.state for v in result.verdicts] == ["amber"]
    assert ("rewrite/flaky/own/tensorrt==10/fp32", "died", False, False) in bench.view.events
    assert not folder.exists()
    assert not marker.exists()
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert "ray" not in capsys.readouterr().err.lower()


def make_pool(nodes):
    """A pool on a pretended cluster."""
    pool = RayPool.__new__(RayPool)
    resources = {}
    for node in nodes:
        for name, amount in node["Resources"].items():
            resources[name] = resources.get(name, 0) + amount
    pool._ray = SimpleNamespace(nodes=lambda: nodes, cluster_resources=lambda: resources)
    pool._tasks = {}
    return pool


def node(name, alive=True, **resources):
    return {"NodeID": f"id-{name}", "NodeManagerHostname": name, "Alive": alive, "Resources": resources}


def test_a_gpu_is_asked_for_whole_and_by_its_kind():
    pool = make_pool([node("a", CPU=8.0, GPU=2.0)])
    assert pool._options(TaskPlacement(2.0, 4 << 30, "H100", {"env_vars": {"A": "1"}})) == {
        "num_cpus": 2.0,
        "memory": 4 << 30,
        "num_gpus": 1,
        "accelerator_type": "H100",
        "runtime_env": {"env_vars": {"A": "1"}},
    }
    assert pool._options(TaskPlacement(1.0)) == {"num_cpus": 1.0}


def test_another_attempt_goes_to_another_node_that_can_run_it():
    gpu = {"GPU": 1.0, "accelerator_type:H100": 1.0}
    pool = make_pool(
        [
            node("spoilt", CPU=8.0, **gpu),
            node("dead", alive=False, CPU=8.0, **gpu),
            node("cpu", CPU=8.0),
            node("other", CPU=8.0, **gpu),
        ]
    )
    assert pool._other_node(TaskPlacement(1.0, accelerator="H100", avoid="spoilt")) == "id-other"
    assert pool._other_node(TaskPlacement(1.0, avoid="spoilt")) == "id-cpu"
    assert pool._other_node(TaskPlacement(64.0, avoid="spoilt")) is None


def test_room_is_a_little_more_than_runs_at_once():
    pool = make_pool([node("a", CPU=8.0, GPU=2.0)])
    assert pool.room("cpu") == 17
    pool._tasks = {1: ("H100", "build/a"), 2: ("H100", "build/b")}
    assert pool.room("H100") == 3
    assert pool.room("cpu") == 17


def test_only_a_folder_of_ours_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, stays in ((f"{PREFIX}abc", False), ("precious", True)):
        folder = tmp_path / name
        folder.mkdir()
        marker = tmp_path / "marker"
        marker.write_text(str(folder))
        assert remove_marked(marker) == []
        assert folder.exists() is stays
    nested = tmp_path / "x" / f"{PREFIX}abc"
    nested.mkdir(parents=True)
    marker.write_text(str(nested))
    assert remove_marked(marker) == []
    assert nested.exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux tells what runs")
def test_a_folder_that_a_process_may_make_anew_stays_until_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, marker = tmp_path / f"{PREFIX}abc", tmp_path / "marker"
    marker.write_text(str(folder))
    code = "import sys; sys.stdin.read()"
    words = [sys.executable, "-S", "-c", code, f"--session-dir={folder}/r"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as starting:
        assert remove_marked(marker) == [str(folder)], "it is not there yet"
        folder.mkdir()
        assert remove_marked(marker) == [str(folder)]
        starting.stdin.close()
        starting.wait()
        assert remove_marked(marker) == []
    assert not folder.exists()


def test_without_ray_one_error_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from trtconv.sweep.workers.ray_pool import RayPool\n"
        "from trtconv.core.errors import MissingDependencyError\nfrom pathlib import Path\n"
        f"try: RayPool(None, 1, Path({str(tmp_path / 'm')!r}))\n"
        "except MissingDependencyError as e: print(e.hint)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "pip install ray\n"


class BusyRay(SimpleNamespace):
    """Starts at the attempt with this number, counted from 1; before it raises what Ray does."""

    def __init__(self, starts_at):
        super().__init__(starts_at=starts_at, attempts=0, shutdowns=0)

    def init(self, **options):
        self.attempts += 1
        if self.attempts < self.starts_at:
            raise Exception("The current node timed out during startup.\nfurther lines")

    def shutdown(self):
        self.shutdowns += 1

    def remote(self, **options):
        return lambda function: function


def test_a_busy_machine_has_a_second_attempt_and_then_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    marker = tmp_path / "marker"
    ray = BusyRay(2)
    monkeypatch.setitem(sys.modules, "ray", ray)
    RayPool(None, 1, marker).close()
    assert (ray.attempts, ray.shutdowns) == (2, 2)
    monkeypatch.setitem(sys.modules, "ray", BusyRay(3))
    with pytest.raises(TrtconvError, match=r"Ray does not start on this machine: The current node timed out"):
        RayPool(None, 1, marker)
    assert not marker.exists()
    assert not list(tmp_path.glob(f"{PREFIX}*")), "its folder goes with it"


def test_a_folder_that_cannot_be_removed_yet_is_tried_the_next_time(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = [tmp_path / f"{PREFIX}{n}" for n in "ab"]
    for folder in folders:
        folder.mkdir()
    marker = tmp_path / "marker"
    marker.write_text("\n".join(map(str, folders)))
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda path, ignore_errors: path == folders[1] and path.rmdir())
        assert remove_marked(marker) == [str(folders[0])]
    assert remove_marked(marker) == []
    assert not any(f.exists() for f in folders)
