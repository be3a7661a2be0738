"""Sweeps of a stand-in for trtconv, whose jobs take milliseconds."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.sweep.fork_pool import ForkPool
from trtconv.sweep import SweepRequest, run_sweep
from trtconv.sweep.ledger.ledger import Ledger

TOOL = Path(__file__).with_name("quick_tool.py")
TARGETS = ("tensorrt-rtx", "tensorrt==10")


class Recorder:
    """A view that keeps what it was told."""

    def __init__(self, raise_after=None):
        self.events = []
        self._raise_after = raise_after

    def event(self, result, *, final):
        self.events.append((result.job, result.outcome, final, result.cached))

    def tick(self, schedule):
        if self._raise_after is not None and len(schedule.results) >= self._raise_after:
            raise KeyboardInterrupt


class Bench:
    """A folder with a sweep file, and how to run it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.atlas = folder / "atlas"
        self.log = folder / "log"

    def write(self, models, *, targets=TARGETS, precisions=("fp32",), gpus=("none",), extra="", seconds=30):
        (self.folder / "net.py").write_text("# models\n")
        environment = "".join(
            f"[environments.\"{t}\"]\ncommand = [{sys.executable!r}, '-S', {str(TOOL)!r}]\n"
            f"variables = {{ QUICK_LOG = {str(self.log)!r} }}\n"
            for t in ("export", *targets)
        )
        sections = "".join(f'[[model]]\nmodule = "net.py:{m}"\ninputs = ["x:float32[N]"]\n' for m in models)
        (self.folder / "sweep.toml").write_text(
            f"[sweep]\nname = 'quick'\ntargets = {list(targets)}\nprecisions = {list(precisions)}\n"
            f"gpus = {list(gpus)}\n{sections}{environment}"
            f"[resources.rewrite]\nseconds = {seconds}\n{extra}".replace("'", '"')
        )

    def run(self, view=None, pool=None, **request):
        self.pool = pool or ForkPool()
        self.view = view or Recorder()
        request = SweepRequest(self.folder / "sweep.toml", self.atlas, **request)
        return run_sweep(request, self.view, open_pool=lambda: self.pool)

    def content(self, job: str) -> str:
        """What the stand-in wrote for a job: the words of all that it was made by."""
        with Ledger(self.atlas) as ledger:
            files = ledger.results(ledger.sweeps()[0].id)[job].files
        _name, sha256, _ = next(f for f in files if f[0] in ("model.onnx", "model.trt.onnx", "model.engine"))
        text = (self.atlas / "store" / "content" / sha256[:2] / sha256).read_text()
        return text.replace(str(self.folder) + "/", "")

    def runs(self) -> Counter[str]:
        """How often the tool ran for each job."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(line.split()[1] for line in lines if line.startswith("start"))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr("trtconv.sweep.engine.schedule.FIRST_PAUSE_S", 0.01)
    return Bench(tmp_path)
