"""A module whose loop does not end at some input is an error with its line, and no conversion that hangs."""

import threading

import numpy as np
import pytest
import torch
from torch import nn

from trtconv.core.errors import EndlessError
from trtconv.export.module.noise import endless_runs
from trtconv.export.module.runner import ModuleRunner


class Halved(nn.Module):
    def forward(self, x):
        while x.abs().max() > 8:
            try:
                x = x / 2
            except Exception:  # a module that catches its own errors does not catch the limit
                x = x * 0
        return x


def run(runner, value):
    return runner({"x": np.full((2, 3), value, np.float32)})["output"]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(endless_runs, "SHORTEST", 0.5)
    monkeypatch.setattr(endless_runs, "TIMES", 0.0)
    monkeypatch.setattr(endless_runs, "SHORTEST_AGAIN", 0.2)
    monkeypatch.setattr(endless_runs, "TIMES_AGAIN", 0.0)


def test_a_run_that_does_not_end_is_an_error(quick):
    runner = ModuleRunner(Halved())
    assert (run(runner, 32.0) == 8).all()
    with pytest.raises(EndlessError, match=r"does not end within 0 s for x") as caught:
        run(runner, np.inf)
    assert "test_endless_runs.py:1" in str(caught.value.where)
    with pytest.raises(EndlessError):
        run(runner, -np.inf)
    assert runner.limit.seconds == 0.2, "the next one is waited for less"
    assert (run(runner, 32.0) == 8).all(), "afterwards runs go on"


def test_twins_share_the_limit(quick):
    runner = ModuleRunner(Halved())
    run(runner, 32.0)
    exact = runner.exact()
    with pytest.raises(EndlessError):
        run(exact, np.inf)


def test_an_import_is_not_torn(quick, tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nend = time.monotonic() + 1.0\nwhile time.monotonic() < end:\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    class Lazy(nn.Module):
        def forward(self, x):
            if x.max() > 8:
                import slow_to_import

                assert slow_to_import.whole
            while x.max() > 8:
                x = x / 2
            return x

    runner = ModuleRunner(Lazy())
    run(runner, 1.0)
    with pytest.raises(EndlessError):
        run(runner, np.inf)
    import slow_to_import

    assert slow_to_import.whole


def test_other_threads_are_not_limited(quick):
    runner = ModuleRunner(nn.Identity())
    run(runner, 1.0)
    results = []
    thread = threading.Thread(target=lambda: results.append(run(runner, 2.0)))
    thread.start()
    thread.join()
    assert (results[0] == 2).all()
    assert torch.is_grad_enabled()
